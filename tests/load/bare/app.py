"""The limit for `clients.py --bare`: an app that only does what no app can avoid.

It answers the same requests: the same models' passes in a second process, with Streamlit's cache,
five words each in a table; elsewhere three charts and two tables of Results' size, which are made
once. It has no check, no link and no export, and draws no more widgets than the clients use.
Garbage is collected as in the app.
"""

import json
import subprocess
import sys
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pandas as pd
import streamlit as st

from pages.ui.shared import garbage_collection

N_RUNS, N_RELATIONS = 6, 41
garbage_collection.collect_rarely()


@st.cache_resource
def process() -> tuple["subprocess.Popen[str]", Lock]:
    """The process that has the models, and whose turn it is."""
    command = [sys.executable, str(Path(__file__).with_name("scoring.py"))]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, encoding="utf-8"), Lock()


@st.cache_resource
def drawings() -> tuple[list[dict[str, Any]], list[pd.DataFrame]]:
    """Three charts and two tables."""
    draw = np.random.default_rng(0)
    scores = draw.random((N_RUNS, N_RELATIONS))
    names = [f"relation {number}" for number in range(N_RELATIONS)]
    columns = [f"run {number}" for number in range(N_RUNS)]

    def chart(mark: str, x: list[list[float]], y: list[Any]) -> dict[str, Any]:
        values = [
            {"x": one, "y": other, "run": run}
            for run, along in zip(columns, x, strict=True)
            for one, other in zip(along, y, strict=True)
        ]
        channels = {name: {"field": name} for name in ("x", "y", "tooltip")}
        encoding = channels | {"color": {"field": "run"}, "tooltip": {"field": "run"}}
        return {"data": {"values": values}, "mark": mark, "encoding": encoding}

    curves, counts = (draw.random((N_RUNS, n)) for n in (100, 10))
    figures = [
        chart("bar", scores.tolist(), names),
        chart("line", np.sort(curves).tolist(), list(range(1, 101))),
        chart("bar", counts.tolist(), list(range(10))),
    ]
    table = pd.DataFrame(scores.T, columns=columns).assign(relation=names)
    return figures, [table, table.head(8)]


@st.cache_data
def answers(text: str, context: str, models: tuple[str, ...]) -> str:
    """The models' best words as HTML."""
    child, turn = process()
    assert child.stdin and child.stdout
    with turn:
        print(json.dumps((text, context, models)), file=child.stdin, flush=True)
        return str(json.loads(child.stdout.readline()))


if urlsplit(st.context.url or "").path.strip("/") or "tab" in st.query_params:
    figures, tables = drawings()
    for figure in figures:
        st.vega_lite_chart(None, figure)
    for table in tables:
        st.dataframe(table)
else:
    text = st.text_input("Sentence", key="text", bind="query-params")
    models = tuple(st.query_params.get_all("models"))
    st.html(answers(text, st.query_params.get("context", ""), models))
