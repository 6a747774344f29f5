"""Tables as cards, which phones show."""

import pandas as pd
import streamlit as st

from pages.ui.shared.tables import Card, CardLine, Picked, make_cards, picked_of

number, text = st.column_config.NumberColumn, st.column_config.TextColumn


def test_a_card_has_the_cells_as_the_grid_shows_them() -> None:
    table = pd.DataFrame({"n": [1200], "name": ["Rome"], "right": [True], "tags": [["a", "b"]]})
    table["P@1"], table["empty"] = 2 / 3, None
    config = {"n": number("facts", format="localized"), "P@1": number(format="%.1f %%")}
    (card,) = make_cards(table, config)
    assert card.title == "Rome"  # the first text
    assert [(line.label, line.value) for line in card.lines] == [
        ("facts", "1,200"), ("right", "yes"), ("tags", "a, b"), ("P@1", "0.7 %"),
    ]  # fmt: skip


def test_a_models_further_columns_continue_its_line() -> None:
    table = pd.DataFrame({"place": ["Rome"], "m answer": ["italy"], "m prob": [0.5]})
    table["m x answer"] = "spain"
    config = {
        "place": text(pinned=True),
        "m answer": text("M"),
        "m prob": number("prob."),
        "m x answer": text("M X"),
    }
    (card,) = make_cards(table, config)
    assert card.lines == [
        CardLine("M", "italy", "m answer", "prob. 0.5", wide=True),
        CardLine("M X", "spain", "m x answer"),
    ]


def test_a_model_whose_name_begins_with_another_has_a_line_of_its_own() -> None:
    shares = {
        "all": ["facts"],
        "M": [0.1],
        "M 95 %": ["0–1"],
        "M twin": [0.2],
        "M twin 95 %": ["1–2"],
    }
    config = {name: text(name.removeprefix("M ").removeprefix("twin ")) for name in shares}
    (card,) = make_cards(pd.DataFrame(shares), config)
    assert [(line.column, line.value, line.more) for line in card.lines] == [
        ("M", "0.1", "95 % 0–1"), ("M twin", "0.2", "95 % 1–2"),
    ]  # fmt: skip


def test_columns_that_the_grid_hides_are_not_on_the_cards() -> None:
    table = pd.DataFrame({"a": ["x"], "b": [1], "c": [2]})
    (card,) = make_cards(table, {"b": None}, ["a", "b"])
    assert card == Card("x", [])


def test_a_pick_in_the_grid_counts_before_one_in_the_cards() -> None:
    nothing = {"selection": {"rows": [], "cells": []}}
    assert picked_of(nothing, None, 9) == Picked()
    assert picked_of(nothing, {"picked": [[2, "", 1]]}, 9).rows == (2,)
    assert picked_of(nothing, {"picked": [[2, "P@1", 1]]}, 9).cell == (2, "P@1")
    row = {"selection": {"rows": [4], "cells": []}}
    assert picked_of(row, {"picked": [[2, "", 1]]}, 9).rows == (4,)
    cell = {"selection": {"rows": [], "cells": [(0, "n")]}}
    assert picked_of(cell, {"picked": [[2, "P@1", 1]]}, 9).cell == (0, "n")
    assert picked_of(cell, None, 9) == Picked((0,), (0, "n"))
    ticks = {"selection": {"rows": [2, 3], "cells": [(0, "n")]}}
    assert picked_of(ticks, None, 9) == Picked((2, 3), (0, "n"), ticked=True)
    lacking = {"selection": {"rows": [7], "cells": [(7, "n")]}}
    assert picked_of(lacking, None, 7) == Picked()
