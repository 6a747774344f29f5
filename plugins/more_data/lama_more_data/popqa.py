"""PopQA's questions with the popularity of their subjects (Mallen et al. 2023).

A table (TSV as published; CSV and JSON lines, too) with the columns id, subj, prop, obj, question,
possible_answers (a JSON list), o_aliases (a JSON list), s_uri, o_uri and s_pop (page views of the
subject in a month). Other columns are ignored.

Right answers are the object and `possible_answers`, or `o_aliases` if `possible_answers` is empty.
There are no cloze sentences, so these facts are for runs of generated answers.
"""

from pathlib import Path

from lama_core.datasets.columns import read_list
from lama_core.datasets.dataset import Dataset
from lama_core.datasets.file_search import find_files
from lama_core.datasets.formats import one_file
from lama_core.datasets.line_reader import (
    JsonObject,
    Reading,
    Rejected,
    distinct,
    optional_text,
    required_text,
    text_list,
)
from lama_core.datasets.records import lowered, read_records
from lama_core.datasets.user_table import first_names
from lama_core.types import Fact

SOURCE = "PopQA"
COLUMNS = frozenset(("subj", "prop", "obj", "question", "possible_answers"))


def is_popqa(path: Path) -> bool:
    """Return whether a file is a table with PopQA's columns."""
    return {name.lower() for name in first_names(path)} >= COLUMNS


def load(path: Path, *, name: str | None = None, **about: str) -> Dataset:
    """Return the facts of PopQA's file at or under `path`, in file order.

    Raises:
        UserError: If there is no such file, or no usable row.
    """
    file = next(iter(find_files(path, is_popqa)), None)
    reading = Reading.at(file, path, "holds no table with PopQA's columns")
    lines: dict[str, int] = {}
    for number, values in read_records(reading).rows:
        with reading.dropping(reading.root, number):
            row = lowered(values)
            relation = required_text(row, "prop")
            subject, obj = required_text(row, "subj"), required_text(row, "obj")
            question = required_text(row, "question")
            answers = _names(row, "possible_answers") or _names(row, "o_aliases")
            cell = optional_text(row, "s_pop").removesuffix(".0")
            if cell and not (cell.isascii() and cell.isdigit() and len(cell) <= 15):
                raise Rejected(f"'s_pop' is {cell[:60]!r}, not a whole number")
            fact = Fact(
                f"{relation}:{optional_text(row, 'id') or f'{subject}|{obj}'}",
                subject,
                relation,
                obj,
                SOURCE,
                subject_id=_entity(row, "s_uri"),
                object_id=_entity(row, "o_uri"),
                aliases=tuple(answer for answer in answers if answer != obj),
                question=question,
                popularity=float(cell) if cell else None,
            )
            reading.fact(fact, number, lines, f"the id {row.get('id')!r}" if "id" in row else "")
    return reading.dataset_of_questions(path, name, SOURCE, "row", **about)


def _names(row: JsonObject, column: str) -> tuple[str, ...]:
    """Return the texts of a list, or of a cell with a JSON list, each once; () if empty."""
    names = row.get(column)
    found = read_list(names)
    if found is None and names is not None:
        raise Rejected(f"{column!r} is not a list of texts")
    return distinct(text_list({column: found}, column))


def _entity(row: JsonObject, column: str) -> str:
    """Return the Wikidata id at the end of an address; empty if there is none."""
    return optional_text(row, column).rsplit("/", 1)[-1]


POPQA = one_file("popqa", "PopQA's table", is_popqa, load)
