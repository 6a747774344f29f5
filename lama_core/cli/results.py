"""What `results` and `compare` print."""

from collections.abc import Hashable, Mapping
from dataclasses import replace
from math import isnan
from typing import Any

from lama_core import rounding
from lama_core.api import results as api
from lama_core.api.results import (
    CONCEPTNET,
    METHOD,
    METHOD_OF_MEANS,
    Compared,
    ComparedSlices,
    Interval,
    Results,
    ResultsRequest,
    Slices,
    Wordings,
    model_names,
    relations_counted,
    what_differs,
)
from lama_core.api.runs import Runs
from lama_core.cli import commands, output
from lama_core.cli.output import percent

HELD_BACK = 40  # flips that `compare` prints; --json has them all


def results_of(runs: Runs) -> Results:
    """Return the scores of finished runs by relation, each in its request's ranking."""
    ranking = getattr(runs.request, "ranking", None)
    return Results(ResultsRequest(ranking=ranking), runs.runs)


def print_runs(runs: Runs) -> None:
    """Print the score table of runs that a command made."""
    print_results(results_of(runs))


def runs_json(runs: Runs) -> object:
    """Return what a command that makes runs prints with `--json`."""
    return results_of(runs).to_json()


def print_results(found: Results | Wordings | Slices) -> None:
    """Print whichever table of `results` was chosen."""
    if isinstance(found, Wordings):
        _print_wordings(found)
    elif isinstance(found, Slices):
        _print_slices(found)
    else:
        _print_scores(found)
        for said in found.origins():
            output.say(said)
        if found.request.published:
            for line in found.missing_of_lama():
                output.say(line)
            _print_published(found)


def _print_scores(found: Results) -> None:
    request = found.request
    first, *others = found.figures
    others = [metric for metric in others if found.frame[metric.name].notna().any()]
    names, guessed = model_names(found.runs), found.chance_columns
    heads = {"n_answers": "answers", "chance": "chance"}
    named = "relation" if request.by == "relation" else "source"
    output.print_table(
        (
            named,
            "type",
            "model",
            "n",
            "excluded",
            f"P@{request.k}",
            "95% interval",
            *(heads[name] for name in guessed),
            *(metric.label for metric in others),
        ),
        [
            (
                f"{line[named]} {line['label']}".strip() + _averaged(line),
                line["type"] if isinstance(line["type"], str) else "",
                names[line["run"]],
                f"{line['n']:,}",
                f"{line['n_excluded']:,}",
                first.shown(line["p_at_k"]),
                _interval(line["low"], line["high"]),
                *(_guessed(line, name) for name in guessed),
                *(metric.shown(line[metric.name]) for metric in others),
            )
            for line in found.frame.to_dict("records")
        ],
        title=f"By {request.by}, {request.ranking or 'own'} ranking; P@ and Freq in percent; "
        + (f"chance: P@{request.k} of a random order; " if guessed else "")
        + "intervals: "
        + (METHOD if request.by == "relation" else METHOD_OF_MEANS),
    )
    if request.by == "relation" and not request.relations and request.k == 1:
        _print_means(Results(replace(request, by="source"), found.runs))


def _print_means(found: Results) -> None:
    for line in found.frame.to_dict("records"):
        if not line["n"]:
            print(f"{line['model']}, {line['source']}: no mean, all its facts were excluded")
            continue
        over = _counted(line) or f"{line['n_relations']} relations"
        if line["mean_over"] == "facts":
            over = f"{line['n']:,} facts of {over}"
        print(
            f"{line['model']}, {line['source']}: mean P@1 over {over} "
            f"{percent(line['p_at_1'])} ({_interval(line['low'], line['high'])})"
            + ("" if isnan(line["p_at_10"]) else f", P@10 {percent(line['p_at_10'])}")
        )


def _print_wordings(found: Wordings) -> None:
    if found.agreement:
        output.print_table(
            ("relation", "model", "consistency", "P@1", "consistent P@1", "facts", "prompts"),
            [
                (
                    line["relation"],
                    line["model"],
                    percent(line["consistency"]),
                    percent(line["accuracy"]),
                    percent(line["consistent_accuracy"]),
                    line["n_facts"],
                    line["n_prompts"],
                )
                for line in found.agreement
            ],
            title="Pairs of wordings with the same first answer, in percent (Elazar et al. 2021)",
        )
    if found.altered:
        output.print_table(
            ("relation", "model", "prompts", "same first", "Spearman", "P@1 plain", "P@1", "facts"),
            [
                (
                    line["relation"],
                    line["model"],
                    line["prompts"],
                    percent(line["overlap"]),
                    rounding.fixed(line["spearman"], 2),
                    percent(line["plain"]),
                    percent(line["altered"]),
                    line["n"],
                )
                for line in found.altered
            ],
            title="Negated or misprimed compared with plain, in percent (Kassner and Schütze 2020)",
        )


def _print_slices(found: Slices) -> None:
    names = model_names(found.runs)
    guessed = ["chance"] if any(run.info.guessable for run in found.runs) else []
    shares = {
        "right_type": "right type",
        "another_valid": "another valid",
        "neither": "neither",
    }
    output.print_table(
        (
            "slice by",
            "slice",
            "model",
            "facts",
            f"P@{found.request.k}",
            "95% interval",
            *guessed,
            "macro P@1",
            "wrong",
            *shares.values(),
        ),
        [
            (
                line["by"],
                line["slice"],
                names[line["run"]],
                f"{line['n']:,}",
                percent(line["p_at_k"]),
                _interval(line["low"], line["high"]),
                *(_guessed(line, name) for name in guessed),
                percent(line["macro_p_at_1"]),
                f"{line['n_wrong']:,}",
                *(percent(line[kind]) for kind in shares),
            )
            for line in found.frame.to_dict("records")
        ],
        title="Over facts, not relations; right type, another valid and neither are shares of the "
        "wrong first answers; all in percent",
    )
    if note := found.unknown_training():
        output.say(note)


def _print_published(found: Results) -> None:
    named = ("source", "relation", "type", "model")
    output.print_table(
        (*named, "n", "P@1"),
        [
            (
                *(line[name] if isinstance(line[name], str) else "" for name in named),
                f"{line['n']:,}",
                percent(line["p_at_1"]),
            )
            for line in found.published().to_dict("records")
        ],
        title="\nPublished: Petroni et al. 2019, Table 2; P@1 in percent",
    )


def print_compared(found: Compared | ComparedSlices) -> None:
    """Print two runs compared, over all their facts or on slices of them."""
    a, b = found.a.info, found.b.info
    print(f"A: {a.label} ({a.id})\nB: {b.label} ({b.id})\n")
    if isinstance(found, ComparedSlices):
        _print_differences(found)
        return
    if note := what_differs(a, b):
        output.say(note)
    k, ranking = found.request.k, found.request.ranking
    unit = found.found.units
    output.print_table(
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
            for line in found.found.relations
        ],
        title=f"P@{k} in percent, {ranking} ranking; each relation over its {unit}, "
        "Tango's intervals of paired shares",
    )
    whole, mean, mcnemar = found.found.over_facts, found.found.over_relations, found.found.mcnemar
    output.print_table(
        ("over", "n", "A", "B", "B - A", "95% interval", "for A", "for B", "equal", "test", "p"),
        [
            (
                over,
                one.n,
                percent(one.a),
                percent(one.b),
                rounding.percent(one.difference, signed=True),
                _signed(one.interval),
                *for_each,
                test,
                "" if p != p else f"{p:.3g}",
            )
            for over, one, for_each, test, p in (
                (
                    unit,
                    whole,
                    (whole.only_a, whole.only_b, whole.n - whole.only_a - whole.only_b),
                    "McNemar, exact",
                    mcnemar.p,
                ),
                (
                    "relations",
                    mean,
                    (mean.ahead_a, mean.ahead_b, mean.equal),
                    "Student's t",
                    mean.p,
                ),
            )
        ],
        title=f"\nAll relations: each of the {unit} counts the same, or each relation",
    )
    agreed = found.found.agreement
    print(
        f"\nThe same first answer on {percent(agreed.same_first)}% of the {unit}; kappa of being "
        f"right {rounding.fixed(agreed.kappa, 2)}; {found.found.n_unpaired:,} rows that only one "
        "run counts are excluded"
    )
    flips = found.flips()
    if flips:
        output.print_table(
            ("right", "relation", "query", "gold", "A says", "B says"),
            [
                [flip[name] for name in ("right", "relation", "query", "object", "a", "b")]
                for flip in flips[:HELD_BACK]
            ],
            title=f"\nThe facts that flip ({min(HELD_BACK, len(flips))} of {len(flips):,})",
        )


def _print_differences(found: ComparedSlices) -> None:
    output.print_table(
        ("slice by", "slice", "facts", "A", "B", "B - A", "95% interval", "only A", "only B"),
        [
            (
                line["by"],
                line["slice"],
                f"{line['n']:,}",
                percent(line["a"]),
                percent(line["b"]),
                rounding.percent(line["difference"], signed=True),
                _signed(Interval(line["low"], line["high"])),
                line["only_a"],
                line["only_b"],
            )
            for line in found.frame.to_dict("records")
        ],
        title=f"P@{found.request.k} in percent, {found.request.ranking} ranking, over the facts "
        "that both count; Tango's intervals of paired shares",
    )


def _guessed(line: Mapping[Hashable, Any], name: str) -> str:
    """The number of answers, or the chance level in percent; empty where unknown."""
    value = line[name]
    if value != value:
        return ""
    return percent(value) if name == "chance" else f"{int(value):,}"


def _averaged(line: Mapping[Hashable, Any]) -> str:
    """What a line is the mean over, where that isn't all relations of its source; else empty.

    ConceptNet's line always says which of its two totals it is.
    """
    if "mean_over" not in line:
        return ""
    which = f"mean over {line['mean_over']}" if line["source"] == CONCEPTNET else ""
    said = "; ".join(filter(None, (which, _counted(line))))
    return f" ({said})" if said else ""


def _counted(line: Mapping[Hashable, Any]) -> str:
    """`2 of 3 relations`, where a relation has no fact that counts."""
    return relations_counted(line["n_relations"], line["of_relations"])


def _signed(interval: Interval) -> str:
    """`-1.2 to +3.4`; empty where there is none."""
    low, high = interval.low, interval.high
    return (
        "" if low != low else " to ".join(rounding.percent(end, signed=True) for end in (low, high))
    )


def _interval(low: float, high: float) -> str:
    """`12.0 to 15.5`; empty where no fact counts."""
    return "" if low != low else f"{percent(low)} to {percent(high)}"


results = commands.make(api.results, print_results, "results --by source")
compare = commands.make(api.compare, print_compared, "compare RUN_A RUN_B")
