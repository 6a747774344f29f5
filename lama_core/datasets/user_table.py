"""A user's facts: a table with one fact, or several objects of one subject, in each row.

`records` reads the rows: CSV, TSV, JSON, Parquet, Excel and others. Columns (or JSON fields):
`subject` and `object` (required), `relation` (default: the file's name), `template`,
`negated_template`, `sentence` (a cloze sentence with [MASK]), `aliases` (of the object), `id`,
`type`, `label`, `origin`. The names of LAMA (`sub_label`, `obj_label`, `predicate_id`, ...) and of
LM-KBC (`SubjectEntity`, `ObjectEntities`, `Relation`) work, too. A column of relations or types
must be filled in every row, or in none.

A template belongs to the fact of its row; further rows or a list give a fact further templates. If
all facts of a relation that have templates have the same ones, these are the relation's prompts,
also for its rows without a template; otherwise each fact keeps its own.

The object may be a list: each item is a fact, and the others are its other valid objects. An item
that is a list gives the names of one object. In a cell of text, objects are separated by
`ColumnRoles.separator`.

`ColumnRoles` gives other column names, and templates for rows without one. For an imported table,
it is stored in a file next to the table (`FILE.columns.json`).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, Self

import msgspec

from lama_core.datasets.columns import MISSING_NAMES, read_list
from lama_core.datasets.dataset import BLANK, Dataset, Dropped, make_dataset
from lama_core.datasets.lama_relations import TYPE_OF_NAME
from lama_core.datasets.line_reader import (
    JsonObject,
    Reading,
    Rejected,
    as_text,
    distinct,
    optional_text,
    required_text,
    text_list,
)
from lama_core.datasets.records import (
    IsHeader,
    has_table_name,
    lowered,
    no_header,
    read_records,
)
from lama_core.datasets.template_syntax import template_fault
from lama_core.datasets.wikidata import label_of
from lama_core.errors import UserError, did_you_mean
from lama_core.files import read_file, write_text_atomically
from lama_core.types import Fact, Prompt, Relation

SOURCE = "User"

COLUMNS_SUFFIX = ".columns.json"
HEAD = 20  # rows by which the columns of a table without a header are found
MAX_COLUMNS_BYTES = 1 << 20
MAX_LINES_NAMED = 20  # in an error

JSON = "json"  # as a separator: a cell is a JSON list
_SUBJECT = ("subject", "sub_label", "sub", "subjectentity")
_OBJECT = ("object", "obj_label", "obj", "objectentities")
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
class ColumnRoles:
    """The roles of a table's columns, and templates for rows without one.

    Attributes:
        subject: Name of the column of subjects; empty to recognize it by the names in `ROLES`.
        object: The same for objects.
        relation: The same for relations.
        template: The same for templates.
        separator: Separates several objects or aliases in a cell of text; empty if a cell is one
            object or a list.
        templates: Relation -> template with [X] and [Y]; the key "" is for all other relations.
        sheet: Name of the sheet of a spreadsheet with several.
        encoding: Of the table's text, if it isn't Unicode.
    """

    subject: str = ""
    object: str = ""
    relation: str = ""
    template: str = ""
    separator: str = ""
    templates: Mapping[str, str] = field(default_factory=dict)
    sheet: str = ""
    encoding: str = ""

    @classmethod
    def given(
        cls,
        *,
        subject: str,
        object: str,
        relation: str,
        template: str,
        templates: Sequence[str],
        **more: str,
    ) -> Self:
        """Return the columns with these names.

        templates: `TEMPLATE` or `RELATION=TEMPLATE`. more: `separator`, `sheet` and `encoding`.

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
        return cls(subject, object, relation, template, templates=found, **more)

    def of(self, role: str) -> str:
        """Return the given name of the column with a role; empty if none was given."""
        return str(getattr(self, role))

    def are_in(self, header: Sequence[str]) -> bool:
        """Whether a header has the columns of subjects and objects."""
        found, names = self.of_header(header), {name.strip().lower() for name in header}
        return all(found.of(role) in names - {""} for role in _NEEDED)

    def of_header(self, header: Sequence[str]) -> Self:
        """Return the column of each role: the given one, or the one recognised in the header.

        Names are lower-case. Without a header (JSON), only the given names are returned.
        """
        chosen: dict[str, Any] = {
            role: self.of(role).strip().lower().removeprefix("?") or named_column(header, role)
            for role in ROLES
        }
        return replace(self, **{role: name.lower() for role, name in chosen.items()})

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
        labels: Relation -> its label, for the relations with one.
        first: The first fact of each relation, with its template or sentence, or "" without one.
    """

    relations: tuple[str, ...]
    unasked: tuple[str, ...]
    n_facts: int
    dropped: tuple[Dropped, ...]
    labels: dict[str, str]
    first: tuple[tuple[Fact, str], ...]


@dataclass(frozen=True)
class TablePreview:
    """The first rows of a table of facts or results.

    Attributes:
        header: Names of the columns.
        rows: The first rows, as column -> value without empty values.
        columns: Role -> the column with a matching name.
        guessed: Role -> the column that may have it, for other roles.
    """

    header: tuple[str, ...]
    rows: tuple[dict[str, object], ...]
    columns: dict[str, str]
    guessed: dict[str, str]


def load(
    path: Path, *, name: str | None = None, columns: ColumnRoles | None = None, **about: str
) -> Dataset:
    """Return the facts of the table at `path`.

    Args:
        path: A table.
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
    is_without_wording = not any(_can_be_queried(fact, relations) for fact in reading.facts)
    if is_without_wording and reading.facts:
        reading.notes.append(
            "No row has a template or a sentence: give a template (--template), or probe with "
            "prompts of your own. Without one, all facts of a run are excluded."
        )
    for fact in reading.facts:
        if is_without_wording or _can_be_queried(fact, relations):
            facts.append(fact)
        else:
            n_own = relations[fact.relation].own_templates
            missing = f"{fact.relation} has {'different templates' if n_own else 'no template'}"
            reading.drop(
                path,
                lines[fact.id],
                f"nothing to query: {missing}, and the row no {'template' if n_own else 'sentence'}"
                "; add one, or give a template (--template)",
            )
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


def scan(path: Path, columns: ColumnRoles) -> Scan:
    """Return the content of a table. Raises UserError without subject and object columns."""
    reading, relations, _ = _read(path, columns)
    queried = [fact for fact in reading.facts if _can_be_queried(fact, relations)]
    unasked = (fact.relation for fact in reading.facts if not _can_be_queried(fact, relations))
    first = {fact.relation: fact for fact in reversed(reading.facts)}
    texts = (
        next(filter(None, (*map(first[name].template, one.templates), *first[name].sentences)), "")
        for name, one in relations.items()
    )
    return Scan(
        tuple(relations),
        tuple(dict.fromkeys(unasked)),
        len(queried),
        tuple(reading.dropped),
        {name: one.label for name, one in relations.items() if one.label},
        tuple(zip((first[name] for name in relations), texts, strict=True)),
    )


def first_rows(
    path: Path, n_rows: int, is_header: IsHeader = no_header
) -> tuple[tuple[str, ...], tuple[JsonObject, ...]]:
    """Return the names of a table's columns, and its first readable rows.

    is_header: As for `read_records`.

    Raises:
        UserError: If the file isn't a table or can't be read.
    """
    table = read_records(Reading(path), is_header=is_header, alone=True)
    rows = tuple(row for _, row in islice(table.rows, n_rows))
    return table.header or tuple(dict.fromkeys(name for row in rows for name in row)), rows


def is_table(path: Path) -> bool:
    """Whether a file is a table: by its name, or by columns for subjects and objects in it.

    A table that was imported with names of columns has these in a file next to it.
    """
    if path.name.startswith(".") or path.name.endswith(COLUMNS_SUFFIX):  # macOS has `._x.csv`
        return False
    return (
        has_table_name(path.name)
        or _columns_file(path).is_file()
        or all(named_column(first_names(path), role) for role in _NEEDED)
    )


def first_names(path: Path) -> tuple[str, ...]:
    """Return the columns of a table, by which its format is recognised; () for another file."""
    try:
        now = path.stat()
        return _first_names(path, now.st_size, now.st_mtime_ns)
    except (UserError, OSError):
        return ()


@lru_cache(maxsize=1000)
def _first_names(path: Path, size: int, changed: int) -> tuple[str, ...]:
    """Return the columns: several formats ask for them, and a binary file takes a process."""
    return first_rows(path, 1)[0]


def named_column(header: Sequence[str], role: str) -> str:
    """Return the column whose name is recognized for a role; empty without one."""
    by_name = {name.strip().lower(): name for name in reversed(header)}
    return next((by_name[name] for name in ROLES[role] if name in by_name), "")


def keep_columns(path: Path, columns: ColumnRoles) -> None:
    """Store the roles of the columns of the table at `path` in a file next to it."""
    text = msgspec.json.format(msgspec.json.encode(asdict(columns))).decode()
    write_text_atomically(_columns_file(path), text)


def kept_columns(path: Path) -> ColumnRoles:
    """Return the columns stored next to a table, if any. Raises UserError if damaged."""
    file = _columns_file(path)
    if not file.is_file():
        return ColumnRoles()
    try:
        return msgspec.json.decode(read_file(file, MAX_COLUMNS_BYTES), type=ColumnRoles)
    except msgspec.MsgspecError as error:
        raise UserError(f"{file} is damaged ({error}): import the table again") from error


def _columns_file(path: Path) -> Path:
    return path.with_name(path.name + COLUMNS_SUFFIX)


def _can_be_queried(fact: Fact, relations: Mapping[str, Relation]) -> bool:
    return bool(fact.sentences or fact.templates or relations[fact.relation].prompts)


def _read(path: Path, columns: ColumnRoles) -> tuple[Reading, dict[str, Relation], dict[str, int]]:
    """Return the facts read, the relations by name, and the line of each fact by id."""
    reading = Reading(path, encoding=columns.encoding, sheet=columns.sheet)
    relations: dict[str, Relation] = {}
    lines: dict[str, int] = {}
    table = read_records(reading, is_header=columns.are_in)
    columns = columns.of_header(table.header)
    if table.header:
        _check_header(path, table.header, columns)
    rows = _RowReader(reading, relations, lines, columns)
    for number, row in table.rows:
        with reading.dropping(path, number):
            rows.read(lowered(row), number)
    rows.finish()
    return reading, relations, lines


def _check_header(path: Path, header: tuple[str, ...], columns: ColumnRoles) -> None:
    """Raise UserError if a given column, or that of subjects or objects, is missing."""
    header = tuple(name.lower() for name in header)
    shown = ", ".join(header)[:200] or "none"
    for role in ROLES:
        name = columns.of(role)
        if name and name not in header:
            raise UserError(
                f"{path} has no column {name!r} for the {role}{did_you_mean(name, header)}; its "
                f"columns are: {shown}"
            )
    if not all(map(columns.of, _NEEDED)):
        raise UserError(
            f"{path} needs the columns subject and object in its first line; its columns are: "
            f"{shown}. Name the columns of subjects and objects (--subject, --object)"
        )


_Wording = tuple[tuple[str, ...], str]  # templates, and a negated one


@dataclass(frozen=True)
class _RowReader:
    """Adds the facts of rows to a reading, and updates their relations (name -> relation).

    Attributes:
        lines: Id of a fact -> its line.
        known: Id of a fact -> the fact, and its templates and negated template.
        filled: `relation` and `type` -> whether a row has it.
        blank: The same -> the first lines without it.
        same: Templates with a negated one, so that equal ones share memory.
    """

    reading: Reading
    relations: dict[str, Relation]
    lines: dict[str, int]
    columns: ColumnRoles
    known: dict[str, tuple[Fact, _Wording]] = field(default_factory=dict)
    filled: dict[str, bool] = field(default_factory=lambda: {"relation": False, "type": False})
    blank: dict[str, list[int]] = field(default_factory=lambda: {"relation": [], "type": []})
    same: dict[_Wording, _Wording] = field(default_factory=dict)

    def read(self, row: JsonObject, number: int) -> None:
        """Add the facts of a row with lower-case names. Raises Rejected for an unusable row."""
        row = self.columns.renamed(row)
        given = optional_text(row, *_RELATION)
        name = given or table_stem(self.reading.root)
        templates = distinct(text_list(row, "template"))
        for fault in filter(None, map(template_fault, templates)):
            raise Rejected(f"{name}: {fault}")
        default = self.columns.templates.get(name) or self.columns.templates.get("", "")
        templates = templates or distinct([default])
        sentences = (*text_list(row, "sentence"), *text_list(row, "masked_sentences"))
        for sentence in sentences:
            if BLANK not in sentence:
                raise Rejected(
                    f"the sentence {sentence!r} has no {BLANK}: write it in place of the object"
                )
        subject = _name(required_text(row, *_SUBJECT), "subject")
        objects = self._objects(row)
        given_id = optional_text(row, "id") or optional_text(row, "uuid")
        kind, negated = optional_text(row, "type"), optional_text(row, "negated_template")
        for obj, aliases in objects:
            own_id = f"{given_id}|{obj}" if len(objects) > 1 and given_id else given_id
            fact = Fact(
                f"{name}:{own_id or f'{subject}|{obj}'}",
                subject,
                name,
                obj,
                SOURCE,
                subject_id=optional_text(row, "sub_uri"),
                object_id=optional_text(row, "obj_uri"),
                sentences=sentences,
                origin=optional_text(row, "origin"),
                aliases=aliases,
            )
            first, (earlier, _) = self.known.get(fact.id, (fact, ((), "")))
            adds = first is not fact and not {*templates} <= {*earlier}
            # A row that only adds a template to a known fact is one more prompt, not a duplicate.
            if not adds or (first.subject, first.object) != (subject, obj):
                self.reading.fact(
                    fact, number, self.lines, f"the id {given_id!r}" if given_id else ""
                )
            together = tuple(dict.fromkeys((*earlier, *templates))) if earlier else templates
            wording = self.same.setdefault((together, negated), (together, negated))
            self.known[fact.id] = first, wording
        self._add_relation(row, name, templates, kind, negated)
        for role, text in (("relation", given), ("type", kind)):
            if not text and len(self.blank[role]) <= MAX_LINES_NAMED:
                self.blank[role].append(number)
            self.filled[role] |= role == "relation" or text in TYPE_OF_NAME if text else False

    def finish(self) -> None:
        """Give each fact its own templates, where the facts of a relation have different ones.

        Raises:
            UserError: If a row has no relation or type, and others have one.
        """
        for role, lines in self.blank.items():
            if self.filled[role] and lines:
                shown = ", ".join(map(str, lines[:MAX_LINES_NAMED]))
                shown += ", ..." * (len(lines) > MAX_LINES_NAMED)
                raise UserError(
                    f"{self.reading.root}: the {role} is blank in line {shown}, and other rows "
                    "have one. Fill in these cells, or remove the rows or the column."
                )
        sets: dict[str, set[frozenset[str]]] = {}
        for fact in self.reading.facts:
            # A fact with a sentence alone keeps its sentence; one with neither takes the others'.
            if (own := self.known[fact.id][1][0]) or fact.sentences:
                sets.setdefault(fact.relation, set()).add(frozenset(own))
        differ = {name for name, found in sets.items() if len(found) > 1}
        numbers = dict.fromkeys(differ, 0)
        for at, fact in enumerate(self.reading.facts):
            if fact.relation in differ:
                own, negated = self.known[fact.id][1]
                numbers[fact.relation] = max(numbers[fact.relation], len(own))
                sides = () if template_fault(negated) else negated.split("[Y]")
                text = BLANK.join(side.replace("[X]", fact.subject) for side in sides)
                self.reading.facts[at] = replace(
                    fact, templates=own, negated_sentences=(text,) if text else ()
                )
        for name, number in numbers.items():
            self.relations[name] = replace(
                self.relations[name], prompts=(), negated_template=None, own_templates=number
            )

    def _add_relation(
        self, row: JsonObject, name: str, templates: tuple[str, ...], kind: str, negated: str
    ) -> None:
        """Add what a row says of its relation; note what it can't use."""
        known = self.relations.get(name) or Relation(name, SOURCE, optional_text(row, "label"))
        if kind and kind not in TYPE_OF_NAME:
            self._note(
                f"{name}: the type {kind[:60]!r} is unknown; known: {', '.join(TYPE_OF_NAME)}"
            )
        elif kind and known.type not in (None, TYPE_OF_NAME[kind]):
            self._note(f"{name}: has the types {known.type} and {kind}; {known.type} is used")
        if negated and (fault := template_fault(negated)):
            self._note(f"{name}: the negated template is not used: {fault}")
            negated = ""
        prompts = tuple(Prompt(template, "user") for template in templates)
        says: dict[str, Any] = {
            "type": known.type or TYPE_OF_NAME.get(kind),
            "prompts": tuple(dict.fromkeys((*known.prompts, *prompts))),
            "negated_template": known.negated_template or negated or None,
        }
        if name not in self.relations or any(getattr(known, key) != says[key] for key in says):
            self.relations[name] = replace(known, **says)

    def _note(self, text: str) -> None:
        if text not in self.reading.notes:
            self.reading.notes.append(text)

    def _objects(self, row: JsonObject) -> list[tuple[str, tuple[str, ...]]]:
        """Return each object of a row and its aliases. Raises Rejected without a usable object."""
        field_name = next((name for name in _OBJECT if row.get(name) is not None), "object")
        value = self._split(row.get(field_name), "object")
        if not isinstance(value, list):
            aliases = self._split(row.get("aliases"), "aliases")
            names = text_list({"aliases": aliases}, "aliases")
            obj = _name(required_text(row, *_OBJECT), "object")
            names = tuple(name for name in distinct(map(label_of, names)) if name != obj)
            return [(obj, names)]
        found: dict[str, tuple[str, ...]] = {}
        for item in value:
            names = distinct(
                as_text(one, field_name) for one in (item if isinstance(item, list) else [item])
            )
            if names:
                labels = distinct(map(label_of, names)) or names[:1]
                found.setdefault(_name(labels[0], "object"), labels[1:])
        if not found:
            raise Rejected(f"no object: the list {field_name!r} is empty")
        return list(found.items())

    def _split(self, value: Any, role: str) -> Any:
        """Return a cell of text with several values as a list; other values unchanged."""
        found = read_list(value)
        separator = self.columns.separator
        if found is not None or not isinstance(value, str) or not separator:
            return value if found is None else found
        if separator == JSON:
            raise Rejected(f"{role}: not a JSON list")
        return [part.strip() for part in value.split(separator)]


_TIME = re.compile(r"([+-]?\d{4,}-\d\d-\d\d)T(\d\d:\d\d:\d\d(?:\.\d+)?)(?:Z|[+-]\d\d:\d\d)?")


def _name(text: str, role: str) -> str:
    """Return a subject or object; of a date with the time 00:00:00, as Wikidata has it, the date.

    Raises:
        Rejected: For an identifier without its label, an address, or a time of day.
    """
    if text in MISSING_NAMES:
        raise Rejected(f"the {role} {text!r} means a missing name")
    label = label_of(text)
    if not label:
        raise Rejected(
            f"the {role} {text[:80]!r} is not a name: choose the column of labels, or give the "
            "entity a label"
        )
    if time := _TIME.fullmatch(label):
        if time[2].rstrip("0.:"):
            raise Rejected(f"the {role} {text!r} is a time: write it as a text would have it")
        return time[1].removeprefix("+")
    return label


def table_stem(path: Path) -> str:
    """Return a table's name without its suffixes, such as `.csv.gz`."""
    return Path(path.name.removesuffix(".gz")).stem
