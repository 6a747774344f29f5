"""The Export button: CSV, JSON, and the command that gives the same result.

The files are made on download. The command is a request shown as its command line
(`lama_core.requests`), or lines of Python for results without a command.
"""

import codecs
import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import pandas as pd
import streamlit as st

from lama_core import __version__
from lama_core.reports.table_files import csv_of, json_of_table
from lama_core.requests import Request, command_line, field_values, python_call
from lama_core.runs.info import RunInfo
from lama_core.service import queries
from pages.ui.shared import cache, visitors

Rows = list[dict[str, Any]]
MAX_NAMED = 3  # models or runs in a file's name
MAX_STEM = 120  # characters of a file's name
TYPES = {  # of files
    "csv": "text/csv",
    "html": "text/html",
    "json": "application/json",
    "nt": "application/n-triples",
    "pdf": "application/pdf",
    "png": "image/png",
    "svg": "image/svg+xml",
    "toml": "application/toml",
    "ttl": "text/turtle",
    "zip": "application/zip",
}


class Answered(Protocol):
    """A model's answer with the model's name and precision."""

    @property
    def name(self) -> str: ...
    @property
    def precision(self) -> str: ...


def frame_of(rows: pd.DataFrame | Rows) -> pd.DataFrame:
    """Rows as a table whose cells are unchanged."""
    return rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(rows, dtype=object)


def made_with(request: Mapping[str, Any], answers: Iterable[Answered]) -> dict[str, Any]:
    """The provenance of answers: the request's fields and each answering model's identity."""
    models = [(one.name, one.precision) for one in answers]
    found = cache.about_models(queries.identities, models)
    identities = {name: identity for (name, _), identity in zip(models, found, strict=True)}
    return {**request, "identities": identities}


def file_stem(name: str, made: Mapping[str, Any]) -> str:
    """Return a file's name without suffix: its content, with the data and models that it is of."""
    parts = [name]
    for key in ("dataset", "relation", "model", "models", "run", "runs"):
        value = made.get(key)
        if isinstance(value, Mapping):  # name -> id; an id names the data, too
            value = list(value.values() if len(value) == 1 else value)
        several = value if isinstance(value, list | tuple) else [value] if value else []
        parts += map(str, several) if len(several) <= MAX_NAMED else [f"{len(several)} {key}"]
    return re.sub(r"[^\w.]+", "-", " ".join(parts)).strip("-.")[:MAX_STEM]


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
        name: What the table has, in the files' name, and the prefix of the widgets' keys.
        make_table: Makes the rows.
        made: The provenance, which the JSON holds.
        how: The requests, or lines of Python, that give the same result; None if unknown.
        record: Makes the content of the JSON; by default the rows.
        more: Draws further buttons next to Export.
        inside: Draws further downloads, above the command.
    """
    stem = file_stem(name, made)
    bar = st.container(horizontal=True, vertical_alignment="center")
    with bar, st.popover("Export", icon=":material/download:", key=f"{name} export"):
        draw_download(
            "CSV",
            lambda: csv_of(frame_of(make_table())),
            f"{stem}.csv",
            key=f"{name} csv",
            icon=":material/table:",
        )
        draw_download(
            "JSON",
            lambda: json_of(record() if record else frame_of(make_table()), made),
            f"{stem}.json",
            key=f"{name} json",
            icon=":material/data_object:",
        )
        if inside is not None:
            inside()
        draw_command(how, key=f"{name} command")
    if more is not None:
        with bar:
            more()


def draw_download(
    label: str, data: str | Callable[[], str | bytes], name: str, **options: Any
) -> None:
    """Draw a button that downloads a file; options: of `st.download_button`.

    A CSV begins with a byte order mark, without which Excel on Windows takes it for Windows-1252.
    """
    kind = TYPES[name.rpartition(".")[2]]

    def marked() -> bytes:
        content = data() if callable(data) else data
        content = content if isinstance(content, bytes) else content.encode()
        return codecs.BOM_UTF8 + content.removeprefix(codecs.BOM_UTF8)

    given = marked if kind == TYPES["csv"] else data
    st.download_button(label, given, name, kind, on_click="ignore", **options)


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
    if info.request is None or not (info.bundled or visitors.may("paths")):
        return None
    from lama_core.probes.kinds import request_of as stored_request  # imports every kind of probe

    return stored_request(info)


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
