"""The papers' own numbers, as data with their source: `assets/published/*.json`.

    petroni2019   Tables 1 to 3, Figure 3; Figures 2 and 4 as far as the text gives them (LAMA)
    jiang2020     Tables 1 to 15, Figures 1 and 3, what the text says of the others (LPAQA)
    rezaee2022    Tables 1 and 2, the averages and the frequency test of section 4 (analogy probes)
    wiland2024    the leaderboard that its authors keep (BEAR)

Values are kept as printed, in percent where the paper prints percent; `fraction` converts. None
stands where the paper prints nothing, or where the table's note says that a cell can't be read.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from lama_core.errors import UserError, choose
from lama_core.paths import ASSETS

if TYPE_CHECKING:
    import pandas as pd

Unit = Literal["percent", "correlation", "log-probability", "number", "text"]
PAPERS = ("petroni2019", "jiang2020", "rezaee2022", "wiland2024")

# Columns of LAMA's Table 2 that are models, and what the catalogue calls them.
LAMA_MODELS = {
    "fairseq-fconv": "fairseq-fconv",
    "Transformer-XL": "transformer-xl",
    "ELMo": "elmo",
    "ELMo 5.5B": "elmo-5.5b",
    "BERT-base": "bert-base-cased",
    "BERT-large": "bert-large-cased",
}
# Models of BEAR's leaderboard, and what the catalogue, or else the hub, calls them.
BEAR_MODELS = {
    "Llama-2-13b-hf": "meta-llama/Llama-2-13b-hf",
    "Llama-2-7b-hf": "meta-llama/Llama-2-7b-hf",
    "Mistral-7B-v0.1": "mistralai/Mistral-7B-v0.1",
    "bert-base-cased": "bert-base-cased",
    "bert-large-cased": "bert-large-cased",
    "gemma-2b": "google/gemma-2b",
    "gemma-7b": "google/gemma-7b",
    "gpt2": "gpt2",
    "gpt2-large": "openai-community/gpt2-large",
    "gpt2-medium": "gpt2-medium",
    "gpt2-xl": "openai-community/gpt2-xl",
    "opt-1.3b": "facebook/opt-1.3b",
    "opt-125m": "opt-125m",
    "opt-13b": "facebook/opt-13b",
    "opt-2.7b": "facebook/opt-2.7b",
    "opt-30b": "facebook/opt-30b",
    "opt-350m": "facebook/opt-350m",
    "opt-6.7b": "facebook/opt-6.7b",
    "roberta-base": "roberta-base",
    "roberta-large": "roberta-large",
    "xlm-roberta-base": "xlm-roberta-base",
    "xlm-roberta-large": "xlm-roberta-large",
    "Meta-Llama-3-8B": "meta-llama/Meta-Llama-3-8B",
    "Meta-Llama-3-8B-Instruct": "meta-llama/Meta-Llama-3-8B-Instruct",
}
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


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """One line of a table.

    labels: what the line is about, by the table's label names. values: one a column, as printed.
    marks: the paper's marks on the line, spelled out.
    """

    labels: tuple[str | int | None, ...]
    values: tuple[float | str | None, ...]
    marks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PublishedTable:
    """One table of a paper. metric: what the values are. citation: where they come from."""

    paper: str
    citation: str
    id: str
    title: str
    metric: str
    unit: Unit
    label_names: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[PublishedRow, ...]
    note: str = ""

    def value(self, column: str, **labels: str | int | None) -> float | None:
        """The number in a column of the first line with these labels, as printed.

        Raises KeyError if the table has no such line or column.
        """
        at = self.columns.index(column) if column in self.columns else None
        for row in self.rows:
            named = dict(zip(self.label_names, row.labels, strict=True))
            if at is not None and all(named[name] == value for name, value in labels.items()):
                number = row.values[at]
                return None if number is None else float(number)
        raise KeyError(f"{self.paper} {self.id} has no {column} for {labels}")

    def frame(self) -> "pd.DataFrame":
        """The table as printed: label columns, then value columns."""
        import pandas as pd

        names = [*self.label_names, *self.columns]
        return pd.DataFrame([(*row.labels, *row.values) for row in self.rows], columns=names)


def fraction(value: float | None) -> float | None:
    """A printed percentage as a number between 0 and 1."""
    return None if value is None else value / 100


@cache
def load_published(paper: str) -> tuple[PublishedTable, ...]:
    """The tables of one paper, in its order. Raises UserError for an unknown paper."""
    choose(paper, PAPERS, "paper")
    raw = json.loads((ASSETS / "published" / f"{paper}.json").read_text(encoding="utf-8"))
    return tuple(_table(paper, raw["citation"], table) for table in raw["tables"])


def published_table(paper: str, table: str) -> PublishedTable:
    """One table of one paper, such as ("petroni2019", "table2"). Raises UserError if unknown."""
    tables = load_published(paper)
    for found in tables:
        if found.id == table:
            return found
    names = ", ".join(found.id for found in tables)
    raise UserError(f"{paper} has no {table!r} here: choose {names}.")


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
    """LAMA's Table 2 in the columns of `metrics.score_table`, to stand beside our own rows.

    Columns: model, catalog_name (None for baselines), source, relation, type (None for totals), n,
    n_relations, p_at_1 between 0 and 1, published (always True), paper, table, citation.
    """
    import pandas as pd

    table = published_table("petroni2019", "table2")
    lines = []
    for row in table.rows:
        source, relation, kind, n_facts, n_relations = row.labels
        for column, value in zip(table.columns, row.values, strict=True):
            if value is None:
                continue
            lines.append(
                {
                    "model": column,
                    "catalog_name": LAMA_MODELS.get(column),
                    "source": source,
                    "relation": relation,
                    "type": kind,
                    "n": n_facts,
                    "n_relations": n_relations,
                    "p_at_1": fraction(float(value)),
                    "published": True,
                    "paper": table.paper,
                    "table": table.id,
                    "citation": table.citation,
                }
            )
    return pd.DataFrame(lines)


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
    lacking = [one for one in shares if one.lacks]
    for one in lacking:
        if one.n_relations < one.of_relations:
            of = "" if one.source == SOURCES["TREx"] else f" of {one.source}"
            return f"partial LAMA: {one.n_relations} of {one.of_relations} relations{of}"
    for one in lacking:
        return f"partial LAMA: {one.n_facts:,} of {one.of_facts:,} facts of {one.source}"
    return ""


def _table(paper: str, citation: str, raw: dict[str, Any]) -> PublishedTable:
    rows = tuple(
        PublishedRow(tuple(row["labels"]), tuple(row["values"]), tuple(row.get("marks", ())))
        for row in raw["rows"]
    )
    return PublishedTable(
        paper,
        citation,
        raw["id"],
        raw["title"],
        raw["metric"],
        raw["unit"],
        tuple(raw["labels"]),
        tuple(raw["columns"]),
        rows,
        raw["note"],
    )
