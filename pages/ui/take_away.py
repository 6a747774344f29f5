"""Tables to take away: CSV and JSON, made when they are asked for, with how they were made."""

import json
from collections.abc import Callable
from typing import Any

import pandas as pd
import streamlit as st

from lama_core import __version__
from pages.ui.export import to_csv


def records_of(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a table as plain values; None for what is unknown."""
    cells = table.astype({column: object for column in table.columns})
    rows: list[dict[str, Any]] = cells.where(cells.notna(), None).to_dict("records")
    return [{str(name): _plain(value) for name, value in row.items()} for row in rows]


def json_of(table: pd.DataFrame, made: dict[str, Any]) -> str:
    """A table as JSON, with how it was made."""
    content = {"made_with": {**made, "lama_explorer": __version__}, "rows": records_of(table)}
    return json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False, default=str)


def draw_take_away(
    name: str,
    make_table: Callable[[], pd.DataFrame],
    made: dict[str, Any],
    command: str,
    *,
    language: str = "shell",
) -> None:
    """CSV, JSON (with `made`) and what gives the same: a command, or lines of Python."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.download_button(
            "CSV", lambda: to_csv(records_of(make_table())), f"{name}.csv", "text/csv",
            key=f"{name} csv", icon=":material/table:", on_click="ignore",
        )  # fmt: skip
        st.download_button(
            "JSON", lambda: json_of(make_table(), made), f"{name}.json", "application/json",
            key=f"{name} json", icon=":material/data_object:", on_click="ignore",
        )  # fmt: skip
        where = "Command line" if language == "shell" else "Python"
        with st.popover(where, icon=":material/terminal:", key=f"{name} command"):
            said = "from a terminal" if language == "shell" else "in Python"
            st.caption(f"The same {said}:")
            st.code(command, language=language, wrap_lines=True)


def _plain(value: Any) -> Any:
    """An array's own number as a plain one."""
    return value.item() if hasattr(value, "item") else value
