"""A paper's tables done again: ours, the paper's, and the difference, line by line.

`petroni2019` is here: LAMA's Table 2 on the published data with the published vocabulary, raw
ranking (what the released code does) and left context for causal models. What can't be fetched or
run stays a line, with the reason. The other papers' reproductions live beside their methods.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from lama_core.asking.ranking import Ranking
from lama_core.errors import UserError, did_you_mean
from lama_core.papers.published import LAMA_MODELS, PublishedRow, PublishedTable, published_table
from lama_core.runs.pipeline import ProbeRequest, Progress, execute, plan
from lama_core.runs.records import Run

# Paper -> the module whose `reproduce` does it.
REPRODUCTIONS = {
    "petroni2019": "lama_core.papers.petroni2019",
    "jiang2020": "lama_core.papers.jiang2020",
    "rezaee2022": "lama_core.papers.rezaee2022",
}

# The released code does not remove the other valid objects, so its numbers are raw.
RANKING: Ranking = "raw"
CANDIDATES = "lama"
NO_DATA = "not in the data that is here"

OnFetch = Callable[[str, int, int | None], None]


@dataclass(frozen=True, slots=True)
class ReproduceOptions:
    """What a user may choose.

    dataset: a name or folder, None fetches the paper's. models: further ones, without a published
    value. limit: facts a relation.
    """

    dataset: str | None = None
    models: tuple[str, ...] = ()
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class ReproducedRow:
    """One number done again, in percent.

    ours: None when it could not be run, and `reason` says why. published: None when the paper has
    none. n: facts that count in ours.
    """

    table: str
    model: str
    what: str
    n: int
    ours: float | None
    published: float | None
    reason: str = ""

    @property
    def difference(self) -> float | None:
        """Ours less the paper's; None where either is missing."""
        if self.ours is None or self.published is None:
            return None
        return self.ours - self.published


@dataclass(frozen=True, slots=True)
class Reproduction:
    """All lines of a paper, and what a reader should know of how they were made."""

    paper: str
    citation: str
    rows: tuple[ReproducedRow, ...]
    notes: tuple[str, ...] = ()


class Reproduce(Protocol):
    """What does a paper again."""

    def __call__(
        self,
        options: ReproduceOptions,
        *,
        on_progress: Callable[[Any], None] | None = None,
        on_fetch: OnFetch | None = None,
        on_note: Callable[[str], None] | None = None,
    ) -> Reproduction:
        """Our numbers beside the paper's."""
        ...


def find_reproduction(paper: str) -> Reproduce:
    """What does the paper called `paper` again. Raises UserError if there is nothing that does."""
    if paper not in REPRODUCTIONS:
        hint = did_you_mean(paper, REPRODUCTIONS)
        raise UserError(f"Unknown paper {paper!r}{hint}: choose {', '.join(REPRODUCTIONS)}.")
    try:
        module = importlib.import_module(REPRODUCTIONS[paper])
    except ModuleNotFoundError as error:
        if error.name != REPRODUCTIONS[paper]:
            raise
        raise UserError(
            f"{paper} can't be reproduced yet: this version does not hold it."
        ) from None
    found: Reproduce = module.reproduce
    return found


def reproduce(
    options: ReproduceOptions,
    *,
    on_progress: Callable[[Progress], None] | None = None,
    on_fetch: OnFetch | None = None,
    on_note: Callable[[str], None] | None = None,
) -> Reproduction:
    """LAMA's Table 2: every model and source that can be had, and why the others can't."""
    from lama_core.datasets import load_dataset

    table = published_table("petroni2019", "table2")
    notes = [
        f"Ranking {RANKING}, as in the released code; candidates: the published vocabulary.",
    ]
    try:
        name = options.dataset or _fetch_data(on_fetch)
        present = set(load_dataset(name).sources())
    except UserError as error:
        return Reproduction(
            table.paper, table.citation, tuple(_all_missing(table, str(error))), tuple(notes)
        )
    if options.limit is not None:
        notes.append(f"Only the first {options.limit:,} facts of each relation.")
    candidates = _vocabulary(name)
    rows: list[ReproducedRow] = []
    freq_done = False
    for column, reference in [*LAMA_MODELS.items(), *((name, name) for name in options.models)]:
        request = ProbeRequest(
            name,
            (reference,),
            candidates=candidates,
            ranking=RANKING,
            context="left",
            limit=options.limit,
        )
        try:
            planned = plan(request, load=_loader(on_fetch))
            run = execute(planned.specs[0], on_progress=on_progress, on_note=on_note)
        except UserError as error:
            rows += _missing_rows(table, column, str(error))
            continue
        if not freq_done:
            rows += _run_rows(table, "Freq", run, present, figure="freq")
            freq_done = True
        rows += _run_rows(table, column, run, present)
    if not freq_done:
        rows += _missing_rows(table, "Freq", "no model could be run, so no facts were selected")
    for column in ("DrQA", "RE_n", "RE_o"):
        rows += _missing_rows(table, column, "a baseline that is no language model; not part of it")
    return Reproduction(table.paper, table.citation, tuple(rows), tuple(notes))


def _run_rows(
    table: PublishedTable, column: str, run: Run, present: set[str], *, figure: str = "p_at_1"
) -> list[ReproducedRow]:
    """One model's column of Table 2, from a run."""
    from lama_core.metrics import score_table

    ours: dict[tuple[str, str | None, str | None], tuple[float, int]] = {}
    for line in score_table([run], by="relation", ranking=RANKING).to_dict("records"):
        ours[line["source"], line["relation"], None] = (line[figure], line["n"])
    for line in score_table([run], by="type", ranking=RANKING).to_dict("records"):
        ours[line["source"], None, line["type"]] = (line[figure], line["n"])
    for line in score_table([run], by="source", ranking=RANKING).to_dict("records"):
        ours[line["source"], None, None] = (line[figure], line["n"])
    rows = []
    for row in table.rows:
        source, relation, kind = (None if v is None else str(v) for v in row.labels[:3])
        published = (
            table.value(column, **dict(zip(table.label_names[:3], row.labels[:3], strict=True)))
            if column in table.columns
            else None
        )
        value, n = ours.get((str(source), relation, kind), (None, 0))
        known = value is not None and n > 0
        reason = "" if known else (NO_DATA if source not in present else "no fact counts")
        rows.append(
            ReproducedRow(
                "Table 2",
                column,
                _what(row),
                n,
                100 * value if value is not None and known else None,
                published,
                reason,
            )
        )
    return rows


def _missing_rows(table: PublishedTable, column: str, reason: str) -> list[ReproducedRow]:
    """A column that could not be run: its published numbers, with the reason."""
    if column not in table.columns:
        return [ReproducedRow("Table 2", column, "", 0, None, None, reason)]
    rows = []
    for row in table.rows:
        labels = dict(zip(table.label_names[:3], row.labels[:3], strict=True))
        published = table.value(column, **labels)
        if published is not None:
            rows.append(ReproducedRow("Table 2", column, _what(row), 0, None, published, reason))
    return rows


def _all_missing(table: PublishedTable, reason: str) -> list[ReproducedRow]:
    return [row for column in table.columns for row in _missing_rows(table, column, reason)]


def _what(row: PublishedRow) -> str:
    source, relation, kind = row.labels[:3]
    return f"{source} {relation or kind or 'total'}"


def _fetch_data(on_fetch: OnFetch | None) -> str:
    """LAMA's data, fetched if it isn't here. Raises UserError if it can't be had."""
    from lama_core.datasets.library.download import get_dataset
    from lama_core.datasets.library.installed import installed_names

    if "lama" not in installed_names():
        get_dataset("lama", on_progress=on_fetch)
    return "lama"


def _vocabulary(dataset: str) -> str:
    """The published vocabulary: the fetched one, or the file that lies in the dataset's folder."""
    from pathlib import Path

    beside = Path(dataset).expanduser() / "common_vocab_cased.txt"
    return f"file:{beside}" if beside.is_file() else CANDIDATES


def _loader(on_fetch: OnFetch | None) -> Callable[..., Any]:
    from lama_core.models.loader import load_model
    from lama_core.models.sources import silent

    return lambda name, precision: load_model(
        name, precision=precision, on_progress=on_fetch or silent
    )
