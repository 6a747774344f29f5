"""What every reader reads with: lines and JSON objects of files, and a report of what is left out.

Lines are read as bytes with a bound on their length, so a file without line ends can't fill the
memory; each is decoded on its own, so one broken line costs one line. A file of which most lines
are broken isn't data, and is refused before the list of them fills the memory.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import orjson

from lama_core.datasets.dataset import Dropped, ReadReport
from lama_core.datasets.template_syntax import template_fault
from lama_core.errors import UserError
from lama_core.files import format_bytes, open_file, read_error
from lama_core.types import Fact, Prompt, Relation

# The longest lines of LAMA are facts with thousands of evidences, a few megabytes each.
MAX_LINE_BYTES = 64 * 1024 * 1024
MAX_FILE_BYTES = 4 << 30
MAX_LINES = 5_000_000
MAX_DROPPED = 100_000

JsonObject = dict[str, object]


class Rejected(Exception):
    """A line that a reader refuses, with the reason as a clear sentence; never leaves a reader."""


@dataclass
class Reading:
    """What accumulates while the files of one dataset are read. root: its folder, or its file."""

    root: Path
    facts: list[Fact] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @classmethod
    def at(cls, root: Path | None, path: Path, lacking: str) -> Self:
        """The reading of a folder that was found at or under `path`.

        Raises UserError, with what is `lacking`, if none was found.
        """
        if root is None:
            raise UserError(f"{path} {lacking}")
        return cls(root)

    def shown(self, path: Path) -> str:
        """The file's name in reports: relative to the dataset's folder where it lies in it."""
        inside = path != self.root and path.is_relative_to(self.root)
        return path.relative_to(self.root).as_posix() if inside else path.name

    def drop(self, path: Path, line: int, reason: str) -> None:
        """Report a line that is left out; 0 means the file as a whole."""
        self.dropped.append(Dropped(self.shown(path), line, reason))

    @contextmanager
    def line(self, path: Path, number: int, of: str = "") -> Iterator[None]:
        """Read a line; leave it out if it is `Rejected`. of: begins the reason."""
        try:
            yield
        except Rejected as reason:
            self.drop(path, number, f"{of}{reason}")

    def lines(self, path: Path) -> Iterator[tuple[int, str]]:
        """(line number from 1, text without line end) of every line that isn't blank.

        A line that is too long or isn't UTF-8 is left out. Raises UserError for what is no plain
        file, can't be read, is larger than data are, or has hardly a line that can be read.
        """
        for number, line in self._bytes(path):
            with self.line(path, number):
                yield number, _text(line)

    def objects(self, path: Path) -> Iterator[tuple[int, JsonObject]]:
        """(line number, object) of every line that holds one JSON object; raises as `lines`."""
        for number, line in self._bytes(path):
            with self.line(path, number):
                yield number, _object(line)

    def _bytes(self, path: Path) -> Iterator[tuple[int, bytes]]:
        shown = self.shown(path)
        number = n_bytes = 0
        try:
            with open_file(path, MAX_FILE_BYTES) as file:
                while line := file.readline(MAX_LINE_BYTES + 1):
                    number += 1
                    n_bytes += len(line)
                    self._check(shown, number, n_bytes)
                    if len(line) > MAX_LINE_BYTES and not line.endswith(b"\n"):
                        while (rest := file.readline(1 << 20)) and not rest.endswith(b"\n"):
                            pass
                        self.drop(path, number, f"the line is longer than {MAX_LINE_BYTES:,} bytes")
                        continue
                    if number == 1:
                        line = line.removeprefix(b"\xef\xbb\xbf")
                    if line := line.strip():
                        yield number, line
        except OSError as error:
            raise read_error(path, error) from error

    def _check(self, shown: str, n_lines: int, n_bytes: int) -> None:
        """Raise UserError for a file that is larger than data are, or hardly can be read."""
        if n_lines > MAX_LINES or n_bytes > MAX_FILE_BYTES:
            most = f"{MAX_LINES:,} lines or {format_bytes(MAX_FILE_BYTES)}"
            raise UserError(f"{shown} has more than {most}: split it")
        if len(self.dropped) > MAX_DROPPED:
            raise UserError(
                f"{shown} is no data: more than {MAX_DROPPED:,} lines can't be read; the first: "
                f"{self.dropped[0]}"
            )

    def fact(self, fact: Fact, line: int, lines: dict[str, int], what: str = "") -> None:
        """Add a fact. lines: where the facts of this file are, by id. what: it, in the reason.

        Raises Rejected if its id is there.
        """
        if fact.id in lines:
            what = what or f"{fact.subject!r} with {fact.object!r}"
            raise Rejected(f"{what} was already on line {lines[fact.id]}")
        lines[fact.id] = line
        self.facts.append(fact)

    @property
    def report(self) -> ReadReport:
        """What was left out, and what else is worth knowing."""
        return ReadReport(tuple(self.dropped), tuple(self.notes))

    def nothing(self, path: Path, what: str) -> UserError:
        """What is said of a dataset without any usable fact, row or pair."""
        first = f"; the first: {self.dropped[0]}" if self.dropped else ""
        n = len(self.dropped)
        lines = "1 line was" if n == 1 else f"{n:,} lines were"
        return UserError(f"{path} has no usable {what}: {lines} excluded{first}")

    def relations_of(self, prompts: Mapping[str, tuple[Prompt, ...]]) -> list[Relation]:
        """Relations of T-REx: those that have prompts, then those that have facts alone."""
        names = dict.fromkeys([*prompts, *(fact.relation for fact in self.facts)])
        return [Relation(name, "TREx", prompts=prompts.get(name, ())) for name in names]


def usable(template: str) -> str:
    """The template. Raises Rejected unless it has one [X] and one [Y]."""
    if fault := template_fault(template):
        raise Rejected(fault)
    return template


def as_object(value: object) -> JsonObject:
    """A JSON object. Raises Rejected for another value."""
    if not isinstance(value, dict):
        raise Rejected(f"a JSON object was expected, not a {type(value).__name__}")
    return value


def required_text(row: JsonObject, *names: str) -> str:
    """The first of the fields `names` that is there, stripped. Raises Rejected if it isn't text."""
    if text := optional_text(row, *names):
        return text
    here = [name for name in names if row.get(name) is not None]
    raise Rejected(f"{here[0]!r} is empty" if here else f"no field {' or '.join(map(repr, names))}")


def optional_text(row: JsonObject, *names: str) -> str:
    """As `required_text`, or an empty string if none of the fields is there."""
    found = ((row[name], name) for name in names if row.get(name) is not None)
    return next((as_text(value, name) for value, name in found), "")


def as_text(value: object, name: str) -> str:
    """`value` stripped; a whole number (a year, an id) becomes its digits. Raises Rejected."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise Rejected(f"{name!r} is a {type(value).__name__}, not a text")


def text_list(row: JsonObject, name: str) -> tuple[str, ...]:
    """The texts of a list field (one text counts as a list of one); empty if it isn't there."""
    value = row.get(name)
    texts = [] if value is None else [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(item, str) for item in texts):
        raise Rejected(f"{name!r} is not a list of texts")
    return tuple(texts)


def _text(line: bytes) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Rejected(f"not valid UTF-8 (byte {error.start + 1})") from error


def _object(line: bytes) -> JsonObject:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        _text(line)  # says which byte is wrong
        raise Rejected(f"not valid JSON ({error.msg}, column {error.colno})") from error
    return as_object(value)
