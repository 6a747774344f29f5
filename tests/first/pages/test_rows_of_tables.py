"""Rows of tables: what a ticked one opens, and the numbers of facts beside values."""

from typing import Any

import pandas as pd
import pytest
from opening import open_page

from pages.ui.shared.tables import Picked
from pages.ui.wrong_answers import confusion

pytestmark = pytest.mark.usefixtures("home")


def test_a_ticked_pair_of_answers_opens_its_own_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[pd.DataFrame] = []
    opened: list[tuple[str, ...]] = []

    def draw(table: pd.DataFrame, **_: Any) -> Picked:
        drawn.append(table)
        return Picked((0,))

    monkeypatch.setattr(confusion, "draw_table", draw)
    monkeypatch.setattr(confusion, "_open", lambda *of: opened.append(of[1:]))
    open_page("facts", models=["minilm-mlm"], view="Confusion")
    assert opened == [tuple(drawn[0].loc[drawn[0].index[0], ["gold", "answer"]])]


def test_the_measured_relations_of_lama_have_their_numbers_of_facts() -> None:
    app = open_page("results", tab="More", chart="LAMA T-REx")
    (table,) = (one.value for one in app.dataframe if "minilm-mlm n" in one.value)
    assert (len(table), table["minilm-mlm n"].sum()) == (41, 29_394)
