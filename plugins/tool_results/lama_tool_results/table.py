"""Results in a table, in any form that `datasets.records` reads, with one row a query.

Columns: `subject` and `object`, and at least one of `rank`, `predictions` (one text, or a list,
best first) and `correct`. More: `relation` (default: the file's name), `log_prob` (natural
logarithm), `scores` (of the predictions), `model`, `query`. `NAMES` lists other names that are
recognised. A prediction may bring its score: `["Paris", -0.1]` or
`{"token": "Paris", "log_prob": -0.1}`.

What cells mean is read from whole columns (`datasets.columns`). A rank of -1 or infinity, or a
missing one where others have ranks, says that the object wasn't found. A row without rank and
verdict is right if its first prediction is the same word as the object.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lama_core.datasets import user_table
from lama_core.datasets.column_guess import guess_columns
from lama_core.datasets.columns import (
    MISSING_NAMES,
    Numbers,
    Verdicts,
    list_separator,
    read_list,
    word_reader,
)
from lama_core.datasets.line_reader import (
    JsonObject,
    Reading,
    Rejected,
    as_text,
)
from lama_core.datasets.nested_folders import files_under
from lama_core.datasets.records import lowered, read_records, single_table
from lama_core.errors import UserError, did_you_mean
from lama_core.progress import OnProgress, Progress
from lama_core.runs.facts_table import UNRANKED
from lama_core.runs.importers.results import (
    ANSWERS,
    BATCH,
    MAX_PREDICTIONS,
    MAX_ROWS,
    DropList,
    ImportedResults,
    ReadOptions,
    short,
)

# Role -> the names of columns that are recognised for it, in lower case.
NAMES: dict[str, tuple[str, ...]] = {
    **{role: user_table.ROLES[role] for role in ("subject", "object", "relation")},
    "rank": ("rank", "rank_raw", "gold_rank", "rank_of_object"),
    "rank_from_0": ("rank_from_0",),
    "log_prob": ("log_prob", "log-prob", "logprob", "log_probability", "gold_log_prob"),
    "predictions": ("predictions", "prediction", "predicted", "top_words", "topk", "top_k"),
    "scores": ("scores", "prediction_scores", "top_log_probs", "log_probs"),
    "correct": ("correct", "is_correct", "right", "hit"),
    "model": ("model", "model_name"),
    "query": ("query", "prompt", "masked_sentence", "question"),
}
RESULTS = ("rank", "rank_from_0", "predictions", "correct")  # a row of results has one of these
MAX_MODELS = 200
HEAD = 1000  # rows by which the columns of a table without a header and lists are recognised
_ITEM_TEXT = ("token", "word", "text", "prediction", "token_word_form")
_ITEM_SCORE = ("log_prob", "logprob", "score")
# The columns that are collected as they are read; numbers and verdicts are read at the end.
_COLLECTED = pa.schema(
    [
        *map(ANSWERS.field, ("relation", "subject", "object", "query", "predictions", "scores")),
        pa.field("model", pa.string()),
        pa.field("line", pa.int32()),
    ]
)


def columns_of(header: Sequence[str], given: Mapping[str, str]) -> dict[str, str]:
    """Return role -> name of its column in lower case, for the roles that have one.

    given: role -> column, "" for a role that no column has.

    Raises:
        UserError: If a given role or column doesn't exist.
    """
    names = {name.strip().lower() for name in header}
    for role, name in given.items():
        if role not in NAMES:
            raise UserError(f"No role is called {role!r}{did_you_mean(role, NAMES)}.")
        if name and name.strip().lower() not in names:
            raise UserError(
                f"The table has no column {name!r} for the {role}{did_you_mean(name, header)}; its "
                f"columns are: {_shown(header)}."
            )
    found = {role: name.strip().lower() for role, name in given.items()}
    for role, known in NAMES.items():
        name = next((one for one in known if one in names), "")
        if name and role not in found and name not in found.values():
            found[role] = name
    return {role: name for role, name in found.items() if name}


def guess(header: Sequence[str], rows: Sequence[JsonObject]) -> dict[str, str]:
    """Return role -> the column that probably has it, for the roles whose name isn't recognised."""
    named = columns_of(header, {})
    written = {name.strip().lower(): name for name in header}
    taken = {role: written[name] for role, name in named.items()}
    for role in ("rank", "log_prob", "correct", "predictions"):
        part = {"log_prob": "prob", "predictions": "pred"}.get(role, role)
        left = [name for name in header if name not in taken.values()]
        parts = (name for name in left if part in name.lower() and _may_have(role, rows, name))
        column = next(parts, "")
        if role not in taken and column:
            taken[role] = column
    known = {role: taken.get(role, "") for role in ("subject", "object", "relation")}
    used = {"template": "", **known, **{role: taken[role] for role in taken if role not in known}}
    facts = guess_columns(header, rows, used)
    guessed = taken | {role: name for role, name in facts.items() if role in known}
    return {role: name for role, name in guessed.items() if role not in named}


def _may_have(role: str, rows: Sequence[JsonObject], name: str) -> bool:
    """Whether most cells of a column have the form of its role: numbers, verdicts or any text."""
    if role == "predictions":
        return True
    column = Verdicts() if role == "correct" else Numbers(role, whole=role == "rank")
    cells = [row[name] for row in rows if name in row]
    for cell in cells:
        column.add(cell)
    try:
        return len(column.read()[1]) * 2 <= len(cells)
    except UserError:
        return True  # the import names the cells


def _shown(header: Sequence[str]) -> str:
    return ", ".join(name for name in header if name.isprintable())[:200] or "none"


def recognizes(path: Path) -> bool:
    """Whether a file, or the only table of a folder, has the columns of results."""
    header, _ = user_table.first_rows(table_in(path), user_table.HEAD, _has_results)
    return _has_results(header)


def _has_results(header: Sequence[str], given: Mapping[str, str] | None = None) -> bool:
    names = {name.strip().lower() for name in header}
    named = {role for role, name in (given or {}).items() if name.strip().lower() in names}
    found = columns_of(header, {}).keys() | named
    return {"subject", "object"} <= found and any(role in found for role in RESULTS)


def table_in(path: Path) -> Path:
    """Return the file itself, or the only table in a folder. Raises UserError for none or more."""
    if path.is_file():
        return path
    tables = [file for file in files_under(path) if user_table.is_table(file)]
    if table := single_table(tables):
        return table
    found = f"{len(tables)} tables: give one of them" if tables else "no table"
    raise UserError(f"{path.name} has {found}.")


def read(path: Path, options: ReadOptions, on_progress: OnProgress) -> list[ImportedResults]:
    """Return the results of each model in a table.

    Raises:
        UserError: If it isn't a table, a needed column is missing, a cell of relations or models
            is blank, the cells of a column contradict each other, or no row is usable.
    """
    path = table_in(path)
    reading = Reading(path, encoding=options.encoding, sheet=options.sheet)
    table = read_records(reading, is_header=lambda names: _has_results(names, options.columns))
    first = list(islice(table.rows, HEAD))
    header = table.header or tuple(dict.fromkeys(name for _, row in first for name in row))
    columns = columns_of(header, options.columns)
    if missing := [role for role in ("subject", "object") if role not in columns]:
        raise UserError(
            f"{path.name} needs a column {missing[0]}; its columns are: {_shown(header)}. Name it "
            f"with --column {missing[0]}=NAME."
        )
    if not any(role in columns for role in RESULTS):
        raise UserError(
            f"{path.name} has no results: it needs a column rank, predictions or correct; its "
            f"columns are: {_shown(header)}. Name one with --column rank=NAME."
        )
    rows = _Rows(path, columns, options, on_progress, [lowered(row) for _, row in first])
    for number, row in chain(first, table.rows):
        rows.add(number, row)
    return rows.results(reading)


class _Rows:
    """The rows of a table while they are read, and what its columns mean."""

    def __init__(
        self,
        path: Path,
        columns: Mapping[str, str],
        options: ReadOptions,
        on_progress: OnProgress,
        first: Sequence[JsonObject],
    ) -> None:
        """columns: role -> column. first: rows by which the lists and words are recognised."""
        self.path, self.columns = path, columns
        self.options, self.on_progress = options, on_progress
        self.n = 0
        self.drops = DropList()
        self.blank: dict[str, list[int]] = {}  # role -> lines without it
        self.others = False  # whether there are other models than the only one to read
        self.named = [role for role in ("model", "relation") if role in columns]
        self.names: dict[tuple[str, ...], list[tuple[str, Any]]] = {}  # by columns: role, column
        self.batches: list[pa.RecordBatch] = []
        self.places: list[NDArray[np.float32]] = []
        self.values: dict[str, list[Any]] = {name: [] for name in _COLLECTED.names}
        self.ranks = Numbers("rank", whole=True)
        self.log_probs = Numbers("log-probability")
        self.verdicts = Verdicts()
        cells = [row.get(columns.get("predictions", "")) for row in first]
        self.separator = list_separator(cells)
        listed = [item for cell in cells for item in self._items(cell, forgiving=True)]
        self.word = word_reader(one for one in listed if isinstance(one, str))
        golds = (row.get(columns["object"]) for row in first)
        self.gold = word_reader(one for one in golds if isinstance(one, str))

    def add(self, number: int, written: JsonObject) -> None:
        """Add a row; an unusable one is dropped."""
        self.n += 1
        if self.n > MAX_ROWS:
            raise UserError(f"{self.path.name} has more than {MAX_ROWS:,} rows: split it.")
        drop = partial(self.drops.add_lines, self.path.name, [number])
        try:
            given = self._by_role(written)
            texts = {role: _text(given, role) for role in self.named}
        except Rejected as reason:
            drop(str(reason))
            return
        for role, text in texts.items():
            if not text:
                self.blank.setdefault(role, []).append(number)
        model = texts.get("model", self.options.model)
        if self.options.model and model != self.options.model:
            self.others = True
            return
        try:
            subject, obj, query = (_text(given, role) for role in ("subject", "object", "query"))
            for name, text in (("subject", subject), ("object", obj)):
                if not text or text in MISSING_NAMES:
                    raise Rejected(f"no {name}")
        except Rejected as reason:
            drop(str(reason), of_answer=False)
            return
        try:
            words, scores = self._predictions(given)
        except Rejected as reason:
            drop(str(reason))
            return
        relation = texts.get("relation", self.stem)
        found = (relation, subject, self.gold(obj), query or None, words, scores, model, number)
        for column, value in zip(self.values.values(), found, strict=True):
            column.append(value)
        self.ranks.add(given.get("rank", given.get("rank_from_0")))
        self.log_probs.add(given.get("log_prob"))
        self.verdicts.add(given.get("correct"))
        if len(self.values["line"]) == BATCH:
            self._flush()
            self.on_progress(Progress(f"Reading {self.path.name}", self.n, unit="rows"))

    def _by_role(self, row: JsonObject) -> dict[str, object]:
        """Return role -> cell. Raises Rejected if two columns are named the same."""
        key = tuple(row)
        if key not in self.names:
            written = lowered({name: name for name in row})
            self.names[key] = [
                (role, written[name]) for role, name in self.columns.items() if name in written
            ]
        return {role: row[name] for role, name in self.names[key]}

    def _flush(self) -> None:
        arrays = [pa.array(self.values[one.name], one.type) for one in _COLLECTED]
        self.batches.append(batch := pa.record_batch(arrays, schema=_COLLECTED))
        words = batch["predictions"]
        found = np.full(len(words), np.inf, np.float32)
        flat, rows = words.flatten(), pc.list_parent_indices(words)
        same = np.flatnonzero(pc.equal(flat, batch["object"].take(rows)))
        owners = rows.to_numpy()
        starts = np.searchsorted(owners, owners[same])
        np.minimum.at(found, owners[same], same - starts + 1.0)
        self.places.append(found)
        for column in self.values.values():
            column.clear()

    @property
    def stem(self) -> str:
        """The table's name, which names its data and the relation of a table without relations."""
        return user_table.table_stem(self.path)

    def _items(self, cell: object, *, forgiving: bool = False) -> list[Any]:
        """Return the items of a cell: those of a list, separated ones, or one."""
        try:
            found = read_list(cell)
        except Rejected:
            if not forgiving:
                raise
            found = None
        if found is not None or cell is None or cell == "":
            return found or []
        if self.separator and isinstance(cell, str):
            return [part.strip() for part in cell.split(self.separator) if part.strip()]
        return [cell]

    def _predictions(
        self, given: Mapping[str, object]
    ) -> tuple[list[str] | None, list[float] | None]:
        """Return the best predictions, None without a cell of them, and their scores or None."""
        if "predictions" not in given:
            return None, None
        items = self._items(given["predictions"])[:MAX_PREDICTIONS]
        if "scores" not in given and all(isinstance(item, str) for item in items):
            words = [self.word(short(item)) for item in items]
            if not all(words):
                raise Rejected("a prediction is empty")
            return words, None
        scores = self._items(given.get("scores"))[:MAX_PREDICTIONS]
        words = []
        numbers = Numbers("score of a prediction")
        for at, item in enumerate(items):
            score = scores[at] if at < len(scores) else None
            if isinstance(item, dict):
                score = next((item[name] for name in _ITEM_SCORE if name in item), score)
                item = next((item[name] for name in _ITEM_TEXT if name in item), None)
            elif isinstance(item, list) and len(item) == 2:
                item, score = item
            word = _text({"predictions": item}, "predictions")
            if not word:
                raise Rejected("a prediction is empty")
            words.append(self.word(word))
            numbers.add(score)
        found, odd = numbers.read()
        if odd:
            raise Rejected(f"the score {next(iter(odd.values()))[:40]!r} isn't a number")
        if (found > 1e-6).any():
            raise UserError(
                f"The score {found.max():g} is above 0: expected natural logarithms of "
                "probabilities. Leave the scores out (--column scores=)."
            )
        n_written = int((found > -np.inf).sum() if not np.isnan(found).any() else len(found))
        words, found = words[:n_written], np.minimum(found[:n_written], 0.0)
        if any(later > former for former, later in pairwise(found.tolist())):
            raise Rejected("the predictions aren't in the order of their scores")
        return words, None if np.isnan(found).any() or not len(found) else found.tolist()

    def results(self, reading: Reading) -> list[ImportedResults]:
        """Return the results of each model. Raises UserError as `read`."""
        for role, lines in self.blank.items():
            shown = ", ".join(map(str, lines[:5])) + " …" * (len(lines) > 5)
            raise UserError(
                f"{self.path.name}: the {role} is blank in line {shown}. Fill it in, or name "
                f"no column for it (--column {role}=)."
            )
        self._flush()
        table = pa.Table.from_batches(self.batches, _COLLECTED)
        if not len(table):
            if self.others:
                raise UserError(
                    f"{self.path.name} has no rows of the model {self.options.model!r}."
                )
            raise reading.nothing(self.path, "row")
        models = table["model"].unique().to_pylist()
        table = self._with_numbers(table)
        self.drops.add_reading(reading)
        dataset = self.options.dataset or self.stem
        if len(models) > MAX_MODELS:
            raise UserError(f"The table has more than {MAX_MODELS} models: split it.")
        found, dropped = [], self.drops.records()
        for name in models:
            rows = table.filter(pc.equal(table["model"], name)) if len(models) > 1 else table
            rows = rows.drop_columns(["model", "line"])
            found.append(ImportedResults(name, "", "", dataset, "", rows, dropped=dropped))
        return found

    def _with_numbers(self, table: pa.Table) -> pa.Table:
        """Return the rows with rank, log-probability and verdict; unusable ones are dropped."""
        lines = table["line"].to_numpy()
        ranks, odd_ranks = self.ranks.read()
        log_probs, odd_log_probs = self.log_probs.read()
        verdicts, odd_verdicts = self.verdicts.read()
        words = table["predictions"].combine_chunks()
        n_words = words.value_lengths().fill_null(-1).to_numpy()  # -1: no cell
        place = np.concatenate(self.places)
        if len(log_probs[~np.isnan(log_probs)]) and np.nanmax(log_probs) > 1e-6:
            at = int(np.nanargmax(log_probs))
            raise UserError(
                f"Line {lines[at]}: the log-probability {log_probs[at]:g} is above 0: expected a "
                "natural logarithm. Choose another column, or none (--column log_prob=)."
            )
        ranks = self._from_one(ranks, verdicts, place, lines)
        not_found = (ranks == -1) | np.isposinf(ranks)
        is_bad = ~not_found & ~np.isnan(ranks) & ((ranks < 1) | (np.floor(ranks) != ranks))
        is_bad |= ~not_found & (ranks >= UNRANKED)
        for odd, what in (
            (odd_ranks, "the rank {!r} isn't a whole number"),
            (odd_log_probs, "the log-probability {!r} isn't a number"),
            (odd_verdicts, "the verdict {!r} is neither right nor wrong"),
        ):
            for row, text in odd.items():
                self.drops.add_lines(self.path.name, [int(lines[row])], what.format(text[:40]))
        unreadable = np.zeros(len(table), bool)
        unreadable[[*odd_ranks, *odd_log_probs, *odd_verdicts]] = True
        reason = "the rank isn't a whole number from 1"
        self.drops.add_lines(self.path.name, lines[is_bad & ~unreadable].tolist(), reason)
        unreadable |= is_bad
        has_ranks = bool((~np.isnan(ranks)).any())
        not_found |= has_ranks & np.isnan(ranks) & (n_words < 0) & (verdicts != 1)
        for is_wrong, what, role in (
            ((ranks == 1) & (verdicts == 0), "the rank is 1, but the verdict is wrong", "correct"),
            ((ranks > 1) & (verdicts == 1), "the rank is {}, but the verdict is right", "correct"),
            (
                not_found & (verdicts == 1),
                "the object wasn't found, but the verdict is right",
                "correct",
            ),
            (
                ranks > place,
                "the rank is {}, but the object is an earlier prediction",
                "predictions",
            ),
        ):
            rows = np.flatnonzero(is_wrong & ~unreadable)
            if len(rows):
                at, more = rows[0], f" (and {len(rows) - 1:,} more)" if len(rows) > 1 else ""
                said = what.format(f"{ranks[at]:g}")
                raise UserError(
                    f"{self.path.name} line {lines[at]}{more}: {said}. Leave one of the two out "
                    f"(--column {role}=), or, if the ranks count from 0, name them with --column "
                    "rank_from_0=NAME."
                )
        not_found |= (n_words == 0) & (verdicts < 0) & np.isnan(ranks)  # a list without an answer
        correct = np.where(not_found, 0, verdicts)
        no_rank = not_found | np.isnan(ranks) | unreadable
        columns = {
            "rank": pa.array(np.where(no_rank, 0, ranks).astype(np.int32), mask=no_rank),
            "log_prob": pa.array(
                np.minimum(log_probs, 0).astype(np.float32), mask=~np.isfinite(log_probs)
            ),
            "correct": pa.array(correct == 1, mask=correct < 0),
        }
        for name, column in columns.items():
            table = table.append_column(name, column)
        return table.filter(pa.array(~unreadable)) if unreadable.any() else table

    def _from_one(
        self,
        ranks: NDArray[np.float64],
        verdicts: NDArray[np.int8],
        place: NDArray[np.float32],
        lines: NDArray[np.int64],
    ) -> NDArray[np.float64]:
        """Return the ranks counted from 1; those of a column with 0 count from 0, or 0 is none.

        Raises UserError if neither verdicts nor predictions tell which.
        """
        is_zero = ranks == 0
        if "rank_from_0" in self.columns and "rank" not in self.columns:
            return np.where(ranks >= 0, ranks + 1, ranks)
        if not is_zero.any():
            return ranks
        first = is_zero & ((verdicts == 1) | (place == 1))
        others = is_zero & ((verdicts == 0) | (np.isfinite(place) & (place > 1)))
        if first.any() and not others.any():
            return np.where(ranks >= 0, ranks + 1, ranks)
        if others.any() and not first.any():
            return np.where(is_zero, -1, ranks)
        raise UserError(
            f"{self.path.name} line {lines[np.flatnonzero(is_zero)[0]]}: the rank is 0. If the "
            "ranks count from 0, name them with --column rank_from_0=NAME; if 0 means an "
            "object that wasn't found, write -1."
        )


def _text(given: Mapping[str, object], role: str) -> str:
    """Return the text of a cell; empty if it is missing. Raises Rejected for another type."""
    cell = given.get(role)
    return short(cell if isinstance(cell, str) else as_text(cell, role)) if cell is not None else ""
