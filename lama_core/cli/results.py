"""`results` and `compare`: what finished runs say, beside each other and papers."""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lama_core import rounding
from lama_core.asking.ranking import RANKINGS, Ranking
from lama_core.cli import options, show
from lama_core.cli.show import percent, plain
from lama_core.errors import UserError, choose

if TYPE_CHECKING:
    from lama_core.metrics import Average, By, Difference, Interval, MeanDifference
    from lama_core.runs.info import Run

HELD_BACK = 40  # flips that `compare` prints; --json has them all


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(epilog="Example: python -m lama_core results --by source")(results)
    app.command(epilog="Example: python -m lama_core compare RUN_A RUN_B")(compare)


def results(
    run: Annotated[
        list[str] | None,
        typer.Argument(help="Names of runs (or how they begin), or their folders; none is all."),
    ] = None,
    by: Annotated[str, typer.Option(help="relation, source or type.")] = "relation",
    ranking: Annotated[
        str | None, typer.Option(help="filtered or raw; without it, what each run was made with.")
    ] = None,
    k: Annotated[int, typer.Option(help="Also P@k, for this k.", min=1)] = 1,
    relations: options.Relations = None,
    wording: Annotated[
        bool,
        typer.Option(
            help="Instead, what other wordings change: agreement of paraphrases, and negated and "
            "misprimed queries beside plain ones."
        ),
    ] = False,
    slices: Annotated[
        bool,
        typer.Option(
            help="Instead, P@k and kinds of wrong answers on slices of the facts: by the gold's "
            "frequency, the subject's length, gold in the subject, type of relation, the fact's "
            "origin."
        ),
    ] = False,
    own: Annotated[
        bool,
        typer.Option(
            help="Each run on all facts that it counts, not on those that every run of the same "
            "data and prompts counts."
        ),
    ] = False,
    conceptnet: Annotated[
        str,
        typer.Option(
            help="ConceptNet's total is the mean over its relations, as the paper's text says, or "
            "over its facts, as the paper's released code counts: relations or facts."
        ),
    ] = "relations",
    published: Annotated[
        bool, typer.Option(help="Add LAMA's Table 2, marked as published (by source or type).")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """P@1, P@10, MRR, macro P@1 and mean rank of finished runs."""
    from lama_core.metrics import AVERAGES, BYS
    from lama_core.probes.kinds import FACT_KINDS
    from lama_core.runs.aligned import align
    from lama_core.runs.find import list_runs, load_run
    from lama_core.runs.info import Run

    grouping = choose(by, BYS, "grouping")
    average = choose(conceptnet, AVERAGES, "average of ConceptNet")
    if run:
        chosen = [load_run(name, kinds=FACT_KINDS) for name in run]
    else:
        listing = list_runs(kinds=FACT_KINDS)
        for problem in listing.problems:
            show.say(problem)
        chosen = [Run(info) for info in listing]
    if not chosen:
        raise UserError("There is no finished run yet: `probe --help` shows how to make one.")
    which = None if ranking is None else choose(ranking, RANKINGS, "ranking")
    names = tuple(relations or ())
    for name in names:
        if not any(name == one.name for run in chosen for one in run.info.relations):
            chosen[0].info.relation(name)
    if wording:
        _print_wording(chosen, which, names, as_json=as_json)
        return
    if not own:
        chosen = list(align(chosen))
        if note := _what_differs(chosen):
            show.say(note)
    if slices:
        _print_slices(chosen, which, k, names, as_json=as_json)
        return
    print_scores(
        chosen, by=grouping, ranking=which, as_json=as_json, k=k, relations=names,
        conceptnet=average,
    )  # fmt: skip
    if not as_json:
        for said in _origins(chosen, which, k, names):
            show.say(said)
    if published and not as_json:
        for one in chosen:
            for line in _missing_of_lama(one):
                show.say(line)
        _print_published(by)


def _what_differs(runs: "Sequence[Run]") -> str:
    """Which facts runs were scored on together, and where they ranked other words."""
    from lama_core.runs.aligned import differing_candidates

    exact_to = [run.info.exact_to for run in runs if run.info.exact_to is not None]
    beside = [run.info for run in runs if run.info.beside]
    if not beside:
        return ""
    said = "Runs of the same data and prompts are scored on the facts that all of them count."
    if exact_to:
        said += (
            " Where they ranked other words they are ranked on those that all ranked: P@k is exact "
            f"up to k = {min(exact_to)}."
        )
    elif any(differing_candidates(info.beside) for info in beside):
        said += " Some of them rank different words: with fewer words every rank is better."
    return f"{said} --own: each on its own."


def _origins(
    runs: "Sequence[Run]", ranking: Ranking | None, k: int, relations: Sequence[str]
) -> list[str]:
    """Of each model whose training sources are known: P@k on facts from them, and on others."""
    from lama_core.metrics.origins import sentence, trained_on

    asked = _asked(runs)
    found = [
        (run.info, trained_on(run, ranking=ranking or run.info.ranking, k=k, relations=relations))
        for run in runs
    ]
    return [
        sentence(one, asked[info.id], k=k, counts=info.counts)
        for info, one in found
        if one is not None
    ]


def _print_wording(
    runs: "Sequence[Run]", ranking: Ranking | None, relations: Sequence[str], *, as_json: bool
) -> None:
    """What other wordings of the same facts change, of the runs that have several."""
    from lama_core import metrics

    agreement = [
        {"run": run.info.id, "model": run.info.model, **asdict(line)}
        for run in runs
        for line in metrics.paraphrase_consistency(run.facts, ranking=ranking or run.info.ranking)
        if not relations or line.relation in relations
    ]
    beside = [
        {**line, "prompts": run.info.prompts}
        for run in runs
        if "plain" in run.facts
        for line in metrics.contrast(run, ranking=ranking or run.info.ranking).to_dict("records")
        if not relations or line["relation"] in relations
    ]
    if as_json:
        show.print_json(plain({"consistency": agreement, "contrast": beside}))
        return
    if not agreement and not beside:
        raise UserError(
            "None of these runs asks a fact in several wordings: run `probe` with --prompts "
            "paraphrases, negated or misprimed."
        )
    if agreement:
        show.print_table(
            ("relation", "model", "consistency", "P@1", "consistent P@1", "facts", "prompts"),
            [
                (line["relation"], line["model"], percent(line["consistency"]),
                 percent(line["accuracy"]), percent(line["consistent_accuracy"]),
                 line["n_facts"], line["n_prompts"])
                for line in agreement
            ],
            title="Pairs of wordings with the same first answer, in percent (Elazar et al. 2021)",
        )  # fmt: skip
    if beside:
        show.print_table(
            ("relation", "model", "prompts", "same first", "Spearman", "P@1 plain", "P@1", "facts"),
            [
                (line["relation"], line["model"], line["prompts"], percent(line["overlap"]),
                 rounding.fixed(line["spearman"], 2), percent(line["plain"]),
                 percent(line["altered"]), line["n"])
                for line in beside
            ],
            title="Negated or misprimed beside plain, in percent (Kassner and Schütze 2020)",
        )  # fmt: skip


def _print_slices(
    runs: "Sequence[Run]", ranking: Ranking | None, k: int, relations: Sequence[str], *,
    as_json: bool,
) -> None:  # fmt: skip
    """P@k and the kinds of wrong answers on slices of the runs' facts."""
    import pandas as pd

    from lama_core.metrics.answers import join_answers
    from lama_core.metrics.slices import slice_table

    readers = [run.info.model for run in runs]
    tables = [
        slice_table(
            join_answers([run], ranking=ranking or run.info.ranking, readers=readers),
            k=k,
            relations=relations,
        )
        for run in runs
    ]
    lines = pd.concat(tables, ignore_index=True).drop(columns="number").to_dict("records")
    if as_json:
        show.print_json(plain(lines))
        return
    asked = _asked(runs)
    guessed = ["chance"] if any(run.info.guessable for run in runs) else []
    show.print_table(
        ("slice by", "slice", "model", "facts", f"P@{k}", "95% interval", *guessed, "macro P@1",
         "wrong", "right type", "another valid", "neither"),
        [
            (line["by"], line["slice"], asked[line["run"]], f"{line['n']:,}",
             percent(line["p_at_k"]), _interval(line["low"], line["high"]),
             *(_guessed(line, name) for name in guessed), percent(line["macro_p_at_1"]),
             f"{line['n_wrong']:,}",
             *(percent(line[kind]) for kind in ("right_type", "another_valid", "neither")))
            for line in lines
        ],
        title="Over facts, not relations; right type, another valid and neither are shares of the "
        "wrong first answers; all in percent",
    )  # fmt: skip


def compare(
    run_a: Annotated[str, typer.Argument(help="The run to compare with.")],
    run_b: Annotated[str, typer.Argument(help="The run that is compared.")],
    ranking: options.Ranking = "filtered",
    k: Annotated[int, typer.Option(help="Right is: among the k best.", min=1)] = 1,
    relations: options.Relations = None,
    slices: Annotated[
        bool,
        typer.Option(
            "--slices/--no-slices",
            help="Instead, the difference on slices of the facts, as of `results --slices`.",
        ),
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Two runs on the same facts: differences with intervals, McNemar's test, the facts that flip.

    Differences are B minus A. Over facts, each counting the same: Tango's 95% score interval of
    paired shares and McNemar's exact test. Over relations, each counting the same: Student's
    interval and t-test.
    """
    from lama_core import metrics
    from lama_core.metrics.comparison import what_differs
    from lama_core.probes.kinds import FACT_KINDS
    from lama_core.runs.aligned import align, differing_candidates
    from lama_core.runs.find import load_run

    a, b = (load_run(name, kinds=FACT_KINDS) for name in (run_a, run_b))
    if differing_candidates((a.info, b.info)):
        a, b = align((a, b))
    which = choose(ranking, RANKINGS, "ranking")
    if slices:
        _print_differences(a, b, which, k, relations or (), as_json=as_json)
        return
    found = metrics.compare(a, b, ranking=which, k=k, relations=relations)
    flips = found.flips
    if as_json:
        show.print_json(
            {
                "a": a.info.id,
                "b": b.info.id,
                "ranking": ranking,
                "k": k,
                "over_facts": {
                    "unit": found.unit,
                    **_difference(found.over_facts),
                    "test": "McNemar, exact",
                    "p": found.mcnemar.p,
                },
                "over_relations": {
                    "unit": "relation",
                    **_ends_flat(found.over_relations),
                    "test": "Student's t",
                },
                "relations": [_difference(line) for line in found.relations],
                "mcnemar": {
                    "only_a": found.mcnemar.only_a,
                    "only_b": found.mcnemar.only_b,
                    "p": found.mcnemar.p,
                },
                "agreement": plain(asdict(found.agreement)),
                "n_unpaired": found.n_unpaired,
                "flips": [_flip(row) for row in flips.to_dict("records")],
            }
        )
        return
    print(f"A: {a.info.label} ({a.info.id})\nB: {b.info.label} ({b.info.id})\n")
    if note := what_differs(a.info, b.info):
        show.say(note)
    unit = found.units
    show.print_table(
        ("relation", unit, "A", "B", "B - A", "95% interval", "only A", "only B"),
        [
            (
                line.relation,
                line.n,
                percent(line.a),
                percent(line.b),
                rounding.percent(line.difference, signed=True),
                _signed(line.interval),
                line.only_a,
                line.only_b,
            )
            for line in found.relations
        ],
        title=f"P@{k} in percent, {ranking} ranking; each relation over its {unit}, "
        "Tango's intervals of paired shares",
    )
    whole, mean = found.over_facts, found.over_relations
    show.print_table(
        ("over", "n", "A", "B", "B - A", "95% interval", "for A", "for B", "test", "p"),
        [
            (unit, whole.n, percent(whole.a), percent(whole.b),
             rounding.percent(whole.difference, signed=True), _signed(whole.interval),
             whole.only_a, whole.only_b, "McNemar, exact", f"{found.mcnemar.p:.3g}"),
            ("relations", mean.n, percent(mean.a), percent(mean.b),
             rounding.percent(mean.difference, signed=True), _signed(mean.interval),
             mean.ahead_a, mean.ahead_b, "Student's t",
             "" if mean.p != mean.p else f"{mean.p:.3g}"),
        ],
        title=f"\nAll relations: each of the {unit} counts the same, or each relation",
    )  # fmt: skip
    agreed = found.agreement
    print(
        f"\nThe same first answer on {percent(agreed.same_first)}% of the {unit}; kappa of being "
        f"right {rounding.fixed(agreed.kappa, 2)}; {found.n_unpaired:,} rows that only one run "
        "counts are left out"
    )
    shown = [_flip(row) for row in flips.head(HELD_BACK).to_dict("records")]
    if shown:
        show.print_table(
            ("right", "relation", "query", "gold", "A says", "B says"),
            [
                [flip[name] for name in ("right", "relation", "query", "object", "a", "b")]
                for flip in shown
            ],
            title=f"\nThe facts that flip ({len(shown)} of {len(flips):,})",
        )


def _print_differences(
    a: "Run", b: "Run", ranking: Ranking, k: int, relations: Sequence[str], *, as_json: bool
) -> None:
    """P@k of B less that of A on slices of the facts that both count."""
    from lama_core.metrics import Interval
    from lama_core.metrics.answers import join_answers
    from lama_core.metrics.slices import slice_differences

    table = slice_differences(join_answers([a, b], ranking=ranking), k=k, relations=relations)
    lines = table.to_dict("records")
    if as_json:
        show.print_json({"a": a.info.id, "b": b.info.id, "k": k, "slices": plain(lines)})
        return
    print(f"A: {a.info.label} ({a.info.id})\nB: {b.info.label} ({b.info.id})\n")
    show.print_table(
        ("slice by", "slice", "facts", "A", "B", "B - A", "95% interval", "only A", "only B"),
        [
            (line["by"], line["slice"], f"{line['n']:,}", percent(line["a"]), percent(line["b"]),
             rounding.percent(line["difference"], signed=True),
             _signed(Interval(line["low"], line["high"])), line["only_a"], line["only_b"])
            for line in lines
        ],
        title=f"P@{k} in percent, {ranking} ranking, over the facts that both count; Tango's "
        "intervals of paired shares",
    )  # fmt: skip


def print_scores(
    runs: "Sequence[Run]",
    *,
    by: "By",
    ranking: Ranking | None,
    as_json: bool,
    k: int = 1,
    relations: Sequence[str] = (),
    conceptnet: "Average" = "relations",
) -> None:
    """The score table of some runs, as JSON or as text. ranking: None is each run's own.

    k: with one above 1, P@k is added. relations: () is all. conceptnet: see `score_table`.
    """
    import pandas as pd

    from lama_core.metrics import METRICS, score_table
    from lama_core.metrics.intervals import METHOD, METHOD_OF_MEANS

    tables = [
        score_table(
            [run], by=by, ranking=ranking or run.info.ranking, k=k, relations=relations,
            conceptnet=conceptnet,
        )
        for run in runs
    ]  # fmt: skip
    table = pd.concat(tables, ignore_index=True)
    named = "relation" if by == "relation" else "source"
    more = ["p_at_k", "low", "high"] if k > 1 else []
    ranked = ["n_answers"] if by == "relation" else []
    guessed = [*ranked, "chance"] if any(run.info.guessable for run in runs) else []
    if as_json:
        printed = [name for name, metric in METRICS.items() if metric.in_json]
        over = [] if by == "relation" else ["n_relations", "mean_over"]
        names = [
            "run",
            "model",
            "dataset",
            named,
            "type",
            *over,
            "n",
            "n_excluded",
            *printed,
            *more,
            *guessed,
        ]
        lines = table[names].to_dict("records")
        for line in lines:
            if line.get("n_answers", math.nan) == line.get("n_answers"):
                line["n_answers"] = int(line["n_answers"])
        show.print_json(plain(lines))
        return
    first, *others = METRICS.values()
    asked = _asked(runs)
    heads = {"n_answers": "answers", "chance": "chance"}
    right = (
        "n", "excluded", f"P@{k}", "95% interval", *(heads[name] for name in guessed),
        *(metric.label for metric in others),
    )  # fmt: skip
    show.print_table(
        (named, "type", "model", *right),
        [
            (
                f"{line[named]} {line['label']}".strip() + _averaged(line),
                line["type"] if isinstance(line["type"], str) else "",
                asked[line["run"]],
                f"{line['n']:,}",
                f"{line['n_excluded']:,}",
                first.shown(line["p_at_k"]),
                _interval(line["low"], line["high"]),
                *(_guessed(line, name) for name in guessed),
                *(metric.shown(line[metric.name]) for metric in others),
            )
            for line in table.to_dict("records")
        ],
        title=f"By {by}, {ranking or 'own'} ranking; P@ and Freq in percent; "
        + (f"chance: P@{k} of a random order; " if guessed else "")
        + "intervals: "
        + (METHOD if by == "relation" else METHOD_OF_MEANS),
    )
    if by == "relation" and not relations and k == 1:
        for run in runs:
            _print_means(run, ranking or run.info.ranking, conceptnet)


def _guessed(line: Mapping[Hashable, Any], name: str) -> str:
    """The number of answers, or the chance level in percent; empty where a run doesn't say."""
    value = line[name]
    if value != value:
        return ""
    return percent(value) if name == "chance" else f"{int(value):,}"


def _asked(runs: "Sequence[Run]") -> dict[str, str]:
    """Run -> its model, the prompts if not the manual ones, and how it was computed if unusual."""
    asked = {}
    for run in runs:
        info = run.info
        prompts = "" if info.prompts == "manual" else f", {info.prompts}"
        asked[info.id] = info.model + prompts + show.computed(info.precision, info.device)
    return asked


def _averaged(line: Mapping[Hashable, Any]) -> str:
    """Which of its two totals a line of ConceptNet is; nothing of the other lines."""
    from lama_core.metrics.tables import CONCEPTNET

    both = line["source"] == CONCEPTNET and "mean_over" in line
    return f" (mean over {line['mean_over']})" if both else ""


def _print_means(run: "Run", ranking: Ranking, conceptnet: "Average") -> None:
    from lama_core import metrics

    table = metrics.score_table([run], by="source", ranking=ranking, conceptnet=conceptnet)
    means = table.to_dict("records")
    for line in means:
        if not line["n"]:
            print(f"{run.info.model}, {line['source']}: no mean, all its facts were left out")
            continue
        over = f"{line['n_relations']} relations"
        if line["mean_over"] == "facts":
            over = f"{line['n']:,} facts of {over}"
        print(
            f"{run.info.model}, {line['source']}: mean P@1 over {over} "
            f"{percent(line['p_at_1'])} ({_interval(line['low'], line['high'])}), "
            f"P@10 {percent(line['p_at_10'])}"
        )


def _missing_of_lama(run: "Run") -> list[str]:
    """What a run on a part of LAMA doesn't have of what the published numbers are of."""
    from lama_core.papers.published import lama_shares

    info = run.info
    counts = [(one.source, one.n + one.n_excluded) for one in info.relations]
    shares = lama_shares(info.dataset, counts) if info.prompts == "manual" else ()
    return [f"{info.id}: partial LAMA, {share}" for share in shares if share.lacks]


def _print_published(by: str) -> None:
    from lama_core.papers.published import published_scores

    table = published_scores()
    if by == "source":
        table = table[table["type"].isna() & table["relation"].isna()]
    named = ("source", "relation", "type", "model")
    show.print_table(
        (*named, "n", "P@1"),
        [
            (
                *(line[name] if isinstance(line[name], str) else "" for name in named),
                f"{line['n']:,}",
                percent(line["p_at_1"]),
            )
            for line in table.to_dict("records")
        ],
        title="\nPublished: Petroni et al. 2019, Table 2; P@1 in percent",
    )


def _difference(line: "Difference") -> dict[str, Any]:
    known = _ends_flat(line)
    last = {name: known.pop(name) for name in ("only_a", "only_b")}
    return {**known, "relation": line.relation or None, **last}


def _ends_flat(line: "Difference | MeanDifference") -> dict[str, Any]:
    """A line as a record, with the ends of its interval beside its values."""
    known: dict[str, Any] = {}
    for name, value in asdict(line).items():
        known |= value if name == "interval" else {name: value}
    return {name: plain(value) for name, value in known.items()}


def _signed(interval: "Interval") -> str:
    """`-1.2 to +3.4`; empty where there is none."""
    low, high = interval.low, interval.high
    return (
        "" if low != low else " to ".join(rounding.percent(end, signed=True) for end in (low, high))
    )


def _flip(row: Mapping[Hashable, Any]) -> dict[str, Any]:
    known = {name: row[name] for name in ("fact_id", "relation", "query", "object")}
    first = {"a": row["first_a"], "b": row["first_b"]}
    ranks = {name: int(row[name]) for name in ("rank_a", "rank_b")}
    return {"right": "A" if row["right_a"] else "B", **known, **first, **ranks}


def _interval(low: float, high: float) -> str:
    """`12.0 to 15.5`; empty where no fact counts."""
    return "" if low != low else f"{percent(low)} to {percent(high)}"
