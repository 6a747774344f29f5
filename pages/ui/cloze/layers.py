"""The answer after each layer of a model, as a heat map of ranks, lines, and a table.

Imported when it is asked for: charts take longer than the first answer.
"""

from html import escape

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from lama_core.probes.cloze.inside import ModelLayers
from lama_core.rounding import fixed
from pages.ui.shared import charts
from pages.ui.shared.charts import MOST_LETTERS
from pages.ui.shared.colours import PALETTE
from pages.ui.shared.messages import plain


def draw_layers(found: ModelLayers, title: str) -> None:
    """A model's words through its layers. title: of the model, for people."""
    charts.show(
        layer_ranks(found), f"ranks in {found.name}",
        title=f"{title}: ranks by layer",
    )  # fmt: skip
    charts.show(
        layer_lines(found), f"log-probabilities in {found.name}",
        title=f"{title}: log-probabilities by layer",
    )  # fmt: skip
    with st.expander("As a table"):
        st.dataframe(layers_table(found), hide_index=True)
    for note in found.notes:
        st.caption(plain(note))


def layers_table(found: ModelLayers) -> pd.DataFrame:
    """A row a layer, the last one first: its answer, and each word's rank and log-probability."""
    rows = []
    for layer in reversed(found.layers):
        row = {"layer": layer.title, "first answer": layer.first}
        row["its log-prob."] = fixed(layer.log_prob, 2)
        for word, name in zip(found.words, _titles_of_words(found), strict=True):
            row[f"{name}: rank"] = f"{word.ranks[layer.number]:,}"
            row[f"{name}: log-prob."] = fixed(word.log_probs[layer.number], 2)
        rows.append(row)
    return pd.DataFrame(rows)


def layer_ranks(found: ModelLayers) -> go.Figure:
    """Where words stand after each layer: layer by word, coloured by rank on a log scale."""
    ranks = np.array([word.ranks for word in found.words], dtype=float).T
    titles = [layer.title for layer in found.layers]
    tone = -np.log10(ranks)
    words = _titles_of_words(found)
    figure = go.Figure(
        go.Heatmap(
            z=tone,
            x=list(range(len(words))),
            y=list(range(len(titles))),
            text=[[f"{int(rank):,}" for rank in line] for line in ranks],
            texttemplate="%{text}",
            textfont={"color": "white"},
            customdata=[[[escape(word), title] for word in words] for title in titles],
            hovertemplate="%{customdata[0]} after layer %{customdata[1]}: rank %{text} of "
            f"{found.n_candidates:,}"
            "<extra></extra>",
            colorscale=charts.SCALE,
            zmin=-np.ceil(np.log10(max(found.n_candidates, 10))),
            zmax=0,
            xgap=2,
            ygap=1,
            showscale=False,  # every cell has its rank
        )
    )
    firsts = [f"{layer.title} · {layer.first[:MOST_LETTERS]}" for layer in found.layers]
    marks = {"tickvals": list(range(len(titles))), "ticktext": list(map(escape, firsts))}
    figure.update_xaxes(
        tickvals=list(range(len(words))), ticktext=[escape(word[:MOST_LETTERS]) for word in words],
        title="word", showgrid=False,
    )  # fmt: skip
    figure.update_yaxes(title="layer · its first answer", showgrid=False, **marks)
    return figure.update_layout(height=180 + 20 * len(titles))


def layer_lines(found: ModelLayers) -> go.Figure:
    """The log-probability of words after each layer: a line a word."""
    figure = go.Figure()
    titles = [layer.title for layer in found.layers]
    symbols = ("circle", "square", "diamond", "cross", "x", "triangle-up", "star", "hexagon")
    for number, (word, title) in enumerate(zip(found.words, _titles_of_words(found), strict=True)):
        figure.add_trace(
            go.Scatter(
                x=list(range(len(titles))),
                y=list(word.log_probs),
                name=escape(title[:MOST_LETTERS]),
                mode="lines+markers",
                line={
                    "color": PALETTE[number % len(PALETTE)],
                    "width": 3 if word.is_gold else 1.5,
                },
                marker={"symbol": symbols[number % len(symbols)], "size": 7},
                customdata=[
                    [layer, fixed(value, 2), f"{rank:,}"]
                    for layer, value, rank in zip(titles, word.log_probs, word.ranks, strict=True)
                ],
                hovertemplate="%{fullData.name} after layer %{customdata[0]}: %{customdata[1]}, "
                "rank %{customdata[2]}<extra></extra>",
            )
        )
    # Of many layers every third has its name, or every fourth.
    step = 1 + len(titles) // 12
    kept = list(range(len(titles) - 1, -1, -step))[::-1]
    figure.update_xaxes(title="layer", tickvals=kept, ticktext=[titles[at] for at in kept])
    figure.update_yaxes(title="log-probability")
    return figure.update_layout(height=320)


def _titles_of_words(found: ModelLayers) -> list[str]:
    return [f"{word.word} ✓" if word.is_gold else word.word for word in found.words]
