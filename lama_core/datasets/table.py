"""A user's own facts: a CSV, TSV or JSONL file with a row a fact.

Columns (or JSON fields): `subject` and `object`, needed; `relation` (the file's name if missing),
`template`, `negated_template`, `sentence` (a cloze sentence with [MASK]), `id`, `type`, `label`,
`origin`. LAMA's names (`sub_label`, `obj_label`, `predicate_id`, ...) work too. Every different
template of a relation becomes one of its prompts. A row stands on one line: a cell can't hold a
line break, so that one broken row can't swallow the next.
"""

import csv
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from lama_core.datasets.base import BLANK, Dataset, make_dataset
from lama_core.datasets.lama_relations import RELATION_TYPES
from lama_core.datasets.reading import (
    JsonObject,
    Reading,
    Rejected,
    optional_text,
    required_text,
    text_list,
)
from lama_core.datasets.templates import template_fault
from lama_core.errors import UserError
from lama_core.types import Fact, Prompt, Relation

SUFFIXES = (".csv", ".tsv", ".jsonl")
SOURCE = "User"

_SUBJECT = ("subject", "sub_label", "sub")
_OBJECT = ("object", "obj_label", "obj")
_RELATION = ("relation", "predicate_id", "pred")


def load(path: Path, *, name: str | None = None, **about: str) -> Dataset:
    """The facts of the table at `path`.

    Raises UserError for another kind of file, a header without subject and object, or no usable
    row.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise UserError(f"{path} is no table: expected a {', '.join(SUFFIXES)} file")
    reading = Reading(path)
    relations: dict[str, Relation] = {}
    lines: dict[str, int] = {}
    rows = reading.objects(path) if path.suffix.lower() == ".jsonl" else _iter_csv(reading)
    for number, row in rows:
        with reading.line(path, number):
            _read_row(reading, relations, lines, row, number)
    facts = []
    for fact in reading.facts:
        if fact.sentences or relations[fact.relation].prompts:
            facts.append(fact)
        else:
            unasked = f"{fact.relation} has no template and this row no sentence: nothing to ask"
            reading.drop(path, lines[fact.id], unasked)
    if not facts:
        raise reading.nothing(path, "row")
    reading.dropped.sort(key=lambda dropped: dropped.line)
    used = dict.fromkeys(fact.relation for fact in facts)
    kept = [relations[relation] for relation in used]
    return make_dataset(name or path.stem, kept, facts, reading.report, **about)


def _iter_csv(reading: Reading) -> Iterator[tuple[int, JsonObject]]:
    path = reading.root
    lines = reading.lines(path)
    _, first = next(lines, (0, ""))
    separator = "\t" if path.suffix.lower() == ".tsv" else max(",;\t", key=first.count)
    try:
        header = [
            cell.strip().lower() for cell in next(csv.reader([first], delimiter=separator), [])
        ]
    except csv.Error as error:
        raise UserError(f"{path} has no header that can be read ({error})") from error
    if not (set(header) & set(_SUBJECT) and set(header) & set(_OBJECT)):
        columns = ", ".join(header)[:200] or "none"
        raise UserError(
            f"{path} needs the columns subject and object in its first line; it has: {columns}"
        )
    for number, line in lines:
        with reading.line(path, number):
            try:
                cells = next(csv.reader([line], delimiter=separator, strict=True))
            except csv.Error as error:
                raise Rejected(f"not a valid row ({error})") from error
            if len(cells) != len(header):
                n = len(header)
                raise Rejected(f"{len(cells)} cells were found where the header has {n}")
            yield (
                number,
                {key: cell for key, cell in zip(header, cells, strict=True) if cell.strip()},
            )


def _read_row(
    reading: Reading,
    relations: dict[str, Relation],
    lines: dict[str, int],
    row: JsonObject,
    number: int,
) -> None:
    """Add a row's fact, and what it says of its relation."""
    subject = required_text(row, *_SUBJECT)
    obj = required_text(row, *_OBJECT)
    name = optional_text(row, *_RELATION) or reading.root.stem
    template = optional_text(row, "template")
    if fault := template and template_fault(template):
        raise Rejected(f"{name}: {fault}")
    sentences = (*text_list(row, "sentence"), *text_list(row, "masked_sentences"))
    for sentence in sentences:
        if BLANK not in sentence:
            raise Rejected(f"the sentence {sentence!r} has no {BLANK} where the object stands")
    stated = optional_text(row, "id") or optional_text(row, "uuid")
    fact = Fact(
        f"{name}:{stated or f'{subject}|{obj}'}",
        subject,
        name,
        obj,
        SOURCE,
        subject_id=optional_text(row, "sub_uri"),
        object_id=optional_text(row, "obj_uri"),
        sentences=sentences,
        origin=optional_text(row, "origin"),
    )
    label = optional_text(row, "label")
    known = relations.get(name) or Relation(name, SOURCE, label)
    kind = RELATION_TYPES.get(optional_text(row, "type"))
    negated = optional_text(row, "negated_template")
    reading.fact(fact, number, lines, f"the id {stated!r}" if stated else "")
    prompts = [*known.prompts, *([Prompt(template, "user")] if template else [])]
    usable = negated if negated and not template_fault(negated) else None
    relations[name] = replace(
        known,
        type=known.type or kind,
        prompts=tuple(dict.fromkeys(prompts)),
        negated_template=known.negated_template or usable,
    )
