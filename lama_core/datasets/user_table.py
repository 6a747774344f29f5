"""A user's facts: a CSV, TSV or JSONL file with one fact per row.

Columns (or JSON fields): `subject` and `object` (required), `relation` (default: the file's name),
`template`, `negated_template`, `sentence` (a cloze sentence with [MASK]), `id`, `type`, `label`,
`origin`. LAMA's names (`sub_label`, `obj_label`, `predicate_id`, ...) work, too. Every distinct
template of a relation becomes one of its prompts. A row is one line: cells can't have line breaks,
so that a broken row can't include the next one.

`Columns` gives other column names, and templates for rows without one. For an imported table, it is
stored in a file next to the table (`FILE.columns.json`).
"""

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Self

import msgspec

from lama_core.datasets.dataset import BLANK, Dataset, Dropped, make_dataset
from lama_core.datasets.lama_relations import RELATION_TYPES
from lama_core.datasets.line_reader import (
    JsonObject,
    Reading,
    Rejected,
    optional_text,
    required_text,
    text_list,
)
from lama_core.datasets.template_syntax import template_fault
from lama_core.errors import UserError, did_you_mean
from lama_core.files import read_file, write_text_atomically
from lama_core.types import Fact, Prompt, Relation

SUFFIXES = (".csv", ".tsv", ".jsonl")
SOURCE = "User"

COLUMNS_SUFFIX = ".columns.json"
MAX_COLUMNS_BYTES = 1 << 20

_SUBJECT = ("subject", "sub_label", "sub")
_OBJECT = ("object", "obj_label", "obj")
_RELATION = ("relation", "predicate_id", "pred")
_NEEDED = ("subject", "object")
# Role of a column -> the column names that are recognized for it.
ROLES: dict[str, tuple[str, ...]] = {
    "subject": _SUBJECT,
    "object": _OBJECT,
    "relation": _RELATION,
    "template": ("template",),
}


@dataclass(frozen=True)
class Columns:
    """The roles of a table's columns, and templates for rows without one.

    Attributes:
        subject: Name of the column of subjects; empty to recognize it by the names in `ROLES`.
        object: The same for objects.
        relation: The same for relations.
        template: The same for templates.
        templates: Relation -> template with [X] and [Y]; the key "" is for all other relations.
    """

    subject: str = ""
    object: str = ""
    relation: str = ""
    template: str = ""
    templates: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def given(
        cls, *, subject: str, object: str, relation: str, template: str, templates: Sequence[str]
    ) -> Self:
        """Return the columns with these names. templates: `TEMPLATE` or `RELATION=TEMPLATE`.

        Raises:
            UserError: For a template without one [X] and one [Y], or two templates of a relation.
        """
        found: dict[str, str] = {}
        for text in templates:
            name, equals, rest = text.partition("=")
            if not equals or "[" in name:
                name, rest = "", text
            name, rest = name.strip(), rest.strip()
            if name in found:
                raise UserError(f"Two templates for {name or 'all relations'}: keep one.")
            if fault := template_fault(rest):
                raise UserError(f"{fault[0].upper()}{fault[1:]}.")
            found[name] = rest
        return cls(subject, object, relation, template, found)

    def of(self, role: str) -> str:
        """Return the given name of the column with a role; empty if none was given."""
        name: str = getattr(self, role)
        return name

    def lowered(self) -> Self:
        """Return the columns with lower-case, stripped names."""
        subject, object, relation, template = (self.of(role).strip().lower() for role in ROLES)
        return type(self)(subject, object, relation, template, self.templates)

    def renamed(self, row: JsonObject) -> JsonObject:
        """Return a row with the given column names replaced by their roles.

        Raises:
            Rejected: If the given column of subjects or objects is empty.
        """
        chosen = {role: name for role in ROLES if (name := self.of(role))}
        if not chosen:
            return row
        for role in _NEEDED:
            if role in chosen and row.get(chosen[role]) is None:
                raise Rejected(f"no {role}: {chosen[role]!r} is empty")
        replaced = {*chosen.values(), *(name for role in chosen for name in ROLES[role])}
        others = {name: value for name, value in row.items() if name not in replaced}
        return others | {role: row[name] for role, name in chosen.items() if name in row}


@dataclass(frozen=True, slots=True)
class Scan:
    """The content of a table, even if none of it is usable.

    Attributes:
        relations: The relations' names, in order of first appearance.
        unasked: The relations that have facts with neither a template nor a sentence.
        n_facts: Number of facts that can be queried.
        dropped: The unreadable and duplicate rows; rows that only lack a template are not included.
    """

    relations: tuple[str, ...]
    unasked: tuple[str, ...]
    n_facts: int
    dropped: tuple[Dropped, ...]


def load(
    path: Path, *, name: str | None = None, columns: Columns | None = None, **about: str
) -> Dataset:
    """Return the facts of the table at `path`.

    Args:
        path: A CSV, TSV or JSONL file.
        name: Name of the dataset. Default: that of the file.
        columns: Default: those stored next to the file, or else the recognized column names.
        about: `licence` and `citation`.

    Raises:
        UserError: If the file isn't a table, has no columns for subject and object or no usable
            row, or if a template is for a relation that isn't in the file.
    """
    columns = kept_columns(path) if columns is None else columns
    reading, relations, lines = _read(path, columns)
    facts = []
    for fact in reading.facts:
        if _can_be_queried(fact, relations):
            facts.append(fact)
        else:
            reason = (
                f"nothing to query: {fact.relation} has no template, and the row no sentence; add "
                "one, or give a template (--template)"
            )
            reading.drop(path, lines[fact.id], reason)
    for relation in columns.templates:
        if relation and relation not in relations:
            hint = did_you_mean(relation, relations)
            raise UserError(f"{path} has no relation {relation!r} for the template{hint}")
    if not facts:
        raise reading.nothing(path, "row")
    reading.dropped.sort(key=lambda dropped: dropped.line)
    used = dict.fromkeys(fact.relation for fact in facts)
    kept = [relations[relation] for relation in used]
    return make_dataset(name or path.stem, kept, facts, reading.report, **about)


def scan(path: Path, columns: Columns) -> Scan:
    """Return the content of a table. Raises UserError without subject and object columns."""
    reading, relations, _ = _read(path, columns)
    queried = [fact for fact in reading.facts if _can_be_queried(fact, relations)]
    unasked = (fact.relation for fact in reading.facts if not _can_be_queried(fact, relations))
    return Scan(
        tuple(relations),
        tuple(dict.fromkeys(unasked)),
        len(queried),
        tuple(reading.dropped),
    )


def first_rows(path: Path, n_rows: int) -> tuple[tuple[str, ...], tuple[JsonObject, ...]]:
    """Return the names of a table's columns, and its first readable rows.

    Raises:
        UserError: If the file isn't a table or can't be read.
    """
    reading = _reading(path)
    if _is_jsonl(path):
        rows = tuple(row for _, row in islice(reading.objects(path), n_rows))
        return tuple(dict.fromkeys(name for row in rows for name in row)), rows
    header, cells = csv_rows(reading, str)
    return header, tuple(row for _, row in islice(cells, n_rows))


def named_column(header: Sequence[str], role: str) -> str:
    """Return the column whose name is recognized for a role; empty without one."""
    by_name = {name.strip().lower(): name for name in reversed(header)}
    return next((by_name[name] for name in ROLES[role] if name in by_name), "")


def keep_columns(path: Path, columns: Columns) -> None:
    """Store the roles of the columns of the table at `path` in a file next to it."""
    text = msgspec.json.format(msgspec.json.encode(asdict(columns))).decode()
    write_text_atomically(_columns_file(path), text)


def kept_columns(path: Path) -> Columns:
    """Return the columns stored next to a table, if any. Raises UserError if damaged."""
    file = _columns_file(path)
    if not file.is_file():
        return Columns()
    try:
        return msgspec.json.decode(read_file(file, MAX_COLUMNS_BYTES), type=Columns)
    except msgspec.MsgspecError as error:
        raise UserError(f"{file} is damaged ({error}): import the table again") from error


def _columns_file(path: Path) -> Path:
    return path.with_name(path.name + COLUMNS_SUFFIX)


def _is_jsonl(path: Path) -> bool:
    return path.suffix.lower() == ".jsonl"


def _can_be_queried(fact: Fact, relations: Mapping[str, Relation]) -> bool:
    return bool(fact.sentences or relations[fact.relation].prompts)


def _reading(path: Path) -> Reading:
    if path.suffix.lower() not in SUFFIXES:
        raise UserError(f"{path} is not a table: expected a {', '.join(SUFFIXES)} file")
    return Reading(path)


def _read(path: Path, columns: Columns) -> tuple[Reading, dict[str, Relation], dict[str, int]]:
    """Return the facts read, the relations by name, and the line of each fact by id."""
    reading = _reading(path)
    relations: dict[str, Relation] = {}
    lines: dict[str, int] = {}
    if _is_jsonl(path):
        rows = reading.objects(path)
    else:
        columns = columns.lowered()
        header, rows = csv_rows(reading, str.lower)
        _check_header(path, header, columns)
    for number, row in rows:
        with reading.dropping(path, number):
            _read_row(reading, relations, lines, columns.renamed(row), number, columns.templates)
    return reading, relations, lines


def _check_header(path: Path, header: tuple[str, ...], columns: Columns) -> None:
    """Raise UserError if a given column, or that of subjects or objects, is missing."""
    shown = ", ".join(header)[:200] or "none"
    for role in ROLES:
        name = columns.of(role)
        if name and name not in header:
            raise UserError(
                f"{path} has no column {name!r} for the {role}{did_you_mean(name, header)}; its "
                f"columns are: {shown}"
            )
    if any(not columns.of(role) and not set(header) & set(ROLES[role]) for role in _NEEDED):
        raise UserError(
            f"{path} needs the columns subject and object in its first line; its columns are: "
            f"{shown}. Name the columns of subjects and objects (--subject, --object)"
        )


def csv_rows(
    reading: Reading, spelled: Callable[[str], str]
) -> tuple[tuple[str, ...], Iterator[tuple[int, JsonObject]]]:
    """Return the header, its names changed by `spelled`, and (line, row) of each row."""
    path = reading.root
    lines = reading.lines(path)
    _, first = next(lines, (0, ""))
    if reading.dropped:
        raise UserError(f"{path}: the first line can't be read: {reading.dropped[0].reason}.")
    if not first:
        raise UserError(f"{path} is empty.")
    separator = "\t" if path.suffix.lower() == ".tsv" else max(",;\t", key=first.count)
    try:
        header = tuple(
            spelled(cell.strip()) for cell in next(csv.reader([first], delimiter=separator), [])
        )
    except csv.Error as error:
        raise UserError(f"{path}: the first line is not a valid header ({error})") from error
    return header, _iter_cells(reading, lines, header, separator)


def _iter_cells(
    reading: Reading, lines: Iterator[tuple[int, str]], header: tuple[str, ...], separator: str
) -> Iterator[tuple[int, JsonObject]]:
    for number, line in lines:
        with reading.dropping(reading.root, number):
            try:
                cells = next(csv.reader([line], delimiter=separator, strict=True))
            except csv.Error as error:
                raise Rejected(f"not a valid row ({error})") from error
            if len(cells) != len(header):
                n = len(header)
                raise Rejected(f"{len(cells)} cells, but the header has {n}")
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
    templates: Mapping[str, str],
) -> None:
    """Add a row's fact, and update its relation. templates: for rows without one."""
    subject = required_text(row, *_SUBJECT)
    obj = required_text(row, *_OBJECT)
    name = optional_text(row, *_RELATION) or reading.root.stem
    template = optional_text(row, "template")
    if fault := template and template_fault(template):
        raise Rejected(f"{name}: {fault}")
    template = template or templates.get(name) or templates.get("", "")
    sentences = (*text_list(row, "sentence"), *text_list(row, "masked_sentences"))
    for sentence in sentences:
        if BLANK not in sentence:
            raise Rejected(
                f"the sentence {sentence!r} has no {BLANK}: write it in place of the object"
            )
    given_id = optional_text(row, "id") or optional_text(row, "uuid")
    fact = Fact(
        f"{name}:{given_id or f'{subject}|{obj}'}",
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
    reading.fact(fact, number, lines, f"the id {given_id!r}" if given_id else "")
    prompts = [*known.prompts, *([Prompt(template, "user")] if template else [])]
    usable = negated if negated and not template_fault(negated) else None
    relations[name] = replace(
        known,
        type=known.type or kind,
        prompts=tuple(dict.fromkeys(prompts)),
        negated_template=known.negated_template or usable,
    )
