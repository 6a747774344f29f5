"""Tables to take away: CSV and JSON, made when they are asked for, with how they were made."""

import json
from collections.abc import Callable
from typing import Any

import pandas as pd
import streamlit as st

from lama_core import __version__
from pages.ui.export import to_csv


def draw_take_away(
    name: str,
    make_table: Callable[[], pd.DataFrame],
    made: dict[str, Any],
    command: str,
    *,
    language: str = "shell",
) -> None:
    """CSV, JSON (with `made`) and what gives the same: a command, or lines of Python."""

    def records() -> list[dict[str, Any]]:
        table = make_table()
        table = table.astype({c: object for c in table.columns})
        plain: list[dict[str, Any]] = table.where(table.notna(), None).to_dict("records")
        return plain

    def as_json() -> str:
        content = {"made_with": {**made, "lama_explorer": __version__}, "rows": records()}
        return json.dumps(content, ensure_ascii=False, indent=1, default=_plain)

    with st.container(horizontal=True, vertical_alignment="center"):
        st.download_button(
            "CSV", lambda: to_csv(records()), f"{name}.csv", "text/csv", key=f"{name} csv",
            icon=":material/table:", on_click="ignore",
        )  # fmt: skip
        st.download_button(
            "JSON", as_json, f"{name}.json", "application/json", key=f"{name} json",
            icon=":material/data_object:", on_click="ignore",
        )  # fmt: skip
        where = "Command line" if language == "shell" else "Python"
        with st.popover(where, icon=":material/terminal:", key=f"{name} command"):
            st.caption(
                "The same from a terminal:" if language == "shell" else "The same in Python:"
            )
            st.code(command, language=language, wrap_lines=True)


def _plain(value: Any) -> Any:
    """Arrays' own numbers as plain ones."""
    return value.item() if hasattr(value, "item") else str(value)
