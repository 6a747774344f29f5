"""Taking away what is on the screen: CSV, JSON, and the command that gives the same."""

import csv
import io
import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import streamlit as st

from lama_core import __version__
from lama_core.asking.settings import ClozeSettings
from lama_core.models.loader import CACHE
from lama_core.probes.cloze.ask import ClozeAnswer
from pages.ui.state import ClozeChoice


def to_csv(rows: Sequence[dict[str, Any]]) -> str:
    """Rows as CSV with a header. A cell that a spreadsheet would take for a formula is quoted."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]) if rows else [])
    writer.writeheader()
    writer.writerows({key: _as_text(value) for key, value in row.items()} for row in rows)
    return out.getvalue()


def _as_text(value: Any) -> Any:
    risky = isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r")
    return f"'{value}" if risky else value


def draw_export(
    name: str, rows: Sequence[dict[str, Any]], record: dict[str, Any], command: str
) -> None:
    """Three ways to take a result away. record: the JSON, which says how it was made."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.download_button(
            "CSV", to_csv(rows), f"{name}.csv", "text/csv", icon=":material/table:",
            on_click="ignore",
        )  # fmt: skip
        st.download_button(
            "JSON",
            json.dumps(record, ensure_ascii=False, indent=2),
            f"{name}.json",
            "application/json",
            icon=":material/data_object:",
            on_click="ignore",
        )
        with st.popover("Command line", icon=":material/terminal:"):
            st.caption("The same from a terminal:")
            st.code(command, language="shell", wrap_lines=True)


def draw_cloze_export(
    answer: ClozeAnswer, settings: ClozeSettings, gold: str, choice: ClozeChoice
) -> None:
    """The export of the Cloze page."""
    rows = [
        {
            "model": model.name,
            "context": model.context,
            "blank": number,
            "rank": item.rank,
            "word": item.token,
            "prob": item.prob,
            "log_prob": item.log_prob,
            "text": answer.text,
            "candidates": answer.candidates.name,
        }
        for model in answer.models
        for number, blank in enumerate(model.blanks, start=1)
        for item in blank.predictions
    ]
    made = {
        **asdict(settings),
        "top_k": choice.top_k,
        "renormalise": choice.renormalise,
        "gold": gold or None,
        "lama_explorer": __version__,
        "identities": {
            model.name: CACHE.identity(model.name, settings.precision) for model in answer.models
        },
    }
    command = ["python", "-m", "lama_core", "cloze", answer.text]
    for model in answer.models:
        command += ["--model", model.name]
    command += ["--top-k", str(choice.top_k)] if choice.top_k != 5 else []
    command += ["--candidates", settings.candidates] if settings.candidates != "common" else []
    command += ["--gold", gold] if gold else []
    command += ["--context", settings.context] if settings.context else []
    command += ["--rescored", str(settings.n_rescored)] if settings.n_rescored != 200 else []
    command += ["--renormalise"] if choice.renormalise else []
    command += ["--precision", settings.precision] if settings.precision != "fp32" else []
    draw_export("cloze", rows, {**answer.to_json(), "made_with": made}, shlex.join(command))
