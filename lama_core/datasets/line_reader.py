"""Reading lines and JSON objects from dataset files, with a report of excluded lines.

Lines are read as bytes, with a maximum length: a file without line breaks can't fill the memory.
Each line is decoded separately, so that only broken lines are excluded. A file with too many broken
lines is refused before the report on them fills the memory.
"""

import gzip
import io
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Self, cast

import orjson

from lama_core.datasets.dataset import Dataset, Dropped, ReadReport, make_dataset
from lama_core.datasets.template_syntax import template_fault
from lama_core.errors import UserError
from lama_core.files import format_bytes, open_file, read_error
from lama_core.types import Fact, Prompt, Relation

# The longest lines of LAMA are facts with thousands of evidences, a few megabytes each.
MAX_LINE_BYTES = 64 * 1024 * 1024
MAX_FILE_BYTES = 4 << 30
MAX_LINES = 5_000_000
MAX_DROPPED = 100_000
MAX_REASON = 1000  # letters
PROPERTY = re.compile(r"P\d+")  # a Wikidata property

JsonObject = dict[str, object]


class Rejected(Exception):
    """Raised for a line to exclude, with the reason as a clause; the readers catch it.

    text: The line, if it can be shown.
    """

    def __init__(self, reason: str, text: str = "") -> None:
        super().__init__(reason)
        self.text = text


@dataclass
class Reading:
    """The facts and the report of a dataset while it is read.

    root: its folder or file. data: the bytes of the file `root`, if they aren't on the disk.
    encoding: of a table's text, if it isn't a Unicode encoding. sheet: of a spreadsheet with
    several.
    """

    HEAD_BYTES: ClassVar[int] = 1 << 16  # by which a file's form is recognised

    root: Path
    data: bytes | None = None
    facts: list[Fact] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    encoding: str = ""
    sheet: str = ""

    @classmethod
    def at(cls, root: Path | None, path: Path, missing: str) -> Self:
        """Start to read the dataset found at `root`, which is at or under `path`.

        Raises UserError if none was found. missing: The error's text after the path.
        """
        if root is None:
            raise UserError(f"{path} {missing}")
        return cls(root)

    def shown(self, path: Path) -> str:
        """Return the file's name for reports: its path in the dataset's folder, or its name."""
        inside = path != self.root and path.is_relative_to(self.root)
        return path.relative_to(self.root).as_posix() if inside else path.name

    def drop(self, path: Path, line: int, reason: str, text: str = "") -> None:
        """Report an excluded line; 0 means the whole file. text: the line, if it can be shown."""
        self.dropped.append(Dropped(self.shown(path), line, reason[:MAX_REASON]))

    @contextmanager
    def dropping(self, path: Path, number: int, prefix: str = "") -> Iterator[None]:
        """Exclude the line if the block raises `Rejected`; the reason begins with `prefix`."""
        try:
            yield
        except Rejected as reason:
            self.drop(path, number, f"{prefix}{reason}", reason.text)

    def lines(self, path: Path, *, stripped: bool = True) -> Iterator[tuple[int, str]]:
        """Yield (line number from 1, text) of every line.

        stripped: Without blank lines, and without the spaces and tabs around a line, which are
        empty cells in a table.

        Lines that are too long or not UTF-8 are excluded. Raises UserError if the file can't be
        read, isn't a regular file, is too large or has too many broken lines.
        """
        for number, line in self._bytes(path):
            kept = line.strip() if stripped else line.rstrip(b"\r\n")
            if kept or not stripped:
                with self.dropping(path, number):
                    yield number, _text(kept)

    def objects(self, path: Path) -> Iterator[tuple[int, JsonObject]]:
        """Yield (line number, object) of every line with a JSON object; raises as `lines`."""
        for number, line in self._bytes(path):
            if kept := line.strip():
                try:  # `dropping` would take as long as reading the line
                    try:
                        value = parse_json(kept)
                    except ValueError as error:
                        _text(kept)  # raises for invalid UTF-8, naming the byte
                        raise Rejected(f"not valid JSON ({error})") from error
                    found = as_object(value)
                except Rejected as reason:
                    self.drop(path, number, str(reason), reason.text)
                else:
                    yield number, found

    def head(self, path: Path) -> bytes:
        """Return the first bytes of a file, unpacked. Raises UserError if it can't be read."""
        with self._open(path) as file, _reading(path):
            return file.read(self.HEAD_BYTES) or b""

    def content(self, path: Path, max_bytes: int) -> bytes:
        """Return all bytes of a file, unpacked. Raises UserError if unreadable or too large."""
        with self._open(path) as file, _reading(path):
            found = file.read(max_bytes + 1) or b""
        if len(found) > max_bytes:
            raise UserError(f"{self.shown(path)} has more than {format_bytes(max_bytes)}: split it")
        return found

    def is_packed(self, path: Path) -> bool:
        """Whether a file is compressed with gzip. Raises UserError if it can't be read."""
        with self._raw(path) as file, _reading(path):
            return (file.read(2) or b"") == b"\x1f\x8b"

    def _raw(self, path: Path) -> BinaryIO:
        return open_file(path, MAX_FILE_BYTES) if self.data is None else io.BytesIO(self.data)

    def _open(self, path: Path) -> BinaryIO:
        """Open a file; one that is compressed with gzip is unpacked while it is read."""
        is_packed, file = self.is_packed(path), self._raw(path)
        return cast(BinaryIO, gzip.GzipFile(fileobj=file)) if is_packed else file

    def _bytes(self, path: Path) -> Iterator[tuple[int, bytes]]:
        shown = self.shown(path)
        number = n_bytes = 0
        with self._open(path) as file, _reading(path):
            head = file.read(Reading.HEAD_BYTES) or b""  # None: a special file without data
            file.seek(0)
            if b"\r" in head and b"\n" not in head:
                file = io.BytesIO(self.content(path, MAX_LINE_BYTES).replace(b"\r", b"\n"))
            while line := file.readline(MAX_LINE_BYTES + 1):
                number += 1
                n_bytes += len(line)
                self.check(shown, number, n_bytes)
                if len(line) > MAX_LINE_BYTES and not line.endswith(b"\n"):
                    while (rest := file.readline(1 << 20)) and not rest.endswith(b"\n"):
                        n_bytes += len(rest)
                        self.check(shown, number, n_bytes)
                    self.drop(path, number, f"longer than {MAX_LINE_BYTES:,} bytes")
                    continue
                if number == 1:
                    line = line.removeprefix(b"\xef\xbb\xbf")
                yield number, line

    def check(
        self, shown: str, n_lines: int, n_bytes: int, most_bytes: int = MAX_FILE_BYTES
    ) -> None:
        """Raise UserError for a file that is too large or has too many broken lines."""
        if n_lines > MAX_LINES or n_bytes > most_bytes:
            most = f"{MAX_LINES:,} lines or {format_bytes(most_bytes)}"
            raise UserError(f"{shown} has more than {most}: split it")
        if len(self.dropped) > MAX_DROPPED:
            raise UserError(
                f"Not a valid dataset: {shown} has more than {MAX_DROPPED:,} unreadable lines. "
                f"The first: {self.dropped[0]}"
            )

    def fact(self, fact: Fact, line: int, lines: dict[str, int], what: str = "") -> None:
        """Add a fact. Raises Rejected if its file already had a fact with this id.

        Args:
            fact: The fact.
            line: The fact's line number.
            lines: Id -> line number of the file's facts so far; this fact is added.
            what: Name of the fact in the reason. Default: subject and object.
        """
        if fact.id in lines:
            what = what or f"{fact.subject!r} with {fact.object!r}"
            raise Rejected(f"duplicate of line {lines[fact.id]}: {what}")
        lines[fact.id] = line
        self.facts.append(fact)

    @property
    def report(self) -> ReadReport:
        """The excluded lines and the notes."""
        return ReadReport(tuple(self.dropped), tuple(self.notes))

    def nothing(self, path: Path, what: str) -> UserError:
        """Return the error for a dataset without any usable fact, row or pair (`what`)."""
        n = len(self.dropped)
        lines = "1 line was" if n == 1 else f"{n:,} lines were"
        why = f"{lines} excluded. The first: {self.dropped[0]}" if n else f"it has no {what}s"
        return UserError(f"{path} has no usable {what}: {why}")

    def dataset_of_questions(
        self, path: Path, name: str | None, source: str, what: str, **about: str
    ) -> Dataset:
        """Return the facts as a dataset without cloze templates.

        A relation's name is also its label, unless it is a Wikidata property such as P19.

        Args:
            path: The path that was read, for errors and as the default name.
            name: The dataset's name.
            source: The source of the relations.
            what: The error's word for a fact of the file, such as `row`.
            **about: `licence` and `citation`.

        Raises:
            UserError: If no line has a fact.
        """
        if not self.facts:
            raise self.nothing(path, what)
        names = dict.fromkeys(fact.relation for fact in self.facts)
        relations = [Relation(one, source, "" if PROPERTY.fullmatch(one) else one) for one in names]
        return make_dataset(name or path.stem, relations, self.facts, self.report, **about)

    def relations_of(self, prompts: Mapping[str, tuple[Prompt, ...]]) -> list[Relation]:
        """Return T-REx relations: those in `prompts`, then those that only have facts."""
        names = dict.fromkeys([*prompts, *(fact.relation for fact in self.facts)])
        return [Relation(name, "TREx", prompts=prompts.get(name, ())) for name in names]


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn an error of reading or unpacking into UserError."""
    try:
        yield
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(f"{path} is a damaged gzip file: {error}.") from error
    except OSError as error:
        raise read_error(path, error) from error


def usable(template: str) -> str:
    """Return the template. Raises Rejected unless it has one [X] and one [Y]."""
    if fault := template_fault(template):
        raise Rejected(fault)
    return template


def as_object(value: object) -> JsonObject:
    """Return the value, a JSON object. Raises Rejected for any other value."""
    if not isinstance(value, dict):
        raise Rejected(f"expected a JSON object, not a {type(value).__name__}")
    return value


def required_text(row: JsonObject, *names: str) -> str:
    """Return the first existing field, stripped. Raises Rejected if empty or not text."""
    if text := optional_text(row, *names):
        return text
    found = [name for name in names if name in row]
    fields = " or ".join(map(repr, names))
    raise Rejected(f"{found[0]!r} is empty" if found else f"no field {fields}")


def optional_text(row: JsonObject, *names: str) -> str:
    """Return the first existing field, stripped; empty if none exists. Raises as `as_text`."""
    for name in names:
        if (value := row.get(name)) is not None:
            return as_text(value, name)
    return ""


def as_text(value: object, name: str) -> str:
    """Return the stripped text, or the digits of a whole number (`142` for 142.0).

    Raises Rejected for other types.
    """
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise Rejected(f"{name!r} is a {type(value).__name__}, not text")


def text_list(row: JsonObject, name: str) -> tuple[str, ...]:
    """Return the texts of a list field (a text is a list of one); empty without the field."""
    value = row.get(name)
    if value is None:
        return ()
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(item, str) for item in texts):
        raise Rejected(f"{name!r} is not a list of texts")
    return tuple(texts)


def distinct(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the distinct texts without spaces around them; empty texts are excluded."""
    return tuple(dict.fromkeys(filter(None, map(str.strip, texts))))


def _text(line: bytes) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Rejected(
            f"not valid UTF-8 (byte {error.start + 1}): save the file as UTF-8"
        ) from error


def parse_json(data: bytes) -> Any:
    """Return a JSON value, also with NaN and Infinity, as Python and its libraries write them.

    Raises ValueError with the reason and the place.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        if b"NaN" not in data and b"Infinity" not in data:
            place = f"line {error.lineno}, " if error.lineno > 1 else ""
            raise ValueError(f"{error.msg}, {place}column {error.colno}") from error
    try:
        found = json.loads(data)
        json.dumps(found, ensure_ascii=False).encode()  # half a character isn't text
    except RecursionError as error:
        raise ValueError("its lists or objects are nested too deep") from error
    return found
