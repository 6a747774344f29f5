"""The answer after each layer of a model, as a heat map of ranks and a table."""

from html import escape

import numpy as np
import pandas as pd
import streamlit as st

from lama_core.queries.lenses.layers import FollowedWord, ModelLayers
from lama_core.rounding import fixed
from lama_core.views.figure import Axis, Figure
from lama_core.views.vega import HIGH, LOW, between
from pages.ui.shared import predictions
from pages.ui.shared.figures import draw_figure
from pages.ui.shared.messages import plain
from pages.ui.shared.tables import draw_table
from pages.ui.shared.token_strips import colour_scale

COLOURS = (LOW, "#7a838e", HIGH)  # of the last and of the first ranks; white is readable on all
ROW = 24  # pixels


def draw_layers(found: ModelLayers, title: str) -> None:
    """Draw the charts and the table of one model; `title` is the model's display name."""
    predictions.draw_conclusion(
        " ".join(
            map(_conclusion, [word for word in found.words if word.is_gold or word.ranks[-1] == 1])
        )
    )
    st.html(colour_scale("rank, log scale: 1", COLOURS[::-1], f"{found.n_candidates:,}"))
    draw_figure(
        layer_ranks(found, title),
        {},
        f"ranks in {found.name}",
        most=ROW * len(found.layers),
        legend=False,
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
        row = {
            "layer": layer.title,
            "first answer": layer.first,
            "its log-prob.": fixed(layer.log_prob, 2),
        }
        for word, name in zip(found.words, _titles_of_words(found), strict=True):
            row[f"{name}: rank"] = f"{word.ranks[layer.number]:,}"
            row[f"{name}: log-prob."] = fixed(word.log_probs[layer.number], 2)
        rows.append(row)
    return pd.DataFrame(rows)


def layer_ranks(found: ModelLayers, title: str) -> Figure:
    """Heat map of word ranks, layer by word, coloured by rank on a log scale."""
    layers = [*reversed(found.layers)]
    last = np.log10(max(found.n_candidates, 10))
    cells = [
        {
            "layer": str(layer.number),
            "word": title_of_word,
            "rank": rank,
            "text": f"{rank:,}",
            "ink": between(COLOURS, 1 - min(1.0, np.log10(rank) / last)),
            "said": f"{title_of_word} after layer {layer.title}\n"
            f"rank {rank:,} of {found.n_candidates:,}",
        }
        for layer in layers
        for word, title_of_word in zip(found.words, _titles_of_words(found), strict=True)
        for rank in (word.ranks[layer.number],)
    ]
    return Figure(
        shape="heat map",
        frame=pd.DataFrame(cells),
        by=Axis(column="word", title="word"),
        value=Axis(column="rank", title="rank"),
        series="layer",
        names={str(layer.number): f"{layer.title} · {layer.first}" for layer in layers},
        text="text",
        cell="ink",
        title=f"{title}: ranks of words (columns) after each layer (rows, with its first answer)",
    )


def _titles_of_words(found: ModelLayers) -> list[str]:
    return [f"{word.word} ✓" if word.is_gold else word.word for word in found.words]
