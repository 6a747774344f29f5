"""The papers' own numbers, as data with their source: `assets/published/*.json`.

    petroni2019   Tables 1 to 3, Figure 3; Figures 2 and 4 as far as the text gives them (LAMA)
    jiang2020     Tables 1 to 15, Figures 1 and 3, what the text says of the others (LPAQA)
    rezaee2022    Tables 1 and 2, the averages and the frequency test of section 4 (analogy probes)
    wiland2024    the leaderboard that its authors keep (BEAR)

Values are kept as printed, in percent where the paper prints percent. None stands where the paper
prints nothing, or where the table's note says that a cell can't be read.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from lama_core.errors import UserError, choose
from lama_core.paths import ASSETS
from lama_core.reports.tables import TableHead, Unit

if TYPE_CHECKING:
    import pandas as pd

FOLDER = ASSETS / "published"
OWN = "own_"  # this project's own results, which lie next to the papers'
PAPERS = tuple(sorted(x.stem for x in FOLDER.glob("*.json") if not x.stem.startswith(OWN)))
# Names of data that hold LAMA's own facts, and the sources of Table 2 as people write them.
LAMA = ("lama", "negated-lama")
SOURCES = {"TREx": "T-REx", "Google_RE": "Google-RE", "ConceptNet": "ConceptNet", "Squad": "SQuAD"}


@dataclass(frozen=True, slots=True)
class LamaShare:
    """How much of one of LAMA's sources is there, of what Table 2 counts.

    of_relations: 0 for SQuAD, which has none.
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
    """One line of a table.

    labels: what the line is about, by the table's label names. values: one a column, as printed.
    marks: the paper's marks on the line, spelled out.
    """

    labels: tuple[Label, ...]
    values: tuple[int | float | str | None, ...]
    marks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PublishedTable:
    """One table of a paper. metric: what the values are. labels: the names of the rows' labels."""

    id: str
    title: str
    metric: str
    unit: Unit
    labels: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[PublishedRow, ...]
    note: str = ""
    paper: str = ""
    citation: str = ""

    def number(self, column: str, **labels: Label) -> float | None:
        """The number in a column of the first line with these labels; None where there is none."""
        try:
            return self.value(column, **labels)
        except KeyError:
            return None

    def value(self, column: str, **labels: Label) -> float | None:
        """As `number`. Raises KeyError if the table has no such line or column."""
        for row in self.rows if column in self.columns else ():
            if labels.items() <= dict(zip(self.labels, row.labels, strict=True)).items():
                return self.of_row(row, column)
        raise KeyError(f"{self.paper} {self.id} has no {column} for {labels}")

    def of_row(self, row: PublishedRow, column: str) -> float | None:
        """The number in a column of a line; None without one, or without such a column."""
        value = row.values[self.columns.index(column)] if column in self.columns else None
        return None if value is None else float(value)

    def frame(self) -> "pd.DataFrame":
        """The table as printed: label columns, then value columns."""
        import pandas as pd

        names = [*self.labels, *self.columns]
        return pd.DataFrame([(*row.labels, *row.values) for row in self.rows], columns=names)


@dataclass(frozen=True)
class TableSpec(TableHead):
    """The specification of a table that is reproduced. With title "" it has the published one's.

    by_model: whether its source takes a model, too. notes: those that don't depend on what is here.
    """

    by_model: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Published:
    """A paper's file.

    tables: as published. reproduced: specifications, in their order. models: their names in the
    tables -> in the catalogue.
    """

    citation: str
    tables: tuple[PublishedTable, ...]
    reproduced: tuple[TableSpec, ...]
    models: dict[str, str] = field(default_factory=dict)


@cache
def published_paper(paper: str) -> Published:
    """A paper's citation, tables and models. Raises UserError for an unknown paper."""
    choose(paper, PAPERS, "paper")
    text = (FOLDER / f"{paper}.json").read_bytes()
    read = msgspec.json.decode(text, type=Published)
    tables = (replace(one, paper=paper, citation=read.citation) for one in read.tables)
    titles = {one.id: one.title for one in read.tables}
    reproduced = (replace(one, title=one.title or titles[one.id]) for one in read.reproduced)
    return replace(read, tables=tuple(tables), reproduced=tuple(reproduced))


def load_published(paper: str) -> tuple[PublishedTable, ...]:
    """The tables of one paper, in its order. Raises UserError for an unknown paper."""
    return published_paper(paper).tables


def published_table(paper: str, table: str) -> PublishedTable:
    """One table of one paper, such as ("petroni2019", "table2"). Raises UserError if unknown."""
    tables = {found.id: found for found in load_published(paper)}
    if table not in tables:
        raise UserError(f"{paper} has no {table!r} here: choose {', '.join(tables)}.")
    return tables[table]


# Columns of LAMA's Table 2 and models of BEAR's leaderboard, and what the catalogue calls them.
LAMA_MODELS = published_paper("petroni2019").models
BEAR_MODELS = published_paper("wiland2024").models


@dataclass(frozen=True, slots=True)
class PublishedExample:
    """A row of LAMA's Table 3. answers: BERT-large's five words, best first, with log-prob."""

    source: str
    relation: str
    query: str
    gold: str
    answers: tuple[tuple[str, float], ...]

    @property
    def rank(self) -> int | None:
        """Where the gold stands among the five, as it is written; None where it doesn't."""
        words = [word for word, _ in self.answers]
        return words.index(self.gold) + 1 if self.gold in words else None


def published_examples() -> tuple[PublishedExample, ...]:
    """LAMA's Table 3, in its order."""
    found = []
    for row in published_table("petroni2019", "table3").rows:
        source, relation, query, gold = map(str, row.labels)
        pairs = zip(row.values[::2], row.values[1::2], strict=True)
        answers = tuple((str(word), float(value or 0)) for word, value in pairs)
        found.append(PublishedExample(source, relation, query, gold, answers))
    return tuple(found)


def published_scores() -> "pd.DataFrame":
    """LAMA's Table 2 in the columns of `metrics.score_table`, to compare with our own rows.

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
    """What is there of each of LAMA's sources, in data or a run; () for data that isn't LAMA.

    data: its name. counts: of each relation its source and its facts, counted or left out.
    Only data that lack something compare ill with the paper: more lines than it counts are those
    that it left out itself.
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
    """`partial LAMA: 20 of 41 relations` where something is missing, else empty.

    It names the first source that lacks relations, T-REx before the others; else facts.
    """
    # The first of the least: what lacks relations comes before what lacks facts alone.
    lacking = sorted((x for x in shares if x.lacks), key=lambda x: x.n_relations >= x.of_relations)
    if not lacking:
        return ""
    one = lacking[0]
    if one.n_relations >= one.of_relations:
        return f"partial LAMA: {one.n_facts:,} of {one.of_facts:,} facts of {one.source}"
    of = "" if one.source == SOURCES["TREx"] else f" of {one.source}"
    return f"partial LAMA: {one.n_relations} of {one.of_relations} relations{of}"
