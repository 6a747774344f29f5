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
from pages.ui.shared.plotly_chart import PlotlyChart

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
charts = [PlotlyChart() for _ in range(3)]
for run, score, curve, count in zip(runs, scores, curves, counts, strict=True):
    ends = {"type": "data", "array": score.to_numpy() / 10}
    bars = {"x": score.tolist(), "y": names, "hovertext": names, "error_x": ends}
    charts[0].add("bar", **bars, orientation="h", name=run)
    charts[1].add("scatter", x=list(range(1, 101)), y=curve, name=run, customdata=list(range(100)))
    charts[1].add("scatter", x=list(range(1, 101)) * 2, y=curve + curve, name=run, fill="toself")
    charts[2].add("bar", x=list(range(10)), y=count, name=run, customdata=list(range(10)))
for chart in charts:
    chart.update(title="runs", xaxis_title="k", yaxis_title="P@k", height=500)
    st.plotly_chart(chart.unchecked, on_select="rerun", selection_mode="points")
table = pd.DataFrame(dict(zip(runs, scores, strict=True)))
st.dataframe(table)
st.dataframe(table.head(8))
