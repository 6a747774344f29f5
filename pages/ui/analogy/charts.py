"""Accuracies of analogy probes as charts: one trace a model, in its colour."""

from collections.abc import Mapping, Sequence

import pandas as pd
import plotly.graph_objects as go

MOST_BARS = 3  # more models than this stand as points
SYMBOLS = ("diamond", "square", "triangle-up", "circle")  # of published models
INK = "#3d4148"  # around white: seen on bars and on either background


def accuracy_by_name(
    table: pd.DataFrame,
    colours: Mapping[str, str],
    order: Sequence[str],
    *,
    title: str,
    across: bool = False,
) -> go.Figure:
    """Accuracy in percent by kind or relation, chance marked.

    table: who, name, value and spread (percent), n, published. colours: who -> colour, in the order
    of the traces. order: the names, first at the top. across: many names, on the whole width.
    """
    figure = go.Figure()
    greys = 0
    for who, colour in colours.items():
        part = table[table["who"] == who]
        if part.empty:
            continue
        spread = part["spread"].astype(float)
        published = bool(part["published"].any())
        shared = {
            "x": part["value"],
            "y": part["name"],
            "name": f"{who} (published)" if published else who,
            "error_x": {"type": "data", "array": spread, "thickness": 1, "width": 2}
            if spread.notna().any()
            else None,
            "customdata": part[["n"]].to_numpy(),
            "hovertemplate": f"<b>%{{y}}</b><br>{who}: %{{x:.1f}}"
            + ("" if published else "<br>%{customdata[0]:,} decisions")
            + "<extra></extra>",
            "showlegend": True,
        }
        if published:
            marker = {
                "color": "white",
                "size": 9,
                "symbol": SYMBOLS[greys % len(SYMBOLS)],
                "line": {"width": 1.6, "color": INK},
            }
            figure.add_trace(go.Scatter(mode="markers", marker=marker, **shared))
            greys += 1
        elif across and len(colours) > MOST_BARS:
            marker = {"color": colour, "size": 9}
            figure.add_trace(go.Scatter(mode="markers", marker=marker, **shared))
        else:
            figure.add_trace(go.Bar(orientation="h", marker_color=colour, **shared))
    n_bars = sum(isinstance(trace, go.Bar) for trace in figure.data) or 1
    rows = len(order) * (9 + 13 * n_bars if across else 16 + 13 * n_bars)
    figure.update_layout(height=150 + rows, bargap=0.3, bargroupgap=0.05)
    if title:
        figure.update_layout(title={"text": title, "x": 0, "font": {"size": 15}})
    figure.update_yaxes(
        autorange="reversed", categoryorder="array", categoryarray=list(order), ticksuffix="  "
    )
    figure.update_xaxes(range=[0, 100], title="accuracy, %")
    figure.add_vline(x=50, line={"dash": "dash", "width": 1, "color": "rgba(128,128,128,0.9)"})
    return figure
