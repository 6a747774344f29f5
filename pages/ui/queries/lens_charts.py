"""The heat map of a causal trace, and the bars of a logit's parts."""

from dataclasses import replace
from html import escape

import numpy as np
import pandas as pd
import streamlit as st

from lama_core.queries.lenses.logit import ModelLogit
from lama_core.queries.lenses.trace import ModelTrace
from lama_core.rounding import fixed
from lama_core.views.colours import PUBLISHED
from lama_core.views.figure import Axis, Figure
from pages.ui.shared import predictions
from pages.ui.shared.figures import draw_figure
from pages.ui.shared.messages import counted, plain
from pages.ui.shared.tables import draw_table

PART_TITLES = {"attention": "attention", "mlp": "MLP"}
SHORT = {"embedding": "emb.", "remainder": "rest"}  # names on the axis
OTHER = "other"  # the series of parts that aren't in a layer
INKS = {"attention": "#7a68a6", "mlp": "#b9a7d6", OTHER: PUBLISHED}  # colours of no model
ROW = 24  # pixels


def draw_trace(found: ModelTrace, title: str) -> None:
    """Draw one model's heat map, its largest restored probability and its notes."""
    predictions.draw_conclusion(
        f"Noise on <b>{escape(found.subject)}</b> takes the probability of "
        f"<b>{escape(found.answer)}</b> from {predictions.probability(found.prob)} to "
        f"{predictions.probability(found.corrupted)}.{_largest(found)}"
    )
    part = PART_TITLES.get(found.restore, found.restore)
    layers = f"{part} restored in {found.window} layers; " if found.window > 1 else ""
    figure = replace(
        trace_map(found),
        title=f"{title}: {part} restored, effect by token (rows) and layer (columns)",
        caption=f"{layers}cells: effect, the answer's probability minus that under noise, mean "
        f"over {counted(found.draws, 'draw')} of noise; *: token of the subject",
    )
    draw_figure(figure, {}, f"trace in {found.name}", most=ROW * len(found.tokens))
    for note in found.notes:
        st.caption(plain(note))
    with st.expander("As a table"):
        draw_table(trace_table(found))


def _largest(found: ModelTrace) -> str:
    """Where restoring brings back most of the probability, as HTML; empty if it isn't known."""
    best = found.best()
    if best is None:
        return ""
    value, layer, token = best
    return (
        f" Apart from the blank's position, restoring layer {layer} at "
        f"<b>{escape(found.tokens[token])}</b> brings it back most, to "
        f"{predictions.probability(value)}."
    )


def _token_titles(found: ModelTrace) -> list[str]:
    return [
        f"{token} *" if inside else token
        for token, inside in zip(found.tokens, found.in_subject, strict=True)
    ]


def trace_map(found: ModelTrace) -> Figure:
    """Heat map of effects: a row per token, the first at the top, and a column per layer."""
    cells = [
        {
            "token": str(at),
            "layer": layer,
            "effect": (effect := np.nan if prob is None else prob - found.corrupted),
            "text": _cell(effect),
            "said": f"layer {layer} at {token}\nprobability {fixed(prob, 3)}, effect "
            f"{fixed(effect, 3, signed=True)}"
            if prob is not None
            else "",
        }
        for at, token in enumerate(found.tokens)
        for layer, probs in enumerate(found.restored, start=1)
        for prob in (probs[at],)
    ]
    frame = pd.DataFrame(cells)
    most = max(float(frame["effect"].abs().fillna(0.0).max()), 1e-6)
    return Figure(
        shape="heat map",
        frame=frame,
        by=Axis(column="layer", title="layer"),
        value=Axis(
            column="effect",
            title="effect",
            ends=(-most, most),
            ticks={-most: fixed(-most, 2), 0.0: "0", most: fixed(most, 2, signed=True)},
        ),
        series="token",
        names={str(at): title for at, title in enumerate(_token_titles(found))},
        text="text" if len(found.restored) <= 8 else "",  # more layers leave no place for numbers
        title="effects",
    )


def _cell(effect: float) -> str:
    if not np.isfinite(effect):
        return ""
    return fixed(effect, 2, signed=True) if abs(effect) >= 0.005 else "0"


def trace_table(found: ModelTrace) -> pd.DataFrame:
    """A row per layer, last layer first, and a column per token: restored probabilities."""
    titles = [f"{at}. {title}" for at, title in enumerate(_token_titles(found), start=1)]
    return pd.DataFrame(
        {"layer": layer}
        | {
            title: "" if value is None else predictions.probability(value)
            for title, value in zip(titles, values, strict=True)
        }
        for layer, values in reversed(list(enumerate(found.restored, start=1)))
    )


def draw_logit(found: ModelLogit, title: str) -> None:
    """Draw the bars of one model, its strongest heads and neurons, and its notes."""
    against = f" minus that of <b>{escape(found.against)}</b>" if found.against else ""
    most = max(found.parts, key=lambda part: part.value)
    part = PART_TITLES.get(most.part, most.part) + (f" of layer {most.layer}" if most.layer else "")
    predictions.draw_conclusion(
        f"The {escape(part)} adds most to the logit of <b>{escape(found.answer)}</b>{against}: "
        f"{fixed(most.value, 2, signed=True)} of {fixed(found.logit, 2)}."
    )
    draw_figure(part_bars(found, f"{title}: parts of the logit"), INKS, f"logit in {found.name}")
    for note in found.notes:
        st.caption(plain(note))
    with st.expander("Strongest MLP neurons, and the words that they promote"):
        draw_table(
            {
                "neuron": [f"layer {one.layer}, neuron {one.neuron}" for one in found.neurons],
                "adds": [fixed(one.value, 3, signed=True) for one in found.neurons],
                "promotes": [", ".join(one.promoted) for one in found.neurons],
            },
        )
    heads = found.strongest_heads()
    with st.expander("Strongest attention heads"):
        draw_table(
            {
                "head": [f"layer {one.layer}, head {one.head}" for one in heads],
                "adds": [fixed(one.value, 3, signed=True) for one in heads],
            },
        )


def part_bars(found: ModelLogit, title: str) -> Figure:
    """Columns of the parts: attention and MLP side by side in each layer, then the others."""
    rows = [
        {
            "at": str(one.layer) if one.layer else one.part,
            "part": one.part if one.part in PART_TITLES else OTHER,
            "value": one.value,
            "said": (f"layer {one.layer}, " if one.layer else "")
            + f"{PART_TITLES.get(one.part, one.part)}: {fixed(one.value, 3, signed=True)}",
        }
        for one in found.parts
    ]
    return Figure(
        shape="columns",
        frame=pd.DataFrame(rows),
        by=Axis(column="at", title="layer", ticks=SHORT),
        value=Axis(column="value", title="adds to the logit"),
        series="part",
        names=PART_TITLES | {OTHER: OTHER},
        zero=0.0,
        title=title,
    )
