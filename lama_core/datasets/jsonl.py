"""Lines and JSON objects of a text file, with every line that can't be read reported.

Lines are read as bytes with a bound on their length, so a file without line ends can't fill the
memory; each is decoded on its own, so one broken line costs one line. A file of which most lines
are broken is no data, and is refused before the list of them fills the memory.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import orjson

from lama_core.datasets.base import Dropped
from lama_core.errors import UserError
from lama_core.files import bytes_text, cant_be_read, open_file

# The longest lines of LAMA are facts with thousands of evidences, a few megabytes each.
MAX_LINE_BYTES = 64 * 1024 * 1024
MAX_FILE_BYTES = 4 << 30
MAX_LINES = 5_000_000
MAX_DROPPED = 100_000

JsonObject = dict[str, object]


class Rejected(Exception):
    """A line that a reader refuses, with the reason as a clear sentence; never leaves a reader."""


def iter_lines(
    path: Path, shown: str, dropped: list[Dropped], *, max_line_bytes: int = MAX_LINE_BYTES
) -> Iterator[tuple[int, bytes]]:
    """(line number from 1, bytes without line end) of every line that isn't blank.

    shown: the file's name in reports. A line over `max_line_bytes` is skipped and reported.
    Raises UserError for what is no plain file, can't be read, or is larger than data are.
    """
    with open_file(path, MAX_FILE_BYTES) as file:
        number = n_bytes = 0
        while line := _read_line(file, path, max_line_bytes + 1):
            number += 1
            n_bytes += len(line)
            if number > MAX_LINES or n_bytes > MAX_FILE_BYTES:
                raise UserError(
                    f"{shown} has more than {MAX_LINES:,} lines or {bytes_text(MAX_FILE_BYTES)}: "
                    "split it"
                )
            if len(dropped) > MAX_DROPPED:
                raise UserError(
                    f"{shown} is no data: more than {MAX_DROPPED:,} lines can't be read; the "
                    f"first: {dropped[0]}"
                )
            if len(line) > max_line_bytes and not line.endswith(b"\n"):
                _skip_rest_of_line(file, path)
                dropped.append(
                    Dropped(shown, number, f"the line is longer than {max_line_bytes:,} bytes")
                )
                continue
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            line = line.strip()
            if line:
                yield number, line


def iter_text_lines(
    path: Path, shown: str, dropped: list[Dropped], *, max_line_bytes: int = MAX_LINE_BYTES
) -> Iterator[tuple[int, str]]:
    """As `iter_lines`, decoded; a line that isn't UTF-8 is reported."""
    for number, line in iter_lines(path, shown, dropped, max_line_bytes=max_line_bytes):
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            dropped.append(Dropped(shown, number, f"not valid UTF-8 (byte {error.start + 1})"))
            continue
        yield number, text


def iter_objects(
    path: Path, shown: str, dropped: list[Dropped], *, max_line_bytes: int = MAX_LINE_BYTES
) -> Iterator[tuple[int, JsonObject]]:
    """(line number, object) of every line that holds one JSON object; others are reported."""
    for number, line in iter_lines(path, shown, dropped, max_line_bytes=max_line_bytes):
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            dropped.append(Dropped(shown, number, _json_reason(line, error)))
            continue
        if isinstance(value, dict):
            yield number, value
        else:
            kind = type(value).__name__
            dropped.append(Dropped(shown, number, f"a JSON object was expected, not a {kind}"))


def required_text(row: JsonObject, *names: str) -> str:
    """The first of the fields `names` that is there, stripped. Raises Rejected if it isn't text."""
    for name in names:
        value = row.get(name)
        if value is None:
            continue
        text = as_text(value, name)
        if text:
            return text
        raise Rejected(f"{name!r} is empty")
    raise Rejected(f"no field {' or '.join(repr(name) for name in names)}")


def optional_text(row: JsonObject, *names: str) -> str:
    """As `required_text`, or an empty string if none of the fields is there."""
    for name in names:
        value = row.get(name)
        if value is not None:
            return as_text(value, name)
    return ""


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
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(value)
    raise Rejected(f"{name!r} is not a list of texts")


def _skip_rest_of_line(file: BinaryIO, path: Path) -> None:
    while (chunk := _read_line(file, path, 1 << 20)) and not chunk.endswith(b"\n"):
        pass


def _read_line(file: BinaryIO, path: Path, max_bytes: int) -> bytes:
    try:
        return file.readline(max_bytes)
    except OSError as error:
        raise cant_be_read(path, error) from error


def _json_reason(line: bytes, error: orjson.JSONDecodeError) -> str:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError as bad_byte:
        return f"not valid UTF-8 (byte {bad_byte.start + 1})"
    return f"not valid JSON ({error.msg}, column {error.colno})"
