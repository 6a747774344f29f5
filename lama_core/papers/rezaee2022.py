"""Rezaee and Camacho-Collados, Table 1, done again: ours beside the paper's, by kind of relation.

The paper's models are RoBERTa-base, RoBERTa-large, RelBERT and fastText. What can't be had stays a
line, with the reason. Where the paper leaves a choice open (see `probes` and `supervised`), the
project's defaults are used, so a difference of a few points is no failure.
"""

import time
from collections.abc import Callable
from typing import Any

from lama_core.datasets import load_analogies
from lama_core.errors import UserError
from lama_core.models.sources import OnProgress, silent
from lama_core.papers.petroni2019 import OnFetch, ReproducedRow, ReproduceOptions, Reproduction
from lama_core.papers.published import published_table
from lama_core.probes.analogy.opening import open_judge
from lama_core.probes.analogy.records import SETTINGS, ProbeOptions, ProbeRun
from lama_core.probes.analogy.run import Work, run_probes
from lama_core.probes.analogy.tables import PAPER, SHOWN, accuracies
from lama_core.runs.pipeline import Progress

TABLE = "Table 1"
DATASET = "bats"
# The paper's name -> how it is opened; None where a user has to bring it.
JUDGES: dict[str, tuple[str, str] | None] = {
    "RoBERTa-base": ("model", "roberta-base"),
    "RoBERTa-large": ("model", "roberta-large"),
    "RelBERT": ("relbert", "relbert/relbert-roberta-large"),
    "fastText": None,
}
NO_VECTORS = (
    "its vectors are a download of several gigabytes: get wiki-news-300d-1M.vec, then run "
    "`analogy probe --dataset bats --vectors FILE --setting both`"
)


def reproduce(
    options: ReproduceOptions,
    *,
    on_progress: Callable[[Any], None] | None = None,
    on_fetch: OnFetch | None = None,
    on_note: Callable[[str], None] | None = None,
) -> Reproduction:
    """Table 1: every model that can be had, and why the others can't."""
    table = published_table(PAPER, "table1")
    notes = [
        "Accuracy in percent; random is the mean of random-head and random-tail; sum of the "
        "log-probabilities; supervised: last layer, mean of pieces, 100 hidden units, five seeds."
    ]
    judges = JUDGES | {name: ("model", name) for name in options.models}
    try:
        dataset = load_analogies(options.dataset or _fetch(on_fetch))
    except UserError as error:
        missing = [row for name in judges for row in _rows(name, {}, str(error))]
        return Reproduction(PAPER, table.citation, tuple(missing), tuple(notes))
    if options.limit is not None:
        notes.append(f"At most {options.limit:,} instances of each relation, drawn at random.")
    if options.dataset is not None:
        notes.append("The paper's numbers are on BATS 3.0; other data don't compare with them.")
    work = Work(dataset, settings=SETTINGS, options=ProbeOptions(limit=options.limit))
    rows: list[ReproducedRow] = []
    for name, how in judges.items():
        if how is None:
            rows += _rows(name, {}, NO_VECTORS)
            continue
        try:
            judge, of_it = open_judge(*how, work, on_progress=on_fetch or silent)
            runs = run_probes(judge, of_it, on_progress=_adapter(on_progress))
        except UserError as error:
            rows += _rows(name, {}, str(error))
            continue
        if on_note is not None:
            for reason in {one.reason for run in runs for one in run.details.left_out}:
                on_note(reason)
        rows += _rows(name, _ours(runs), "no relation of this kind")
    return Reproduction(PAPER, table.citation, tuple(rows), tuple(notes))


def _ours(runs: tuple[ProbeRun, ...]) -> dict[tuple[str, str, str], tuple[float, int]]:
    """(setting, probe, kind) -> accuracy in percent and the number of decisions."""
    return {
        (line.setting, line.probe, line.name): (100 * line.accuracy, line.n)
        for line in accuracies(runs, by="kind")
    }


def _rows(
    model: str, ours: dict[tuple[str, str, str], tuple[float, int]], reason: str
) -> list[ReproducedRow]:
    """A model's lines of Table 1; without our number each has the reason."""
    table = published_table(PAPER, "table1")
    kinds = dict.fromkeys(str(row.labels[0]) for row in table.rows)
    known = any(row.labels[1] == model for row in table.rows)
    rows = []
    for setting in SETTINGS:
        for probe in SHOWN:
            for kind in kinds:
                column = f"{setting} {probe}"
                published = table.value(column, kind=kind, model=model) if known else None
                value, n = ours.get((setting, probe, kind), (None, 0))
                rows.append(
                    ReproducedRow(
                        TABLE,
                        model,
                        f"{kind}, {column}",
                        n,
                        value,
                        published,
                        reason if value is None else "",
                    )
                )
    return rows


def _fetch(on_fetch: OnFetch | None) -> str:
    """BATS, fetched if it isn't here. Raises UserError if it can't be had."""
    from lama_core.datasets.library.download import get_dataset
    from lama_core.datasets.library.installed import analogy_names

    if DATASET in analogy_names():
        return DATASET
    get_dataset(DATASET, on_progress=on_fetch or silent)
    return DATASET


def _adapter(on_progress: Callable[[Any], None] | None) -> OnProgress:
    """Progress of probes as progress of runs."""
    if on_progress is None:
        return silent
    began = time.perf_counter()

    def report(stage: str, done: int, total: int | None) -> None:
        seconds = time.perf_counter() - began
        rate = done / seconds if seconds else 0.0
        left = ((total or 0) - done) / rate if rate else None
        on_progress(Progress(stage, done, total or 0, rate, left, 0))

    return report
