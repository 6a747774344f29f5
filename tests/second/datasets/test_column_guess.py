"""The guess of a table's columns."""

import pytest

from lama_core.datasets.column_guess import guess_columns

UNKNOWN = dict.fromkeys(("subject", "object", "relation", "template"), "")


@pytest.mark.parametrize(
    ("rows", "guessed"),
    [
        ([["country", "capital"], ["Peru", "Lima"]], {"subject": "country", "object": "capital"}),
        (
            [["what", "who", "of"], ["capital", "Lima", "Peru"], ["capital", "Oslo", "Norway"]],
            {"relation": "what", "subject": "who", "object": "of"},
        ),
        (
            [["answer", "text", "entity", "id"], ["Lima", "[X] has [Y] .", "Peru", "3"]],
            {"object": "answer", "template": "text", "subject": "entity"},
        ),
        ([["n", "m"], ["1", "2"]], {}),
    ],
    ids=["order", "repeated values", "names and contents", "numbers"],
)
def test_columns_are_guessed_from_names_and_first_rows(
    rows: list[list[str]], guessed: dict[str, str]
) -> None:
    header, *cells = rows
    table = [dict(zip(header, row, strict=True)) for row in cells]
    assert guess_columns(header, table, UNKNOWN) == guessed


def test_recognised_columns_are_not_guessed() -> None:
    known = UNKNOWN | {"object": "object"}
    table = [{"object": "Lima", "x": "Peru"}]
    assert guess_columns(["object", "x"], table, known) == {"subject": "x"}
