"""Rows of imported results, collected as Arrow columns, and the checks that readers share."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from lama_core.datasets.columns import verdict_of
from lama_core.datasets.line_reader import JsonObject, Reading, Rejected, as_object, parse_json
from lama_core.errors import UserError
from lama_core.files import read_file
from lama_core.progress import OnProgress, Progress
from lama_core.runs.importers.results import ANSWERS, BATCH, MAX_PREDICTIONS, MAX_ROWS, short

MAX_OPTIONS = 10_000  # answers to one query
MAX_LIST = 512 << 20  # bytes of a JSON list
MAX_SCORES = 1 << 26  # scores of all answers in one import: 256 MB
BOM = b"\xef\xbb\xbf"


@dataclass
class AnswerRows:
    """The rows of one model: finished batches of columns, and the values of the next one."""

    on_progress: OnProgress
    stage: str
    n: int = 0
    n_scores: int = 0
    batches: list[pa.RecordBatch] = field(default_factory=list)
    values: dict[str, list[Any]] = field(default_factory=lambda: {n: [] for n in ANSWERS.names})

    def add(self, **row: Any) -> None:
        """Add a row with columns of `ANSWERS`. Raises UserError for too many."""
        self.n += 1
        self.n_scores += len(row.get("all_scores") or ())
        if self.n > MAX_ROWS or self.n_scores > MAX_SCORES:
            raise UserError(
                f"The results have more than {MAX_ROWS:,} rows or {MAX_SCORES:,} scores: import "
                "fewer relations at a time."
            )
        for name, column in self.values.items():
            column.append(row.get(name))
        if self.n % BATCH == 0:
            self._flush()
            self.on_progress(Progress(self.stage, self.n, unit="rows"))

    def _flush(self) -> None:
        arrays = [pa.array(self.values[one.name], one.type) for one in ANSWERS]
        self.batches.append(pa.record_batch(arrays, schema=ANSWERS))
        for column in self.values.values():
            column.clear()

    def table(self) -> pa.Table:
        """Return all rows."""
        self._flush()
        return pa.Table.from_batches(self.batches, ANSWERS)


def read_json_object(path: Path, max_bytes: int) -> JsonObject:
    """Return the object in a JSON file. Raises UserError for anything else."""
    try:
        return as_object(parse_json(read_file(path, max_bytes).removeprefix(BOM)))
    except ValueError as error:
        raise UserError(f"{path.name} is not valid JSON ({error}).") from error
    except Rejected as reason:
        raise UserError(f"{path.name}: {reason}.") from reason


def head_of(path: Path) -> bytes:
    """Return the first bytes of a file, b"" if it can't be read."""
    try:
        return Reading(path).head(path).removeprefix(BOM).lstrip()
    except UserError:
        return b""


def is_list(head: bytes) -> bool:
    """Whether a file is one JSON value: a list, or an object with LAMA's `list_of_results`."""
    return head.startswith(b"[") or (head.startswith(b"{") and b'"list_of_results"' in head)


def answers_in(reading: Reading, file: Path) -> Iterator[tuple[int, JsonObject]]:
    """Yield (number from 1, answer) of lines, or of the items of a JSON list."""
    if not is_list(head_of(file)):
        yield from reading.objects(file)
        return
    try:
        found = parse_json(reading.content(file, MAX_LIST).removeprefix(BOM))
    except ValueError as error:
        reading.drop(file, 0, f"not valid JSON ({error})")
        return
    items = found.get("list_of_results") if isinstance(found, dict) else found
    for number, item in enumerate(items if isinstance(items, list) else [items], start=1):
        with reading.dropping(file, number):
            yield number, as_object(item)


def first_object(path: Path) -> JsonObject:
    """Return the object in a file's first line; {} if there is none, or it is too long."""
    try:
        return as_object(parse_json(head_of(path).partition(b"\n")[0]))
    except (Rejected, ValueError):
        return {}


def converted(value: object, kind: Any, what: str) -> Any:
    """Return plain JSON as a typed value. Raises Rejected, naming the field."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        where = str(error).partition(" - at ")[2].strip("`$.") or what
        raise Rejected(f"{where[:60]} has the wrong type") from error


def model_of(name: str) -> str:
    """Return a model's name; of a path to a folder, only the folder's name."""
    name = name.strip()
    path = PureWindowsPath(name) if "\\" in name else PurePosixPath(name)
    is_path = path.is_absolute() or name.startswith((".", "~")) or "\\" in name
    return path.name if is_path else name.rstrip("/")


def log_probability(number: object, what: str) -> float:
    """Return a natural logarithm of a probability. Raises Rejected for any other value."""
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise Rejected(f"the {what} isn't a number")
    if not math.isfinite(number) or number > 1e-3:
        raise Rejected(f"the {what} isn't a finite log-probability")
    return min(float(number), 0.0)


def ranked(words: Sequence[str], scores: Sequence[float], gold: int) -> Mapping[str, Any]:
    """Return the columns that follow from the scores of a query's own answers.

    The earlier answer wins a tie. words: distinct. scores: of each word; -inf if the model can't
    write it, which is no prediction then. gold: index of the right answer.
    """
    order = np.argsort(-np.asarray(scores, np.float64), kind="stable")
    best = [at for at in order[:MAX_PREDICTIONS].tolist() if math.isfinite(scores[at])]
    return {
        "rank": int(np.flatnonzero(order == gold)[0]) + 1,
        "log_prob": scores[gold] if math.isfinite(scores[gold]) else None,
        "predictions": [words[at] for at in best],
        "scores": [scores[at] for at in best],
    }


def verdict(value: object, what: str = "score") -> bool:
    """Return whether an answer is right. Raises Rejected for a partial or missing score."""
    said = verdict_of(value) if isinstance(value, bool | int | float | str) else None
    if said is not None:
        return said
    shown = "no" if value is None else f"neither right nor wrong: {str(value)[:40]!r} as"
    raise Rejected(f"{shown} {what}")


def first_text(value: object) -> str:
    """Return a text, that of an object (`text`), or the first one of a list; "" without one."""
    while isinstance(value, list | dict) and value:
        value = value.get("text") if isinstance(value, dict) else value[0]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return short(value if isinstance(value, str) else str(value) if is_number else "")
