"""The papers' published numbers, with their source: `assets/published/*.json`.

    petroni2019   Tables 1 to 3, Figure 3; Figures 2 and 4 if the text has their values (LAMA)
    jiang2020     Tables 1 to 15, Figures 1 and 3; what the text says about other figures (LPAQA)
    rezaee2022    Tables 1 and 2, the averages and the frequency test of section 4 (analogy probes)
    wiland2024    the authors' leaderboard (BEAR)

Values are stored as printed, in percent if the paper prints percent. None is a cell that is empty
in the paper, or unreadable according to the table's note.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Literal

import msgspec

from lama_core.errors import UserError, choose
from lama_core.paths import ASSETS

if TYPE_CHECKING:
    import pandas as pd

FOLDER = ASSETS / "published"
OWN = "own_"  # prefix of this project's own results, which are in the same folder
PAPERS = tuple(sorted(x.stem for x in FOLDER.glob("*.json") if not x.stem.startswith(OWN)))
# Names of datasets with LAMA's facts, and the displayed names of Table 2's sources.
LAMA = ("lama", "negated-lama")
SOURCES = {"TREx": "T-REx", "Google_RE": "Google-RE", "ConceptNet": "ConceptNet", "Squad": "SQuAD"}

ValueUnit = Literal["percent", "correlation", "rank", "log-probability", "text", "share", "number"]


@dataclass(frozen=True, slots=True)
class LamaShare:
    """Relations and facts of one source of LAMA: in a dataset or run, and in the paper's Table 2.

    of_relations, of_facts: numbers in Table 2; of_relations is 0 for SQuAD, which has none.
    """

    source: str
    n_relations: int
    of_relations: int
    n_facts: int
    of_facts: int

    @property
    def lacks(self) -> bool:
        """Whether relations or facts are missing."""
        return self.n_relations < self.of_relations or self.n_facts < self.of_facts

    def __str__(self) -> str:
        """`T-REx: 20 of 41 relations, 12,967 of 34,039 facts`."""
        facts = f"{self.n_facts:,} of {self.of_facts:,} facts"
        relations = f"{self.n_relations} of {self.of_relations} relations, "
        return f"{self.source}: {relations if self.of_relations else ''}{facts}"


Label = str | int | None


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """One row of a table.

    labels: the row's labels, in the order of the table's label names. values: one per column, as
    printed. marks: meaning of the paper's marks on the row, such as asterisks.
    """

    labels: tuple[Label, ...]
    values: tuple[int | float | str | None, ...]
    marks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PublishedTable:
    """One table of a paper. metric: what the values measure. labels: names of the rows' labels."""

    id: str
    title: str
    metric: str
    unit: ValueUnit
    labels: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[PublishedRow, ...]
    note: str = ""
    paper: str = ""
    citation: str = ""

    def number(self, column: str, **labels: Label) -> float | None:
        """Return the number in a column of the first row with these labels; None if missing."""
        try:
            return self.value(column, **labels)
        except KeyError:
            return None

    def value(self, column: str, **labels: Label) -> float | None:
        """Return the same as `number`, but raise KeyError if there is no such row or column."""
        for row in self.rows if column in self.columns else ():
            if labels.items() <= dict(zip(self.labels, row.labels, strict=True)).items():
                return self.of_row(row, column)
        raise KeyError(f"{self.paper} {self.id} has no {column} for {labels}")

    def of_row(self, row: PublishedRow, column: str) -> float | None:
        """Return the number in a column of a row; None if it is empty or the column is missing."""
        value = row.values[self.columns.index(column)] if column in self.columns else None
        return None if value is None else float(value)

    def frame(self) -> "pd.DataFrame":
        """Return the table as printed: label columns, then value columns."""
        import pandas as pd

        names = [*self.labels, *self.columns]
        return pd.DataFrame([(*row.labels, *row.values) for row in self.rows], columns=names)


@dataclass(frozen=True)
class TableHead:
    """The description of a table or figure.

    Attributes:
        id: Its id (`table2`, `figure3`).
        title: Its title.
        unit: Unit of all its values.
        counts: What n counts ("facts").
        digits: Digits after the decimal point, as in the paper.
    """

    id: str
    title: str = ""
    unit: ValueUnit = "percent"
    counts: str = "facts"
    digits: int = 1

    @property
    def name(self) -> str:
        """The id as a name: `Table 2`."""
        kind = self.id.rstrip("0123456789")
        return f"{kind.capitalize()} {self.id[len(kind) :]}".rstrip()

    @property
    def about(self) -> str:
        """The unit, and what n counts, as text."""
        counted = f"; n counts {self.counts}" if self.counts else ""
        return f"unit: {self.unit}{counted}"


@dataclass(frozen=True)
class TableSpec(TableHead):
    """The specification of a reproduced table; title "" is the published title.

    by_model: whether its source is called once per model. notes: the table's fixed notes.
    """

    by_model: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Published:
    """A paper's file.

    tables: published tables. reproduced: specifications of the reproduced tables, in order.
    models: names in the tables -> names in the catalogue.
    """

    citation: str
    tables: tuple[PublishedTable, ...]
    reproduced: tuple[TableSpec, ...]
    models: dict[str, str] = field(default_factory=dict)


@cache
def published_paper(paper: str) -> Published:
    """Return a paper's citation, tables and models, or raise UserError for an unknown paper."""
    choose(paper, PAPERS, "paper")
    read = msgspec.json.decode((FOLDER / f"{paper}.json").read_bytes(), type=Published)
    tables = (replace(one, paper=paper, citation=read.citation) for one in read.tables)
    titles = {one.id: one.title for one in read.tables}
    reproduced = (replace(one, title=one.title or titles[one.id]) for one in read.reproduced)
    return replace(read, tables=tuple(tables), reproduced=tuple(reproduced))


def published_table(paper: str, table: str) -> PublishedTable:
    """Return a table such as ("petroni2019", "table2"), or raise UserError if it is unknown."""
    tables = {found.id: found for found in published_paper(paper).tables}
    if table not in tables:
        raise UserError(f"{paper} has no table {table!r}: choose {', '.join(tables)}.")
    return tables[table]


# Columns of LAMA's Table 2 and models of BEAR's leaderboard -> names in the catalogue.
LAMA_MODELS = published_paper("petroni2019").models
BEAR_MODELS = published_paper("wiland2024").models


@dataclass(frozen=True, slots=True)
class PublishedExample:
    """A row of LAMA's Table 3. answers: BERT-large's five best words with log-probabilities."""

    source: str
    relation: str
    query: str
    gold: str
    answers: tuple[tuple[str, float], ...]

    @property
    def rank(self) -> int | None:
        """Rank of the gold answer among the five words (exact match); None if it isn't there."""
        words = [word for word, _ in self.answers]
        return words.index(self.gold) + 1 if self.gold in words else None


def published_examples() -> tuple[PublishedExample, ...]:
    """Return the rows of LAMA's Table 3, in its order."""
    found = []
    for row in published_table("petroni2019", "table3").rows:
        source, relation, query, gold = map(str, row.labels)
        pairs = zip(row.values[::2], row.values[1::2], strict=True)
        answers = tuple((str(word), float(value or 0)) for word, value in pairs)
        found.append(PublishedExample(source, relation, query, gold, answers))
    return tuple(found)


def published_scores() -> "pd.DataFrame":
    """Return LAMA's Table 2 in the columns of `metrics.score_table`, for comparison with runs.

    Columns: model, catalog_name (None for baselines), source, relation, type (None for totals), n,
    n_relations, p_at_1 between 0 and 1, published (always True), paper, table, citation.
    """
    import pandas as pd

    table = published_table("petroni2019", "table2")
    names = ("source", "relation", "type", "n", "n_relations")
    return pd.DataFrame(
        [
            {
                "model": column,
                "catalog_name": LAMA_MODELS.get(column),
                **dict(zip(names, row.labels, strict=True)),
                "p_at_1": float(value) / 100,
                "published": True,
                "paper": table.paper,
                "table": table.id,
                "citation": table.citation,
            }
            for row in table.rows
            for column, value in zip(table.columns, row.values, strict=True)
            if value is not None
        ]
    )


def lama_shares(data: str, counts: Iterable[tuple[str, int]]) -> tuple[LamaShare, ...]:
    """Return a `LamaShare` of a dataset or run for each source of LAMA; () for other data.

    Facts beyond the paper's count are facts that the paper excluded, so only missing facts affect
    the comparison.

    Args:
        data: Name of the data.
        counts: Source and number of facts, including excluded ones, of each relation.
    """
    if data not in LAMA:
        return ()
    here = [(source, n) for source, n in counts if n]
    table = published_table("petroni2019", "table2")
    totals = {
        source: (int(n_relations or 0), int(n_facts or 0))
        for source, relation, kind, n_facts, n_relations in (row.labels for row in table.rows)
        if relation is None and kind is None
    }
    return tuple(
        LamaShare(
            source=title,
            n_relations=sum(one == source for one, _ in here),
            of_relations=totals[source][0],
            n_facts=sum(n for one, n in here if one == source),
            of_facts=totals[source][1],
        )
        for source, title in SOURCES.items()
    )


def partial_lama(shares: Iterable[LamaShare]) -> str:
    """Return a label such as `partial LAMA: 20 of 41 relations` if something is missing, else "".

    It names the first source that lacks relations, or else the first that lacks facts.
    """
    lacking = sorted((x for x in shares if x.lacks), key=lambda x: x.n_relations >= x.of_relations)
    if not lacking:
        return ""
    one = lacking[0]
    if one.n_relations >= one.of_relations:
        return f"partial LAMA: {one.n_facts:,} of {one.of_facts:,} facts of {one.source}"
    of = "" if one.source == SOURCES["TREx"] else f" of {one.source}"
    return f"partial LAMA: {one.n_relations} of {one.of_relations} relations{of}"
