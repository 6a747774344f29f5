"""Results in a plain table: CSV, TSV, JSON, Parquet or Excel, with one row a query.

Columns: `subject` and `object`, and at least one of `rank`, `predictions` (one text, or a list,
best first) and `correct`. More: `relation` (default: the file's name), `log_prob` (natural
logarithm), `scores` (of the predictions), `model`, `query`. `NAMES` lists other names that are
recognised. A prediction may bring its score: `["Paris", -0.1]` or
`{"token": "Paris", "log_prob": -0.1}`.

A row without rank and verdict is right if its first prediction is the same word as the object.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson

from lama_core.datasets import user_table
from lama_core.datasets.column_guess import guess_columns
from lama_core.datasets.line_reader import (
    JsonObject,
    Reading,
    Rejected,
    as_text,
    optional_text,
    required_text,
)
from lama_core.datasets.nested_folders import files_under
from lama_core.datasets.table_file import lowered, read_table
from lama_core.errors import UserError, did_you_mean
from lama_core.progress import OnProgress
from lama_core.runs.facts_table import UNRANKED
from lama_core.runs.importers.answer_rows import AnswerRows, short
from lama_core.runs.importers.results import (
    MAX_PREDICTIONS,
    MAX_ROWS,
    DropList,
    ImportedResults,
    ReadOptions,
)

# Role -> the names of columns that are recognised for it, in lower case.
NAMES: dict[str, tuple[str, ...]] = {
    **{role: user_table.ROLES[role] for role in ("subject", "object", "relation")},
    "rank": ("rank", "rank_raw", "gold_rank", "rank_of_object"),
    "log_prob": ("log_prob", "log-prob", "logprob", "log_probability", "gold_log_prob"),
    "predictions": ("predictions", "prediction", "predicted", "top_words", "topk", "top_k"),
    "scores": ("scores", "prediction_scores", "top_log_probs", "log_probs"),
    "correct": ("correct", "is_correct", "right", "hit"),
    "model": ("model", "model_name"),
    "query": ("query", "prompt", "masked_sentence", "question"),
}
RESULTS = ("rank", "predictions", "correct")  # a row of results has at least one of these
TRUE = {"true", "yes", "1", "right", "correct"}
FALSE = {"false", "no", "0", "wrong", "incorrect"}
MAX_MODELS = 200
HEAD = 20  # rows by which the columns of a table without a header are found
_ITEM_TEXT = ("token", "word", "text", "prediction", "token_word_form")
_ITEM_SCORE = ("log_prob", "logprob", "score")


def columns_of(header: Sequence[str], given: Mapping[str, str]) -> dict[str, str]:
    """Return role -> name of its column in lower case, for the roles that have one.

    Raises:
        UserError: If a given role or column doesn't exist.
    """
    names = {name.strip().lower() for name in header}
    for role, name in given.items():
        if role not in NAMES:
            raise UserError(f"No role is called {role!r}{did_you_mean(role, NAMES)}.")
        if name.strip().lower() not in names:
            raise UserError(
                f"The table has no column {name!r} for the {role}{did_you_mean(name, header)}; its "
                f"columns are: {_shown(header)}."
            )
    found = {role: name.strip().lower() for role, name in given.items()}
    for role, known in NAMES.items():
        name = next((one for one in known if one in names), "")
        if name and role not in found and name not in found.values():
            found[role] = name
    return found


def guess(header: Sequence[str], rows: Sequence[JsonObject]) -> dict[str, str]:
    """Return role -> the column that probably has it, for the roles whose name isn't recognised."""
    named = columns_of(header, {})
    written = {name.strip().lower(): name for name in header}
    taken = {role: written[name] for role, name in named.items()}
    for role in ("rank", "log_prob", "correct", "predictions"):
        part = {"log_prob": "prob", "predictions": "pred"}.get(role, role)
        left = [name for name in header if name not in taken.values()]
        column = next((name for name in left if part in name.lower()), "")
        if role not in taken and column:
            taken[role] = column
    known = {role: taken.get(role, "") for role in ("subject", "object", "relation")}
    used = {"template": "", **known, **{role: taken[role] for role in taken if role not in known}}
    facts = guess_columns(header, rows, used)
    guessed = taken | {role: name for role, name in facts.items() if role in known}
    return {role: name for role, name in guessed.items() if role not in named}


def _shown(header: Sequence[str]) -> str:
    text = ", ".join(name for name in header if name.isprintable())
    return text[:200] or "none"


def recognizes(path: Path) -> bool:
    """Whether a file, or the only table of a folder, has the columns of results."""
    header, _ = user_table.first_rows(table_in(path), HEAD)
    found = columns_of(header, {})
    has_facts = "subject" in found and "object" in found
    return has_facts and any(role in found for role in RESULTS)


def table_in(path: Path) -> Path:
    """Return the file itself, or the only table in a folder. Raises UserError for none or more."""
    if path.is_file():
        return path
    tables = [file for file in files_under(path) if user_table.is_table(file)]
    if len(tables) != 1:
        found = f"{len(tables)} tables: give one of them" if tables else "no table"
        raise UserError(f"{path.name} has {found}.")
    return tables[0]


def read(path: Path, options: ReadOptions, on_progress: OnProgress) -> list[ImportedResults]:
    """Return the results of each model in a table.

    Raises:
        UserError: If it isn't a table, a needed column is missing, or no row is usable.
    """
    path = table_in(path)
    header, _ = user_table.first_rows(path, HEAD)
    columns = columns_of(header, options.columns)
    if missing := [role for role in ("subject", "object") if role not in columns]:
        raise UserError(
            f"{path.name} needs a column {missing[0]}; its columns are: {_shown(header)}. Name it "
            f"with --column {missing[0]}=NAME."
        )
    if not any(role in columns for role in RESULTS):
        raise UserError(
            f"{path.name} has no results: it needs a column {', '.join(RESULTS[:-1])} or "
            f"{RESULTS[-1]}; its columns are: {_shown(header)}. Name one with --column rank=NAME."
        )
    reading = Reading(path)
    rows = _Rows(path, columns, options, on_progress)
    for n_rows, (number, row) in enumerate(read_table(reading).rows, start=1):
        if n_rows > MAX_ROWS:
            raise UserError(f"{path.name} has more than {MAX_ROWS:,} rows: split it.")
        with reading.dropping(path, number):
            rows.add(lowered(row))
    return rows.results(reading)


@dataclass
class _Rows:
    """Reads the rows of a table.

    columns: role -> column. others: whether there are other models than the only one to read.
    """

    path: Path
    columns: Mapping[str, str]
    options: ReadOptions
    on_progress: OnProgress
    models: dict[str, AnswerRows] = field(default_factory=dict)
    others: bool = False

    def add(self, row: JsonObject) -> None:
        """Add a row with lower-case names. Raises Rejected for an unusable one."""
        given = {role: row[name] for role, name in self.columns.items() if name in row}
        model = self.options.model if "model" not in given else _text(given, "model")
        if self.options.model and model != self.options.model:
            self.others = True
            return
        words, scores = _predictions(given)
        made: dict[str, Any] = {
            "relation": _text(given, "relation") or self.stem,
            "subject": required_text({"subject": _short(given.get("subject"))}, "subject"),
            "object": required_text({"object": _short(given.get("object"))}, "object"),
            "query": _text(given, "query") or None,
            "rank": _rank(given.get("rank")),
            "log_prob": _log_prob(given.get("log_prob"), "log_prob"),
            "correct": _verdict(given.get("correct")),
            "predictions": words,
            "scores": scores,
        }
        if made["rank"] is None and made["correct"] is None and not words:
            raise Rejected("no rank, no prediction and no verdict")
        if model not in self.models and len(self.models) >= MAX_MODELS:
            raise UserError(f"The table has more than {MAX_MODELS} models: split it.")
        stage = f"Reading {self.path.name}"
        self.models.setdefault(model, AnswerRows(self.on_progress, stage)).add(**made)

    @property
    def stem(self) -> str:
        """The table's name, which names its data and the relation of rows without one."""
        return user_table.table_stem(self.path)

    def results(self, reading: Reading) -> list[ImportedResults]:
        """Return the results of each model. Raises UserError without any."""
        if not self.models:
            if self.others:
                raise UserError(
                    f"{self.path.name} has no rows of the model {self.options.model!r}."
                )
            raise reading.nothing(self.path, "row")
        drops = DropList()
        drops.add_reading(reading)
        dataset = self.options.dataset or self.stem
        return [
            ImportedResults(name, "", "", dataset, "", one.table(), dropped=drops.records())
            for name, one in self.models.items()
        ]


def _text(row: Mapping[str, object], role: str) -> str:
    return optional_text({role: _short(row.get(role))}, role)


def _short(value: object) -> object:
    return short(value) if isinstance(value, str) else value


def _number(value: object, role: str) -> float | None:
    """Return a finite number; None for an empty cell. Raises Rejected for anything else."""
    if value is None or value == "":
        return None
    try:
        number = float(value) if isinstance(value, str | int | float) else math.nan
    except (ValueError, OverflowError):
        raise Rejected(f"the {role} isn't a number") from None
    if isinstance(value, bool) or not math.isfinite(number):
        raise Rejected(f"the {role} isn't a finite number")
    return number


def _rank(value: object) -> int | None:
    number = _number(value, "rank")
    if number is None:
        return None
    if number != int(number) or not 1 <= number < UNRANKED:
        raise Rejected("the rank isn't a whole number from 1")
    return int(number)


def _log_prob(value: object, role: str) -> float | None:
    number = _number(value, role)
    if number is not None and not -3e38 < number <= 1e-6:
        raise Rejected(f"the {role} is above 0 or too small: expected a natural logarithm")
    return None if number is None else min(number, 0.0)


def _verdict(value: object) -> bool | None:
    """Return whether the tool counts the row as right; None for an empty cell."""
    if value is None or value == "" or isinstance(value, bool):
        return value if isinstance(value, bool) else None
    word = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
    word = word.strip().lower()
    if word not in TRUE | FALSE:
        raise Rejected("the verdict isn't true or false")
    return word in TRUE


def _predictions(row: Mapping[str, object]) -> tuple[list[str] | None, list[float] | None]:
    """Return the best predictions and their scores, None without any."""
    items = _listed(row.get("predictions"), "predictions")[:MAX_PREDICTIONS]
    given = _listed(row.get("scores"), "scores")[:MAX_PREDICTIONS]
    words, scores = [], []
    for number, item in enumerate(items):
        score = given[number] if number < len(given) else None
        if isinstance(item, dict):
            score = next((item[name] for name in _ITEM_SCORE if name in item), score)
            item = next((item[name] for name in _ITEM_TEXT if name in item), None)
        elif isinstance(item, list) and len(item) == 2:
            item, score = item
        words.append(as_text(_short(item), "predictions"))
        scores.append(_log_prob(score, "score of a prediction"))
    words = [word for word in words if word]
    if len(words) < len(items):
        raise Rejected("a prediction is empty")
    if any(one is None for one in scores):
        return words or None, None
    numbers = [one for one in scores if one is not None]
    if any(later > former for former, later in pairwise(numbers)):
        raise Rejected("the predictions aren't in the order of their scores")
    return words or None, numbers or None


def _listed(value: object, role: str) -> list[Any]:
    """Return a cell as a list: a JSON list, the items of a list, or one item."""
    if isinstance(value, str) and value.strip().startswith("["):
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError:
            raise Rejected(f"the {role} aren't a JSON list") from None
    if value is None or value == "":
        return []
    return value if isinstance(value, list) else [value]
