"""The Export button: CSV, JSON, and the command that gives the same result.

The files are made on download. The command is a request shown as its command line
(`lama_core.requests`), or lines of Python for results without a command.
"""

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import pandas as pd
import streamlit as st

from lama_core import __version__
from lama_core.api.results import csv_of, json_of_table
from lama_core.probes.kinds import request_of as stored_request
from lama_core.requests import Request, command_line, field_values, python_call
from lama_core.runs.info import RunInfo
from lama_core.service import queries
from pages.ui.shared import cache, visitors

Rows = list[dict[str, Any]]


class Answered(Protocol):
    """A model's answer with the model's name and precision."""

    @property
    def name(self) -> str: ...
    @property
    def precision(self) -> str: ...


def to_csv(rows: pd.DataFrame | Sequence[dict[str, Any]]) -> str | bytes:
    """Rows as CSV with a header; cells that spreadsheets would run get an apostrophe in front."""
    if isinstance(rows, pd.DataFrame):
        return csv_of(rows)
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]) if rows else [])
    writer.writeheader()
    writer.writerows({key: _as_text(value) for key, value in row.items()} for row in rows)
    return out.getvalue()


def _as_text(value: Any) -> Any:
    risky = isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r")
    return f"'{value}" if risky else value


def made_with(request: Mapping[str, Any], answers: Iterable[Answered]) -> dict[str, Any]:
    """The provenance of answers: the request's fields and each answering model's identity."""
    models = [(one.name, one.precision) for one in answers]
    found = cache.about_models(queries.identities, models)
    identities = {name: identity for (name, _), identity in zip(models, found, strict=True)}
    return {**request, "identities": identities}


def json_of(content: pd.DataFrame | dict[str, Any], made: dict[str, Any]) -> str | bytes:
    """Content, or a table's rows, as JSON, with its provenance under `made_with`."""
    about = {"made_with": {**made, "lama_explorer": __version__}}
    if isinstance(content, pd.DataFrame):
        return json_of_table(content, about)
    document = {**about, **content}
    return json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False, default=str)


def draw_export(
    name: str,
    make_table: Callable[[], pd.DataFrame | Rows],
    made: dict[str, Any],
    how: Request | tuple[Request, ...] | str | None,
    *,
    record: Callable[[], dict[str, Any]] | None = None,
    more: Callable[[], object] | None = None,
    inside: Callable[[], object] | None = None,
) -> None:
    """Draw the Export button.

    Args:
        name: The files' name, and the prefix of the widgets' keys.
        make_table: Makes the rows.
        made: The provenance, which the JSON holds.
        how: The requests, or lines of Python, that give the same result; None if unknown.
        record: Makes the content of the JSON; by default the rows.
        more: Draws further buttons next to Export.
        inside: Draws further downloads, above the command.
    """

    def content() -> pd.DataFrame | dict[str, Any]:
        if record is not None:
            return record()
        table = make_table()
        return table if isinstance(table, pd.DataFrame) else {"rows": table}

    bar = st.container(horizontal=True, vertical_alignment="center")
    with bar, st.popover("Export", icon=":material/download:", key=f"{name} export"):
        st.download_button(
            "CSV",
            lambda: to_csv(make_table()),
            f"{name}.csv",
            "text/csv",
            key=f"{name} csv",
            icon=":material/table:",
            on_click="ignore",
        )
        st.download_button(
            "JSON",
            lambda: json_of(content(), made),
            f"{name}.json",
            "application/json",
            key=f"{name} json",
            icon=":material/data_object:",
            on_click="ignore",
        )
        if inside is not None:
            inside()
        draw_command(how, key=f"{name} command")
    if more is not None:
        with bar:
            more()


def draw_answer_export(
    name: str,
    answer: Any,
    request: Request,
    more: Callable[[], object] | None = None,
    *,
    rows: Callable[[], Rows] | None = None,
) -> None:
    """Draw the Export button for models' answers to a request; `rows` replaces `answer.rows`."""
    made = made_with(field_values(request), answer.models)
    draw_export(name, rows or answer.rows, made, request, record=answer.to_json, more=more)


def request_of(info: RunInfo) -> Request | None:
    """Return the request that made a run; None if it isn't stored or isn't for this visitor.

    It can contain paths on this machine.
    """
    if info.bundled or visitors.may("paths"):
        return stored_request(info)
    return None


def draw_command(how: Request | tuple[Request, ...] | str | None, *, key: str) -> None:
    """Draw the command line and the Python code that give the same result."""
    with st.container(key=key):
        if how is None:
            st.caption("The command isn't stored with this run.")
            return
        if isinstance(how, str):
            st.caption("The same in Python:")
            st.code(how, language="python", wrap_lines=True)
            return
        requests = how if isinstance(how, tuple) else (how,)
        st.caption("The same from a terminal:")
        st.code("\n".join(map(command_line, requests)), language="shell", wrap_lines=True)
        st.caption("The same in Python:")
        lines = "\n".join(("import lama_core as lama", "", *map(python_call, requests)))
        st.code(lines, language="python", wrap_lines=True)
