"""The meaning of a column's cells: numbers, verdicts, lists, words and missing values.

A convention belongs to a whole column: whether `1.204` is a thousand, whether ranks count from 0,
whether words have a tokenizer's marks. So cells are collected, and read when all are there.
"""

import ast
import io
import math
import re
import tokenize
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lama_core.datasets.line_reader import Rejected, parse_json
from lama_core.errors import UserError

# As pandas, R, NumPy and spreadsheets write a missing value, in lower case.
MISSING = {"", "na", "n/a", "nan", "null", "none", "-", "<na>", "#n/a", "nat"}
# Marks that can't be a name; NA, None and Null can be one.
MISSING_NAMES = {"NaN", "nan", "<NA>", "#N/A", "N/A", "n/a", "null", "NULL", "NaT"}
RIGHT = {"true", "t", "yes", "y", "1", "right", "correct", "c", "pass", "passed", "hit", "match"}
WRONG = {"false", "f", "no", "n", "0", "wrong", "incorrect", "i", "fail", "failed", "miss"}
MAX_DISTINCT = 20  # values of a column of verdicts
WORD_STARTS = ("Ġ", "▁")  # of tokens that begin a word
_PLAIN = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?inf(inity)?", re.ASCII | re.I)
_SPACES = r"[\u00a0\u202f\u2009' ’]"
# How numbers are written: with a decimal point or comma, and with signs between thousands.
_STYLES: dict[str, tuple[str, str]] = {
    r"[+-]?\d+\.\d+": (",", "."),
    r"[+-]?\d+,\d+": (".", ","),
    rf"[+-]?[1-9]\d{{0,2}}((\.|{_SPACES})\d{{3}})+(,\d+)?|[+-]?\d+,\d+": (".", ","),
    rf"[+-]?[1-9]\d{{0,2}}((,|{_SPACES})\d{{3}})+(\.\d+)?|[+-]?\d+\.\d+": (",", "."),
}
_THOUSANDS = re.compile(r"[+-]?\d{1,3}\.\d{3}", re.ASCII)


def is_missing(cell: object) -> bool:
    """Whether a cell of a column of numbers or verdicts is missing."""
    if isinstance(cell, str):
        return cell.strip().lower() in MISSING
    return cell is None or cell != cell


@dataclass
class Numbers:
    """The numbers of a column while it is read.

    Attributes:
        name: What they are, for errors.
        whole: Whether they are whole numbers, which can have signs between thousands.
        values: float64 [row]; NaN without a number.
        odd: Row -> a text whose meaning follows from the other cells, such as `1.204` or `1,5`.
    """

    name: str
    whole: bool = False
    values: "array[float]" = field(default_factory=lambda: array("d"))
    odd: dict[int, str] = field(default_factory=dict)

    def add(self, cell: object) -> None:
        """Add a cell, or None."""
        number = math.nan
        if isinstance(cell, bool):
            self.odd[len(self.values)] = str(cell)
        elif cell is not None:
            try:
                number = float(cell)  # type: ignore[arg-type] # another type raises
            except (ValueError, TypeError, OverflowError):
                if not is_missing(cell):
                    self.odd[len(self.values)] = str(cell).strip()
            if isinstance(cell, str) and (
                "_" in cell or (self.whole and "." in cell and _THOUSANDS.fullmatch(cell.strip()))
            ):
                number = math.nan
                self.odd[len(self.values)] = cell.strip()
        self.values.append(number)

    def read(self) -> tuple[NDArray[np.float64], dict[int, str]]:
        """Return the numbers, float64 [row], and row -> text of the cells that aren't numbers.

        Raises:
            UserError: If the cells can be read in two ways.
        """
        found = np.frombuffer(self.values, np.float64)
        texts = {row: text for row, text in self.odd.items() if any(map(str.isdigit, text))}
        readings: dict[tuple[float, ...], tuple[bool, str, dict[int, float]]] = {}
        for number, (pattern, (sign, point)) in enumerate(_STYLES.items()):
            is_grouped = number >= 2  # the first two styles have no signs between thousands
            read = {
                row: float(re.sub(_SPACES, "", text).replace(sign, "").replace(point, "."))
                for row, text in texts.items()
                if re.fullmatch(pattern, text, re.ASCII)
            }
            is_fit = self.whole >= is_grouped and (not self.whole or _are_whole(read.values()))
            if read and is_fit:
                readings.setdefault(tuple(read.values()), (is_grouped, point, read))
        most = max((len(values) for values in readings), default=0)
        left = [one for values, one in readings.items() if len(values) == most]
        plain = found[np.isfinite(found)]
        if len(left) > 1 and len(plain) and (np.abs(plain) < 1000).all():
            # Numbers below a thousand have no sign: those with one are thousands.
            left = [one for one in left if one[0]] or left
        advice = "write it without signs between thousands, and with a decimal point"
        if len(left) > 1:
            row, text = next(iter(texts.items()))
            first, second = (one[2].get(row, math.nan) for one in left[:2])
            raise UserError(f"The {self.name} {text!r} may be {first:g} or {second:g}: {advice}.")
        chosen = left[0][2] if left else {}
        if left and left[0][1] == "," and not _are_whole(plain.tolist()):
            text, other = texts[next(iter(chosen))], plain[plain % 1 != 0][0]
            raise UserError(
                f"The {self.name}s {text!r} and '{other:g}' are written in two ways: {advice}."
            )
        for row, value in chosen.items():
            found[row] = value
        return found, {row: text for row, text in self.odd.items() if row not in chosen}


def _are_whole(numbers: Iterable[float]) -> bool:
    return all(number.is_integer() for number in numbers)


def verdict_of(cell: object) -> bool | None:
    """Return whether a cell says right or wrong; None if neither."""
    text = re.sub(r"[.,]0*$", "", str(cell).strip().lower())
    return True if text in RIGHT else False if text in WRONG else None


@dataclass
class Verdicts:
    """The verdicts of a column while it is read: right or wrong, in one of the usual ways.

    codes: int8 [row], 1 for right, 0 for wrong, -1 if missing, -2 if neither. odd: row -> text.
    """

    codes: "array[int]" = field(default_factory=lambda: array("b"))
    odd: dict[int, str] = field(default_factory=dict)

    def add(self, cell: object) -> None:
        """Add a cell, or None."""
        code = -1
        if not is_missing(cell):
            said = verdict_of(cell)
            code = -2 if said is None else int(said)
            if said is None:
                self.odd[len(self.codes)] = str(cell)
        self.codes.append(code)

    def read(self) -> tuple[NDArray[np.int8], dict[int, str]]:
        """Return 1 for right, 0 for wrong, -1 if missing, int8 [row]; and row -> other cells.

        Raises:
            UserError: If the cells are shares of an answer, or of many kinds.
        """
        values = set(self.odd.values())
        for text in values:
            if _PLAIN.fullmatch(text.strip()) and 0 < float(text) < 1:
                raise UserError(
                    f"The verdict {text} is neither right (1) nor wrong (0): a share of an answer "
                    "has no P@1. Choose a column of verdicts."
                )
        if len(values) > MAX_DISTINCT:
            shown = ", ".join(sorted(values)[:3])[:100]
            raise UserError(f"The column of verdicts has other values ({shown}, …).")
        return np.frombuffer(self.codes, np.int8), self.odd


def read_list(cell: object) -> list[Any] | None:
    """Return a cell that holds a list; None for another cell.

    A text is a list if it is one in JSON or in Python, or as NumPy prints it. `[UNK]` is a word.

    Raises:
        Rejected: If a text begins like a list of quoted texts, and isn't one.
    """
    if isinstance(cell, list | tuple):
        return list(cell)
    text = cell.strip() if isinstance(cell, str) else ""
    if not (text.startswith(("[", "(")) and text.endswith(("]", ")")) and len(text) < 1 << 20):
        return None
    for read in (_json_list, _python_list, _numpy_list):
        found = read(text)
        if found is not None:
            return found
    if re.match(r"\[\s*[\"']", text):
        raise Rejected(f"the list {text[:60]!r} is neither JSON nor Python's")
    return None


def _json_list(text: str) -> list[Any] | None:
    try:
        found = parse_json(text.encode("utf-8", "surrogatepass"))
    except ValueError:
        return None
    return found if isinstance(found, list) else None


def _python_list(text: str) -> list[Any] | None:
    try:
        found = ast.literal_eval(text)
        signs = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (ValueError, SyntaxError, RecursionError, MemoryError, tokenize.TokenError):
        return None
    is_joined = (tokenize.STRING, tokenize.STRING) in pairwise([one.type for one in signs])
    return list(found) if isinstance(found, list | tuple) and not is_joined else None


def _numpy_list(text: str) -> list[Any] | None:
    """Return the items of `['Paris' 'Lyon']` or `[-0.1 -2.3]`."""
    inner = text[1:-1].strip()
    item = r"'[^']*'|\"[^\"]*\"|" + _PLAIN.pattern
    if not re.fullmatch(rf"(({item})\s+)+({item})", inner, re.ASCII | re.I):
        return None
    found = re.finditer(item, inner, re.ASCII | re.I)
    return [one[0][1:-1] if one[0][0] in "'\"" else float(one[0]) for one in found]


def list_separator(cells: Iterable[object]) -> str:
    """Return the sign between several answers in the cells of a column; "" if each is one answer.

    Only a bar or a semicolon: a comma can be part of an answer.
    """
    texts = [cell for cell in cells if isinstance(cell, str) and cell.strip()]
    n_with = {sign: sum(sign in text for text in texts) for sign in ("|", ";")}
    return next((sign for sign, n in n_with.items() if n > len(texts) / 2), "")


def word_reader(words: Iterable[str]) -> Callable[[str], str]:
    """Return a function that gives the word of a token, for a column that begins with `words`.

    A column whose words mostly begin with a mark has the tokens of a byte-pair or SentencePiece
    vocabulary. A mark alone, or a line break, stays as it is written.
    """
    some = list(words)
    n_marked = sum(word.startswith(WORD_STARTS) for word in some)
    if not some or n_marked * 2 < len(some):
        return str.strip
    return lambda word: word[1:] if word.startswith(WORD_STARTS) and len(word) > 1 else word
