"""The heat map of a causal trace, and the bars of a logit's parts.

Imported only when opened, because importing the chart library takes longer than a first answer.
"""

from html import escape

import numpy as np
import pandas as pd
import streamlit as st

from lama_core.queries.lenses.logit import ModelLogit
from lama_core.queries.lenses.trace import ModelTrace
from lama_core.rounding import fixed
from lama_core.views.colours import PUBLISHED
from pages.ui.shared import charts, predictions
from pages.ui.shared.messages import counted, plain
from pages.ui.shared.plotly_chart import PlotlyChart, Style
from pages.ui.shared.tables import draw_table

MAX_TEXTS = 8  # layers; with more, the cells have no numbers
ATTENTION, MLP = "#7a68a6", "#b9a7d6"  # colours of no model
PART_TITLES = {"attention": "attention", "mlp": "MLP"}
# Below the numbers next to them; the last two are on lines of their own, because with many layers
# they are closer to each other than their widths.
SHORT = {"embedding": "<br>emb.", "remainder": "<br>rest", "bias": "<br><br>bias"}


def draw_trace(found: ModelTrace, title: str) -> None:
    """Draw one model's heat map, its largest restored probability and its notes."""
    predictions.draw_conclusion(
        f"Noise on <b>{escape(found.subject)}</b> takes the probability of "
        f"<b>{escape(found.answer)}</b> from {predictions.probability(found.prob)} to "
        f"{predictions.probability(found.corrupted)}.{_largest(found)}"
    )
    part = PART_TITLES.get(found.restore, found.restore)
    layers = f"{part} restored in {found.window} layers; " if found.window > 1 else ""
    charts.draw_chart(
        trace_map(found),
        f"trace in {found.name}",
        title=f"{title}: {part} restored",
        footnote=f"{layers}cells: effect, the answer's probability minus that under noise, mean "
        f"over {counted(found.draws, 'draw')} of noise; *: token of the subject",
    )
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
    prob = predictions.probability(value)
    return (
        f" Apart from the blank's position, restoring layer {layer} at "
        f"<b>{escape(found.tokens[token])}</b> brings it back most, to {prob}."
    )


def _token_titles(found: ModelTrace) -> list[str]:
    marked = zip(found.tokens, found.in_subject, strict=True)
    return [f"{token} *" if inside else token for token, inside in marked]


def trace_map(found: ModelTrace) -> PlotlyChart:
    """Heat map of effects: a row per token, the first at the top, and a column per layer."""
    probs = np.array(found.restored, dtype=float).T  # [token, layer]; NaN where unknown
    effects = probs - found.corrupted
    tokens, layers = _token_titles(found), [str(n) for n in range(1, probs.shape[1] + 1)]
    hover = [
        [
            f"layer {layer} at {escape(token)}: probability {fixed(prob, 3)}, effect "
            f"{fixed(effect, 3, signed=True)}"
            for layer, prob, effect in zip(layers, row, of_row, strict=True)
        ]
        for token, row, of_row in zip(tokens, probs.tolist(), effects.tolist(), strict=True)
    ]
    largest = max(float(np.nanmax(np.abs(effects))), 1e-6)
    shows = len(layers) <= MAX_TEXTS
    texts = [[_cell(value) if shows else "" for value in row] for row in effects.tolist()]
    figure = charts.heat_map(
        effects,
        texts,
        ("", tokens),
        ("layer", layers),
        hovertext=hover,
        hovertemplate="%{hovertext}<extra></extra>",
        **charts.diverging(),
        zmin=-largest,
        zmax=largest,
        showscale=not shows,
        colorbar={"thickness": 10, "title": {"text": "effect"}},
    )
    figure.update(yaxis_autorange="reversed")
    if not shows:
        step = 1 + len(layers) // 10
        at = list(range(0, len(layers), step))
        figure.update(xaxis={"tickvals": at, "ticktext": [layers[number] for number in at]})
    return figure.update(height=110 + 24 * len(tokens))


def _cell(effect: float) -> str:
    if not np.isfinite(effect):
        return ""
    return fixed(effect, 2, signed=True) if abs(effect) >= 0.005 else "0"


def trace_table(found: ModelTrace) -> pd.DataFrame:
    """A row per layer, last layer first, and a column per token: restored probabilities."""
    titles = [f"{at}. {title}" for at, title in enumerate(_token_titles(found), start=1)]
    rows = [
        {"layer": layer}
        | {
            title: "" if value is None else predictions.probability(value)
            for title, value in zip(titles, values, strict=True)
        }
        for layer, values in reversed(list(enumerate(found.restored, start=1)))
    ]
    return pd.DataFrame(rows)


def draw_logit(found: ModelLogit, title: str) -> None:
    """Draw the bars of one model, its strongest heads and neurons, and its notes."""
    against = f" minus that of <b>{escape(found.against)}</b>" if found.against else ""
    most = max(found.parts, key=lambda part: part.value)
    part = PART_TITLES.get(most.part, most.part) + (f" of layer {most.layer}" if most.layer else "")
    predictions.draw_conclusion(
        f"The {escape(part)} adds most to the logit of <b>{escape(found.answer)}</b>{against}: "
        f"{fixed(most.value, 2, signed=True)} of {fixed(found.logit, 2)}."
    )
    charts.draw_chart(
        part_bars(found), f"logit parts in {found.name}", title=f"{title}: parts of the logit"
    )
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


def part_bars(found: ModelLogit) -> PlotlyChart:
    """Bars of the parts: attention and MLP side by side in each layer, then the others."""
    figure = PlotlyChart()
    names = dict.fromkeys(str(one.layer) if one.layer else one.part for one in found.parts)
    at = {name: number for number, name in enumerate(names)}
    table = pd.DataFrame(
        [
            {
                "at": at[str(one.layer) if one.layer else one.part],
                "value": one.value,
                "part": one.part,
                "where": f"layer {one.layer}, " if one.layer else "",
            }
            for one in found.parts
        ]
    )
    table = charts.with_hover(
        table,
        lambda row: (
            f"{row.where}{PART_TITLES.get(row.part, row.part)}: {fixed(row.value, 3, signed=True)}"
        ),
    )
    colours = {"attention": ATTENTION, "mlp": MLP}
    for part, colour in colours.items():
        rows = table[table["part"] == part]
        charts.add(figure, "bar", rows, "at", "value", name=PART_TITLES[part], marker_color=colour)
    rows = table[~table["part"].isin(list(colours))]
    middle: Style = {"width": 0.4, "offset": -0.2, "marker_color": PUBLISHED}
    charts.add(figure, "bar", rows, "at", "value", name="other", **middle)
    step = 1 + len(names) // 14
    shown = [
        (number, name)
        for name, number in at.items()
        if not name.isdigit() or not (int(name) - 1) % step
    ]
    axis = {
        "title": "layer",
        "tickvals": [number for number, _ in shown],
        "ticktext": [SHORT.get(name, name) for _, name in shown],
        "tickangle": 0,
    }
    return figure.update(xaxis=axis, yaxis_title="adds to the logit", height=300)
