"""A user's own facts: a CSV, TSV or JSONL file with a row a fact.

Columns (or JSON fields): `subject` and `object`, needed; `relation` (the file's name if missing),
`template`, `negated_template`, `sentence` (a cloze sentence with [MASK]), `id`, `type`, `label`,
`origin`. LAMA's names (`sub_label`, `obj_label`, `predicate_id`, ...) work too. Every different
template of a relation becomes one of its prompts. A row stands on one line: a cell can't hold a
line break, so that one broken row can't swallow the next.
"""

import csv
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from lama_core.datasets.base import BLANK, Dataset, Dropped, ReadReport, make_dataset
from lama_core.datasets.jsonl import (
    JsonObject,
    Rejected,
    iter_objects,
    iter_text_lines,
    optional_text,
    required_text,
    text_list,
)
from lama_core.datasets.templates import template_fault
from lama_core.errors import UserError
from lama_core.types import Fact, Prompt, Relation, RelationType

SUFFIXES = (".csv", ".tsv", ".jsonl")
SOURCE = "User"

_SUBJECT = ("subject", "sub_label", "sub")
_OBJECT = ("object", "obj_label", "obj")
_RELATION = ("relation", "predicate_id", "pred")


@dataclass
class _Rows:
    """What accumulates while the rows are read."""

    templates: defaultdict[str, dict[str, None]] = field(default_factory=lambda: defaultdict(dict))
    negated: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    types: dict[str, RelationType] = field(default_factory=dict)
    ids: dict[str, int] = field(default_factory=dict)
    facts: list[tuple[int, Fact]] = field(default_factory=list)


def load(path: Path, *, name: str | None = None, licence: str = "", citation: str = "") -> Dataset:
    """The facts of the table at `path`.

    Raises UserError for another kind of file, a header without subject and object, or no usable
    row.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise UserError(f"{path} is no table: expected a {', '.join(SUFFIXES)} file")
    dropped: list[Dropped] = []
    rows = _Rows()
    read = iter_objects if path.suffix.lower() == ".jsonl" else _iter_csv
    for number, row in read(path, path.name, dropped):
        try:
            rows.facts.append((number, _read_row(rows, row, path.stem, number)))
        except Rejected as reason:
            dropped.append(Dropped(path.name, number, str(reason)))
    facts = []
    for number, fact in rows.facts:
        if fact.sentences or rows.templates[fact.relation]:
            facts.append(fact)
        else:
            unasked = f"{fact.relation} has no template and this row no sentence: nothing to ask"
            dropped.append(Dropped(path.name, number, unasked))
    if not facts:
        if not dropped:
            raise UserError(f"{path} has no usable row: give it a row a fact")
        raise UserError(
            f"{path} has no usable row: {len(dropped)} were left out; the first: {dropped[0]}"
        )
    names = dict.fromkeys(fact.relation for fact in facts)
    relations = [_relation(rows, relation) for relation in names]
    report = ReadReport(tuple(sorted(dropped, key=lambda item: item.line)))
    return make_dataset(
        name or path.stem, relations, facts, report, licence=licence, citation=citation
    )


def _iter_csv(path: Path, shown: str, dropped: list[Dropped]) -> Iterator[tuple[int, JsonObject]]:
    lines = iter_text_lines(path, shown, dropped)
    _, header_line = next(lines, (0, ""))
    separator = "\t" if path.suffix.lower() == ".tsv" else max(",;\t", key=header_line.count)
    try:
        cells = next(csv.reader([header_line], delimiter=separator), [])
    except csv.Error as error:
        raise UserError(f"{path} has no header that can be read ({error})") from error
    header = [cell.strip().lower() for cell in cells]
    if not (set(header) & set(_SUBJECT) and set(header) & set(_OBJECT)):
        columns = ", ".join(header)[:200] or "none"
        raise UserError(
            f"{path} needs the columns subject and object in its first line; it has: {columns}"
        )
    for number, line in lines:
        try:
            cells = next(csv.reader([line], delimiter=separator, strict=True))
        except csv.Error as error:
            dropped.append(Dropped(shown, number, f"not a valid row ({error})"))
            continue
        if len(cells) != len(header):
            reason = f"{len(cells)} cells were found where the header has {len(header)}"
            dropped.append(Dropped(shown, number, reason))
            continue
        yield (
            number,
            {key: cell for key, cell in zip(header, cells, strict=True) if cell.strip()},
        )


def _read_row(rows: _Rows, row: JsonObject, stem: str, number: int) -> Fact:
    subject = required_text(row, *_SUBJECT)
    obj = required_text(row, *_OBJECT)
    relation = optional_text(row, *_RELATION) or stem
    template = optional_text(row, "template")
    fault = template_fault(template) if template else None
    if fault:
        raise Rejected(f"{relation}: {fault}")
    sentences = (*text_list(row, "sentence"), *text_list(row, "masked_sentences"))
    for sentence in sentences:
        if BLANK not in sentence:
            raise Rejected(f"the sentence {sentence!r} has no {BLANK} where the object stands")
    stated = optional_text(row, "id") or optional_text(row, "uuid")
    fact_id = f"{relation}:{stated or f'{subject}|{obj}'}"
    if fact_id in rows.ids:
        what = f"the id {stated!r}" if stated else f"{subject!r} with {obj!r}"
        raise Rejected(f"{what} was already on line {rows.ids[fact_id]}")
    rows.ids[fact_id] = number
    if template:
        rows.templates[relation][template] = None
    negated = optional_text(row, "negated_template")
    if negated and not template_fault(negated):
        rows.negated.setdefault(relation, negated)
    rows.labels.setdefault(relation, optional_text(row, "label"))
    kinds: dict[str, RelationType] = {"1-1": "1-1", "N-1": "N-1", "N-M": "N-M"}
    kind = kinds.get(optional_text(row, "type"))
    if kind:
        rows.types.setdefault(relation, kind)
    return Fact(
        fact_id,
        subject,
        relation,
        obj,
        SOURCE,
        subject_id=optional_text(row, "sub_uri"),
        object_id=optional_text(row, "obj_uri"),
        sentences=sentences,
        origin=optional_text(row, "origin"),
    )


def _relation(rows: _Rows, name: str) -> Relation:
    return Relation(
        name,
        SOURCE,
        rows.labels.get(name, ""),
        type=rows.types.get(name),
        prompts=tuple(Prompt(template, "user") for template in rows.templates[name]),
        negated_template=rows.negated.get(name),
    )
