"""The answer after each layer of a model, as a heat map of ranks and a table.

Imported only when opened, because importing the chart library takes longer than a first answer.
"""

from html import escape

import numpy as np
import pandas as pd
import streamlit as st

from lama_core.queries.lenses.layers import FollowedWord, ModelLayers
from lama_core.rounding import fixed
from pages.ui.shared import charts, predictions
from pages.ui.shared.charts import MOST_LETTERS
from pages.ui.shared.messages import plain
from pages.ui.shared.plotly_chart import PlotlyChart
from pages.ui.shared.tables import draw_table
from pages.ui.shared.token_strips import colour_scale


def draw_layers(found: ModelLayers, title: str) -> None:
    """Draw the charts and the table of one model; `title` is the model's display name."""
    predictions.draw_conclusion(
        " ".join(
            map(_conclusion, [word for word in found.words if word.is_gold or word.ranks[-1] == 1])
        )
    )
    colours = (charts.HIGH, charts.MIDDLE, charts.LOW)
    st.html(colour_scale("rank, log scale: 1", colours, f"{found.n_candidates:,}"))
    charts.draw_chart(
        layer_ranks(found), f"ranks in {found.name}", title=f"{title}: ranks by layer"
    )
    with st.expander("As a table"):
        draw_table(layers_table(found))
    for note in found.notes:
        st.caption(plain(note))


def _conclusion(word: FollowedWord) -> str:
    """In which layers a word is first, as HTML."""
    name, ranks = f"<b>{escape(word.word)}</b>", word.ranks
    if ranks[-1] == 1:
        start = next(at for at in range(len(ranks)) if set(ranks[at:]) == {1})
        last = len(ranks) - 1
        since = f"from layer {start} on" if start else "from the embeddings on"
        if start == last:
            since = "only " * (ranks.count(1) == 1) + f"in the last layer ({last} of {last})"
        return f"{name} is first {since}."
    best = min(ranks)
    after = f"layer {ranks.index(best)}" if ranks.index(best) else "the embeddings"
    return f"{name} ends at rank {ranks[-1]:,}; its best rank is {best:,}, after {after}."


def layers_table(found: ModelLayers) -> pd.DataFrame:
    """A row per layer, last layer first: its answer, each word's rank and log-probability."""
    rows = []
    for layer in reversed(found.layers):
        row = {"layer": layer.title, "first answer": layer.first}
        row["its log-prob."] = fixed(layer.log_prob, 2)
        for word, name in zip(found.words, _titles_of_words(found), strict=True):
            row[f"{name}: rank"] = f"{word.ranks[layer.number]:,}"
            row[f"{name}: log-prob."] = fixed(word.log_probs[layer.number], 2)
        rows.append(row)
    return pd.DataFrame(rows)


def layer_ranks(found: ModelLayers) -> PlotlyChart:
    """Heat map of word ranks, layer by word, coloured by rank on a log scale."""
    ranks = np.array([word.ranks for word in found.words]).T
    words = _titles_of_words(found)
    rows = [f"{layer.title} · {layer.first[:MOST_LETTERS]}" for layer in found.layers]
    hover = [
        [
            f"{escape(word)} after layer {layer.title}: rank {rank:,} of {found.n_candidates:,}"
            for word, rank in zip(words, line, strict=True)
        ]
        for layer, line in zip(found.layers, ranks.tolist(), strict=True)
    ]
    figure = charts.heat_map(
        -np.log10(ranks.astype(float)),
        [[f"{rank:,}" for rank in line] for line in ranks.tolist()],
        ("layer · its first answer", rows),
        ("word", words),
        hovertext=hover,
        hovertemplate="%{hovertext}<extra></extra>",
        colorscale=charts.SCALE,
        zmin=-np.log10(max(found.n_candidates, 10)),
        zmax=0,
        showscale=False,  # every cell shows its rank
    )
    return figure.update(height=180 + 20 * len(rows))


def _titles_of_words(found: ModelLayers) -> list[str]:
    return [f"{word.word} ✓" if word.is_gold else word.word for word in found.words]
