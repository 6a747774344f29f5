"""Results in a table mean the same in every way of writing them, or are refused with the reason."""

import csv
import io
import json
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lama_core.errors import UserError
from lama_core.progress import ignore
from lama_core.runs.importers.results import ReadOptions
from lama_tool_results import table

EXAMPLES = 25  # of each convention

Rank = int | None  # None: not found
Row = dict[str, Any]


def read(rows: Sequence[Row], path: Path, how: str, **columns: str) -> pd.DataFrame:
    """Write rows as a file; return the rows that the importer reads. Raises UserError if some are
    dropped because of the answer, as the import does."""
    if how == "json":
        path.write_text(json.dumps(rows), encoding="utf-8")
    elif how == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    elif how == "pandas":  # numbers as pandas infers them
        pd.DataFrame(rows).to_csv(path, index=False)
    else:
        out = io.StringIO(newline="")
        writer = csv.DictWriter(out, list(rows[0]), delimiter=how)
        writer.writeheader()
        writer.writerows(rows)
        path.write_text(out.getvalue(), encoding="utf-8", newline="")
    (found,) = table.read(path, ReadOptions(model="m", columns=columns), ignore)
    if some := [one for one in found.dropped if one.of_answer]:
        raise UserError(f"dropped: {some[0].where}: {some[0].reason}")
    return found.rows.to_pandas()


def grouped(sign: str, end: str = "") -> Callable[[Rank], object]:
    return lambda rank: "" if rank is None else f"{rank:,}".replace(",", sign) + end


RANKS: dict[str, tuple[Callable[[Rank], object], dict[str, str]]] = {
    "whole, gap": (lambda rank: rank, {}),
    "-1": (lambda rank: -1 if rank is None else rank, {}),
    "inf": (lambda rank: "inf" if rank is None else str(rank), {}),
    "-1.0": (lambda rank: "-1.0" if rank is None else f"{rank}.0", {}),
    "NaN": (lambda rank: float("nan") if rank is None else float(rank), {}),
    "text 1,0": (lambda rank: "" if rank is None else f"{rank},0", {}),
    "1.234": (grouped("."), {}),
    "1,234": (grouped(","), {}),
    "1 234": (grouped(" "), {}),
    "1'234": (grouped("'"), {}),
    "1\u202f234": (grouped("\u202f"), {}),
    "1.234,0": (grouped(".", ",0"), {}),
    "1,234.0": (grouped(",", ".0"), {}),
    "from 0": (lambda rank: -1 if rank is None else rank - 1, {"rank": "", "rank_from_0": "n"}),
    "from 0, gap": (lambda rank: None if rank is None else rank - 1, {"rank_from_0": "n"}),
}
FORMS = ("json", "jsonl", "pandas", ",", ";", "\t")
RANK = st.none() | st.integers(1, 9) | st.integers(1, 200_000) | st.sampled_from([999, 1000, 1204])


def joined(values: Sequence[Any]) -> list[tuple[Row, Any]]:
    """Facts with one value each."""
    facts = ({"subject": f"s{at}", "object": f"o{at}", "relation": "P36"} for at in count())
    return list(zip(facts, values, strict=False))


@pytest.mark.parametrize("name", sorted(RANKS))
def test_ranks_are_read_in_each_convention(name: str, tmp_path: Path) -> None:
    write, columns = RANKS[name]

    @settings(max_examples=EXAMPLES)
    @given(ranks=st.lists(RANK, min_size=1, max_size=6), how=st.sampled_from(FORMS))
    def check(ranks: list[Rank], how: str) -> None:
        assume(any(ranks))
        key = "n" if columns else "rank"
        rows = [{**fact, key: write(rank)} for fact, rank in joined(ranks)]
        try:
            found = read(rows, tmp_path / "t", how, **columns)
        except UserError as error:
            assert "may be" in str(error) and any(rank and rank > 999 for rank in ranks)
            return
        assert [None if pd.isna(rank) else int(rank) for rank in found["rank"]] == ranks
        not_found = [bool(right == False) for right in found["correct"]]  # noqa: E712
        assert not_found == [rank is None for rank in ranks]

    check()


VERDICTS: dict[str, tuple[object, object]] = {
    "true, false": ("true", "false"),
    "True, False": (True, False),
    "yes, no": ("yes", "no"),
    "Y, N": ("Y", "N"),
    "C, I": ("C", "I"),
    "right, wrong": ("right", "wrong"),
    "1, 0": (1, 0),
    "1.0, 0.0": (1.0, 0.0),
    "text 1,0, 0,0": ("1,0", "0,0"),
    "correct, incorrect": ("correct", "incorrect"),
}


@pytest.mark.parametrize("name", sorted(VERDICTS))
def test_verdicts_are_read_in_each_convention(name: str, tmp_path: Path) -> None:
    right, wrong = VERDICTS[name]

    @settings(max_examples=EXAMPLES)
    @given(
        verdicts=st.lists(st.sampled_from([True, False, None]), min_size=1, max_size=6),
        how=st.sampled_from(FORMS),
    )
    def check(verdicts: list[bool | None], how: str) -> None:
        assume(any(one is not None for one in verdicts))
        cells = [None if one is None else right if one else wrong for one in verdicts]
        rows = [{**fact, "correct": cell} for fact, cell in joined(cells)]
        found = read(rows, tmp_path / "t", how)
        assert [None if pd.isna(one) else bool(one) for one in found["correct"]] == verdicts

    check()


def numpy_print(words: Sequence[str]) -> str:
    return "[" + " ".join(map(repr, words)) + "]"


LISTS: dict[str, Callable[[Sequence[str]], object]] = {
    "JSON": json.dumps,
    "Python": lambda words: repr(list(words)),
    "tuple": lambda words: repr(tuple(words)),
    "NumPy": numpy_print,
    "|": " | ".join,
    ";": ";".join,
    "Ġ": lambda words: json.dumps([f"Ġ{word}" for word in words]),
    "▁": lambda words: repr([f"▁{word}" for word in words]),
    "list": list,
}
WORD = st.sampled_from(
    ["Paris", "[UNK]", "Köln", "O'Brien", "5", "1.5", "NA", "##ing", "-", "(the)"]
)


@pytest.mark.parametrize("name", sorted(LISTS))
def test_lists_of_predictions_are_read_in_each_convention(name: str, tmp_path: Path) -> None:
    write = LISTS[name]

    @settings(max_examples=EXAMPLES)
    @given(
        lists=st.lists(st.lists(WORD, min_size=2, max_size=4, unique=True), min_size=1, max_size=5),
        how=st.sampled_from(FORMS),
    )
    def check(lists: list[list[str]], how: str) -> None:
        assume(name != "list" or how in ("json", "jsonl"))
        rows = [{**fact, "predictions": write(one)} for fact, one in joined(lists)]
        for row, words in zip(rows, lists, strict=True):
            row["object"] = words[-1]
        found = read(rows, tmp_path / "t", how)
        assert [list(words) for words in found["predictions"]] == lists
        assert found["object"].tolist() == [words[-1] for words in lists]

    check()


NUMBERS: dict[str, Callable[[float], object]] = {
    "number": float,
    "point": str,
    "comma": lambda number: str(number).replace(".", ","),
    "exponent": lambda number: f"{number:.6e}",
}


@pytest.mark.parametrize("name", sorted(NUMBERS))
def test_log_probabilities_are_read_in_each_convention(name: str, tmp_path: Path) -> None:
    write = NUMBERS[name]

    @settings(max_examples=EXAMPLES)
    @given(
        values=st.lists(st.integers(-99_999, 0).map(lambda n: n / 1000), min_size=1, max_size=5),
        how=st.sampled_from(FORMS),
    )
    def check(values: list[float], how: str) -> None:
        rows = [{**fact, "rank": 1, "log_prob": write(value)} for fact, value in joined(values)]
        found = read(rows, tmp_path / "t", how)
        assert found["log_prob"].tolist() == pytest.approx(values, abs=1e-4)

    check()
