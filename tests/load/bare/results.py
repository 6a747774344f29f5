"""The least that Results can do, as a page: the peer of its first view in `bench pages`.

It reads the columns of the runs in LAMA_HOME that Results shows or aligns, and draws three charts
and two tables of the same size with the same libraries. It aligns nothing, has no interval, no
link, no export and three widgets.
"""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import streamlit as st

from lama_core.runs.facts_table import read_top_words

COLUMNS = [
    "excluded", "relation", "source", "type", "subject", "object", "prompt", "fact_id", "query",
    "rank_raw", "rank_filtered",
]  # fmt: skip

scores, curves, counts = [], [], []
folders = sorted((Path(os.environ["LAMA_HOME"]) / "data" / "runs").iterdir())
for folder in folders:
    rows = pq.ParquetFile(folder / "facts.parquet").read(COLUMNS)
    _ = pq.ParquetFile(folder / "candidates.parquet").read()
    _ = read_top_words(folder / "facts.parquet")
    ranks = rows["rank_filtered"].to_numpy()
    relations = rows["relation"].to_pandas().astype(str)
    scores.append(pd.Series(ranks <= 1).groupby(relations.to_numpy()).mean())
    curves.append([float(np.mean(ranks <= k)) for k in range(1, 101)])
    counts.append(np.histogram(np.log(ranks[~np.isnan(ranks)]), 10)[0])
runs, names = [folder.name for folder in folders], list(scores[0].index)
st.multiselect("Models", runs, default=runs)
st.selectbox("Data", ["lama"])
st.multiselect("Relations", names)
marks = [[], [], []]
for run, score, curve, count in zip(runs, scores, curves, counts, strict=True):
    marks[0] += [
        {"run": run, "y": name, "x": x, "low": 0.9 * x, "high": 1.1 * x}
        for name, x in zip(names, score.tolist(), strict=True)
    ]
    marks[1] += [
        {"run": run, "x": k, "y": y, "low": y, "high": y} for k, y in enumerate(curve, start=1)
    ]
    marks[2] += [{"run": run, "x": at, "y": n} for at, n in enumerate(count.tolist())]
SHAPES = (("bar", "rule", "x"), ("line", "area", "y"), ("bar", None, ""))
for values, (shape, interval, channel) in zip(marks, SHAPES, strict=True):
    encoding = {"x": {"field": "x", "type": "quantitative"}, "y": {"field": "y"}}
    encoding |= {"color": {"field": "run"}, "tooltip": {"field": "run"}}
    clicked = [{"name": "clicked", "select": {"type": "point", "fields": ["run"]}}]
    layers = [{"mark": shape, "encoding": encoding, "params": clicked}]
    if interval:
        ends = {channel: {"field": "low"}, f"{channel}2": {"field": "high"}}
        layers.append({"mark": interval, "encoding": encoding | ends})
    spec = {"data": {"values": values}, "layer": layers, "title": "runs", "height": 500}
    st.vega_lite_chart(None, spec, on_select="rerun", selection_mode="clicked")
table = pd.DataFrame(dict(zip(runs, scores, strict=True)))
st.dataframe(table)
st.dataframe(table.head(8))
