"""`results`, `compare` and `reproduce`: what finished runs say, beside each other and papers."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from lama_core.asking.ranking import RANKINGS, Ranking
from lama_core.errors import UserError, did_you_mean

if TYPE_CHECKING:
    from lama_core.metrics.tables import By
    from lama_core.runs.records import Run

BYS = ("relation", "source", "type")
FIGURES = ("p_at_1", "p_at_10", "mrr", "macro_p_at_1", "mean_rank")
FLIP_COLUMNS = ("right", "relation", "query", "object", "a", "b")
HELD_BACK = 40  # flips that `compare` prints; --json has them all


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(epilog="Example: python -m lama_core results --by source")(results)
    app.command(epilog="Example: python -m lama_core compare RUN_A RUN_B")(compare)
    app.command(epilog="Example: python -m lama_core reproduce petroni2019")(reproduce)


def results(
    run: Annotated[
        list[str] | None,
        typer.Argument(help="Names of runs (or how they begin), or their folders; none is all."),
    ] = None,
    by: Annotated[str, typer.Option(help="relation, source or type.")] = "relation",
    ranking: Annotated[
        str | None, typer.Option(help="filtered or raw; without it, what each run was made with.")
    ] = None,
    published: Annotated[
        bool, typer.Option(help="Add LAMA's Table 2, marked as published (by source or type).")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """P@1, P@10, MRR, macro P@1 and mean rank of finished runs."""
    from lama_core.cli.probe import _say
    from lama_core.runs.records import Run, list_runs, load_run

    if by not in BYS:
        raise UserError(f"Unknown grouping {by!r}{did_you_mean(by, BYS)}: choose {', '.join(BYS)}.")
    if run:
        chosen = [load_run(name) for name in run]
    else:
        listing = list_runs()
        for problem in listing.problems:
            _say(problem)
        chosen = [Run(info) for info in listing]
    if not chosen:
        raise UserError("There is no finished run yet: `probe --help` shows how to make one.")
    which = None if ranking is None else parse_ranking(ranking)
    print_scores(chosen, by=by, ranking=which, as_json=as_json)
    if published and not as_json:
        _print_published(by)


def compare(
    run_a: Annotated[str, typer.Argument(help="The run to compare with.")],
    run_b: Annotated[str, typer.Argument(help="The run that is compared.")],
    ranking: Annotated[str, typer.Option(help="filtered or raw.")] = "filtered",
    k: Annotated[int, typer.Option(help="Right is: among the k best.", min=1)] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Two runs on the same facts: differences with intervals, McNemar's test, the facts that flip.

    Differences are B minus A; intervals are 95% bootstrap intervals over facts.
    """
    from lama_core import metrics
    from lama_core.cli import show
    from lama_core.runs.records import load_run

    a, b = load_run(run_a), load_run(run_b)
    found = metrics.compare(a, b, ranking=parse_ranking(ranking), k=k)
    flips = found.flips
    if as_json:
        show.print_json(
            {
                "a": a.info.id,
                "b": b.info.id,
                "ranking": ranking,
                "k": k,
                "total": _difference(found.total),
                "relations": [_difference(line) for line in found.relations],
                "mcnemar": {
                    "only_a": found.mcnemar.only_a,
                    "only_b": found.mcnemar.only_b,
                    "p": found.mcnemar.p,
                },
                "agreement": {
                    name: _number(getattr(found.agreement, name))
                    for name in found.agreement.__dataclass_fields__
                },
                "n_unpaired": found.n_unpaired,
                "flips": [_flip(row) for _, row in flips.iterrows()],
            }
        )
        return
    print(f"A: {a.info.label} ({a.info.id})\nB: {b.info.label} ({b.info.id})\n")
    lines = [*found.relations, found.total]
    show.print_table(
        ("relation", "n", "A", "B", "B - A", "95% interval", "only A", "only B"),
        [
            (
                line.relation or "mean over relations",
                line.n,
                _percent(line.a),
                _percent(line.b),
                f"{100 * line.difference:+.1f}",
                f"{100 * line.interval.low:+.1f} to {100 * line.interval.high:+.1f}",
                line.only_a,
                line.only_b,
            )
            for line in lines
        ],
        title=f"P@{k} in percent, {ranking} ranking",
        right=("n", "A", "B", "B - A", "95% interval", "only A", "only B"),
    )
    test, agreed = found.mcnemar, found.agreement
    print(
        f"\nMcNemar's exact test: {test.only_a:,} facts only A gets right, {test.only_b:,} only B, "
        f"p = {test.p:.3g}"
    )
    print(
        f"The same first answer on {_percent(agreed.same_first)}% of the facts; kappa of being "
        f"right {agreed.kappa:.2f}; {found.n_unpaired:,} rows that only one run counts are left out"
    )
    shown = [_flip(row) for _, row in flips.head(HELD_BACK).iterrows()]
    if shown:
        show.print_table(
            ("right", "relation", "query", "gold", "A says", "B says"),
            [
                (
                    flip["right"],
                    flip["relation"],
                    flip["query"],
                    flip["object"],
                    flip["a"],
                    flip["b"],
                )
                for flip in shown
            ],
            title=f"\nThe facts that flip ({len(shown)} of {len(flips):,})",
        )


def reproduce(
    paper: Annotated[str, typer.Argument(help="petroni2019, jiang2020 or rezaee2022.")],
    dataset: Annotated[
        str | None, typer.Option(help="The data to use: a name or a folder; else it is fetched.")
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option(help="Also this model, without a published value.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(help="The first so many facts of each relation.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Fetch, run, and print our numbers beside a paper's; what can't be had is listed with why."""
    from dataclasses import asdict

    from lama_core.cli import show
    from lama_core.cli.probe import _bar, _say
    from lama_core.papers.petroni2019 import ReproduceOptions, find_reproduction

    run = find_reproduction(paper)
    options = ReproduceOptions(dataset, tuple(model or ()), limit)
    with _bar(paper) as on_progress, show.progress() as on_fetch:
        found = run(options, on_progress=on_progress, on_fetch=on_fetch, on_note=_say)
    if as_json:
        show.print_json(
            {
                "paper": found.paper,
                "notes": list(found.notes),
                "rows": [
                    {name: _number(value) for name, value in asdict(row).items()}
                    | {"difference": row.difference}
                    for row in found.rows
                ],
            }
        )
        return
    print(found.citation)
    for note in found.notes:
        print(note)
    reasons = list(dict.fromkeys(row.reason for row in found.rows if row.reason))
    show.print_table(
        ("table", "model", "what", "n", "ours", "paper", "difference", "not run"),
        [
            (
                row.table,
                row.model,
                row.what,
                row.n or "",
                _shown(row.ours),
                _shown(row.published),
                "" if row.difference is None else f"{row.difference:+.1f}",
                f"[{reasons.index(row.reason) + 1}]" if row.reason else "",
            )
            for row in found.rows
        ],
        title="\nIn percent: P@1, or accuracy for analogies",
        right=("n", "ours", "paper", "difference"),
    )
    for number, reason in enumerate(reasons, start=1):
        print(f"[{number}] {reason}")


def print_scores(runs: "Sequence[Run]", *, by: str, ranking: Ranking | None, as_json: bool) -> None:
    """The score table of some runs, as JSON or as text. ranking: None is each run's own."""
    import pandas as pd

    from lama_core import metrics
    from lama_core.cli import show

    tables = [
        metrics.score_table([run], by=cast("By", by), ranking=ranking or run.info.ranking)
        for run in runs
    ]
    table = pd.concat(tables, ignore_index=True)
    named = ["relation"] if by == "relation" else ["source"]
    names = ["run", "model", "dataset", *named, "type", "n", "n_excluded", *FIGURES]
    if as_json:
        records = table[names].to_dict("records")
        show.print_json([{str(k): _number(v) for k, v in line.items()} for line in records])
        return
    show.print_table(
        (*named, "type", "model", "n", "excluded", "P@1", "95% interval", "P@10", "MRR", "macro",
         "mean rank", "Freq"),
        [
            (
                f"{line[named[0]]} {line['label']}".strip(),
                line["type"] if isinstance(line["type"], str) else "",
                line["model"],
                f"{line['n']:,}",
                f"{line['n_excluded']:,}",
                _percent(line["p_at_1"]),
                _interval(line["low"], line["high"]),
                _percent(line["p_at_10"]),
                "" if math.isnan(line["mrr"]) else f"{line['mrr']:.3f}",
                _percent(line["macro_p_at_1"]),
                "" if math.isnan(line["mean_rank"]) else f"{line['mean_rank']:,.0f}",
                _percent(line["freq"]),
            )
            for line in table.to_dict("records")
        ],
        title=f"By {by}, {ranking or 'own'} ranking; P@ and Freq in percent",
        right=("n", "excluded", "P@1", "95% interval", "P@10", "MRR", "macro", "mean rank", "Freq"),
    )  # fmt: skip
    if by == "relation":
        for run in runs:
            _print_means(run, ranking or run.info.ranking)


def _print_means(run: "Run", ranking: Ranking) -> None:
    from lama_core import metrics

    means = metrics.score_table([run], by="source", ranking=ranking).to_dict("records")
    for line in means:
        if not line["n"]:
            print(f"{run.info.model}, {line['source']}: no mean, all its facts were left out")
            continue
        print(
            f"{run.info.model}, {line['source']}: mean P@1 over {line['n_relations']} relations "
            f"{_percent(line['p_at_1'])} ({_interval(line['low'], line['high'])}), "
            f"P@10 {_percent(line['p_at_10'])}"
        )


def _print_published(by: str) -> None:
    from lama_core.cli import show
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
                _percent(line["p_at_1"]),
            )
            for line in table.to_dict("records")
        ],
        title="\nPublished: Petroni et al. 2019, Table 2; P@1 in percent",
        right=("n", "P@1"),
    )


def parse_ranking(text: str) -> Ranking:
    """`filtered` or `raw`. Raises UserError for anything else."""
    for ranking in RANKINGS:
        if text == ranking:
            return ranking
    raise UserError(
        f"Unknown ranking {text!r}{did_you_mean(text, RANKINGS)}: choose filtered or raw."
    )


def _difference(line: object) -> dict[str, object]:
    from lama_core.metrics import Difference

    assert isinstance(line, Difference)
    return {
        "relation": line.relation or None,
        "n": line.n,
        "a": line.a,
        "b": line.b,
        "difference": line.difference,
        "low": _number(line.interval.low),
        "high": _number(line.interval.high),
        "only_a": line.only_a,
        "only_b": line.only_b,
    }


def _flip(row: object) -> dict[str, object]:
    import pandas as pd

    assert isinstance(row, pd.Series)
    return {
        "right": "A" if row["right_a"] else "B",
        "fact_id": row["fact_id"],
        "relation": row["relation"],
        "query": row["query"],
        "object": row["object"],
        "a": row["first_a"],
        "b": row["first_b"],
        "rank_a": int(row["rank_a"]),
        "rank_b": int(row["rank_b"]),
    }


def _number(value: object) -> object:
    """A value as JSON takes it: plain numbers, null for what is not a number."""
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and math.isnan(value) else value


def _percent(value: float) -> str:
    return "" if math.isnan(value) else f"{100 * value:.1f}"


def _interval(low: float, high: float) -> str:
    """`12.0 to 15.5`; empty where no fact counts."""
    return "" if math.isnan(low) else f"{_percent(low)} to {_percent(high)}"


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"
