"""Figures as Plotly charts: DataFrame in, chart out, one trace a run in the run's colour.

`customdata` of every mark says what it stands for, so that a click can lead to the facts behind
it. Backgrounds are transparent and texts uncoloured: Streamlit's theme colours them.
"""

from collections.abc import Mapping, Sequence, Sized
from html import escape
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from lama_core.metrics.confusion import Confusion
from pages.ui.shared.colours import PUBLISHED

Colours = Mapping[str, str]
CLEAR = "rgba(0,0,0,0)"
FAINT = "rgba(128,128,128,0.25)"
WHISKER = "rgba(128,128,128,0.95)"
SCALE = [[0.0, "#a8431f"], [0.5, "#7a838e"], [1.0, "#1f6aa5"]]  # white text is read on all of it
COUNTED = [[0.0, "#7a838e"], [1.0, "#a8431f"]]  # as SCALE, from few to many
MOST_NUMBERED = 24  # columns of a heat map whose cells have room for a number
MOST_LETTERS = 30
MOST_BARS = 3  # more runs than this stand as points on one line a relation


def show(
    figure: go.Figure, key: str, *, title: str, footnote: str = "", picture: str = "png"
) -> list[dict[str, Any]]:
    """Draw a chart; what was clicked, as dictionaries with `customdata`.

    title: what a screen reader says, and the picture's file name. footnote: how it was made, under
    the chart and in its picture.
    """
    named = sum(trace.showlegend is not False for trace in figure.data) > 1  # a legend above
    figure.update_layout(
        paper_bgcolor=CLEAR,
        plot_bgcolor=CLEAR,
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0, "title": None},
        margin={"l": 8, "r": 12, "t": 40 if named else 8, "b": 76 if footnote else 40},
        barcornerradius=2,
        hoverlabel={"align": "left"},
        dragmode=False,
    )
    figure.update_xaxes(zeroline=False, gridcolor=FAINT, automargin=True)
    figure.update_yaxes(zeroline=False, gridcolor=FAINT, automargin=True)
    if footnote:
        figure.add_annotation(
            text=footnote if len(footnote) < 160 else footnote[:157] + "...",
            showarrow=False, x=0, y=0, xref="paper", yref="paper", xanchor="left", yanchor="top",
            yshift=-56, font={"size": 10, "color": "gray"},
        )  # fmt: skip
    event = st.plotly_chart(
        figure,
        key=key,
        on_select="rerun",
        selection_mode="points",
        alt=title,
        config={
            "displaylogo": False,
            "modeBarButtonsToRemove": [
                "zoom2d", "pan2d", "select2d", "lasso2d", "autoScale2d", "zoomIn2d", "zoomOut2d",
                "resetScale2d",
            ],
            "toImageButtonOptions": {
                "format": picture,
                "filename": title.lower().replace(" ", "-"),
                "scale": 2 if picture == "png" else 1,
            },
        },
    )  # fmt: skip
    return list(event.selection.points)


def precision_by_relation(
    table: pd.DataFrame, colours: Colours, *, what: str, percent: bool
) -> go.Figure:
    """A value by relation with intervals: bars for a few runs, points on a line for more.

    table: name (of the run), relation, label, value, low, high (NaN for none), freq, n; relations
    in the order of the table. customdata: [name, relation].
    """
    figure = go.Figure()
    bars = len(colours) <= MOST_BARS
    scale = 100 if percent else 1
    table = table.assign(label=[_short(label) for label in table["label"]])
    labels = list(dict.fromkeys(table["label"]))
    for name, colour in colours.items():
        part = table[table["name"] == name]
        value = part["value"].to_numpy() * scale
        spread = {
            "type": "data",
            "array": part["high"].to_numpy() * scale - value,
            "arrayminus": value - part["low"].to_numpy() * scale,
            "thickness": 1,
            "width": 2,
            "color": WHISKER if bars else colour,
        }
        shared = {
            "x": value,
            "y": part["label"],
            "name": name,
            "error_x": spread if part["low"].notna().any() else None,
            "customdata": part[["name", "relation", "n"]].to_numpy(),
            "hovertemplate": f"<b>%{{y}}</b><br>{name}: %{{x:.1f}}"
            "<br>%{customdata[2]:,} facts<extra></extra>",
        }
        if bars:
            figure.add_trace(go.Bar(orientation="h", marker_color=colour, **shared))
        else:
            figure.add_trace(
                go.Scatter(mode="markers", marker={"color": colour, "size": 9}, **shared)
            )
    first = table.drop_duplicates("relation")
    if percent and first["freq"].notna().any():
        figure.add_trace(
            go.Scatter(
                x=first["freq"] * scale,
                y=first["label"],
                mode="markers",
                name="Freq baseline",
                marker={
                    "symbol": "line-ns-open",
                    "size": 11 if bars else 14,
                    "line": {"width": 2},
                    "color": PUBLISHED,
                },
                customdata=first.assign(name="")[["name", "relation", "n"]].to_numpy(),
                hovertemplate="<b>%{y}</b><br>always the most frequent object: %{x:.1f}"
                "<extra></extra>",
            )
        )
    row = 9 + 13 * len(colours) if bars else 22
    figure.update_layout(height=120 + max(1, len(labels)) * row, bargap=0.28, bargroupgap=0.05)
    figure.update_yaxes(categoryorder="array", categoryarray=labels, range=_rows(labels))
    figure.update_yaxes(showgrid=not bars, ticksuffix="  ")
    figure.update_xaxes(title=f"{what}, %" if percent else what, rangemode="tozero")
    return figure


def precision_curves(table: pd.DataFrame, colours: Colours, k: int) -> go.Figure:
    """Figure 2: mean P@k against k on a log axis. customdata: [name, k]."""
    figure = go.Figure()
    for name, colour in colours.items():
        part = table[table["name"] == name]
        figure.add_trace(
            go.Scatter(
                x=part["k"],
                y=100 * part["p_at_k"],
                name=name,
                mode="lines+markers",
                line={"color": colour, "width": 2},
                marker={"size": 5},
                customdata=part[["name", "k"]].to_numpy(),
                hovertemplate=f"{name}<br>P@%{{x}}: %{{y:.1f}} %<extra></extra>",
            )
        )
    if k > 1:
        figure.add_vline(x=k, line={"color": WHISKER, "width": 1, "dash": "dot"})
    figure.update_xaxes(
        type="log", title="k", tickvals=[1, 2, 5, 10, 20, 50, 100], range=[-0.03, 2.03]
    )
    figure.update_yaxes(title="mean P@k, %", range=[0, 101])
    return figure.update_layout(height=430)


def rank_histogram(table: pd.DataFrame, colours: Colours) -> go.Figure:
    """Facts by rank, bins of equal width on a log axis. customdata: [name, low, high]."""
    figure = go.Figure()
    for name, colour in colours.items():
        part = table[table["name"] == name]
        figure.add_trace(
            go.Bar(
                x=[_span(low, high) for low, high in zip(part["low"], part["high"], strict=True)],
                y=100 * part["share"],
                name=name,
                marker_color=colour,
                customdata=part[["name", "low", "high", "n"]].to_numpy(),
                hovertemplate=f"{name}<br>rank %{{x}}: %{{customdata[3]:,}} facts, %{{y:.1f}} %"
                "<extra></extra>",
            )
        )
    figure.update_xaxes(title="rank of the gold (log axis)", type="category", showgrid=False)
    figure.update_yaxes(title="share of the facts, %")
    return figure.update_layout(height=380, bargap=0.15)


def rank_boxes(table: pd.DataFrame, colours: Colours, what: str) -> go.Figure:
    """Box plots of ranks by run, on a log axis; the whiskers hold 90% of the facts.

    table: name, low, q1, median, q3, high, mean. customdata: [name] of the mean's marks.
    """
    figure = go.Figure()
    known = table[table["median"].notna()]
    for line in known.itertuples():
        figure.add_trace(
            go.Box(
                y=[line.name],
                q1=[line.q1],
                median=[line.median],
                q3=[line.q3],
                lowerfence=[line.low],
                upperfence=[line.high],
                orientation="h",
                name=str(line.name),
                marker_color=colours[str(line.name)],
                showlegend=False,
                hoverinfo="skip",
            )
        )
    figure.add_trace(
        go.Scatter(
            x=known["mean"],
            y=known["name"],
            mode="markers",
            name="mean",
            marker={
                "symbol": "diamond",
                "size": 10,
                "color": [colours[name] for name in known["name"]],
                "line": {"width": 1, "color": WHISKER},
            },
            customdata=known[["name", "median", "q1", "q3", "low", "high"]].to_numpy(),
            hovertemplate="%{y}<br>mean %{x:,.1f}, median %{customdata[1]:,.0f}"
            "<br>half between %{customdata[2]:,.0f} and %{customdata[3]:,.0f}"
            "<br>90 % between %{customdata[4]:,.0f} and %{customdata[5]:,.0f}<extra></extra>",
            showlegend=False,
        )
    )
    figure.update_xaxes(type="log", title=what, dtick=1)
    figure.update_yaxes(range=_rows(known), showgrid=False, ticksuffix="  ")
    return figure.update_layout(height=120 + 46 * max(1, len(known)))


def precision_by_type(
    relations: pd.DataFrame, means: pd.DataFrame, colours: Colours, k: int
) -> go.Figure:
    """P@k by type of relation: the mean as a bar with its interval, each relation as a point.

    customdata: [name, "type" or "relation", which].
    """
    figure = go.Figure()
    order = [kind for kind in ("1-1", "N-1", "N-M") if kind in set(means["type"])]
    order += [kind for kind in dict.fromkeys(means["type"]) if kind not in order]
    for name, colour in colours.items():
        part = means[means["name"] == name]
        value = 100 * part["value"]
        figure.add_trace(
            go.Bar(
                x=part["type"],
                y=value,
                name=name,
                offsetgroup=name,
                marker={"color": colour, "opacity": 0.45},
                error_y={
                    "type": "data",
                    "array": 100 * part["high"] - value,
                    "arrayminus": value - 100 * part["low"],
                    "thickness": 1.5,
                    "width": 3,
                    "color": WHISKER,
                },
                customdata=[[name, "type", kind] for kind in part["type"]],
                hovertemplate=f"{name}<br>%{{x}}: mean %{{y:.1f}} %<extra></extra>",
            )
        )
        points = relations[relations["name"] == name]
        figure.add_trace(
            go.Scatter(
                x=points["type"],
                y=100 * points["value"],
                name=name,
                offsetgroup=name,
                mode="markers",
                showlegend=False,
                marker={"color": colour, "size": 8, "line": {"width": 1, "color": WHISKER}},
                customdata=[
                    [name, "relation", relation, label]
                    for relation, label in zip(points["relation"], points["label"], strict=True)
                ],
                hovertemplate=f"{name}<br>%{{customdata[3]}}: %{{y:.1f}} %<extra></extra>",
            )
        )
    figure.update_xaxes(
        title="type of relation", categoryorder="array", categoryarray=order, showgrid=False
    )
    figure.update_yaxes(title=f"P@{k}, %", rangemode="tozero")
    return figure.update_layout(height=430, bargap=0.3, scattermode="group", scattergap=0.3)


def reliability(table: pd.DataFrame, colours: Colours) -> go.Figure:
    """The reliability diagram. table: name, low, high, n, confidence, accuracy.

    customdata: [name, low, high].
    """
    figure = go.Figure()
    figure.add_trace(
        go.Scatter(
            x=[0, 1],
            y=[0, 1],
            mode="lines",
            name="as often right as it says",
            line={"color": WHISKER, "width": 1, "dash": "dash"},
            hoverinfo="skip",
        )
    )
    most = max(1, int(table["n"].max())) if len(table) else 1
    for name, colour in colours.items():
        part = table[(table["name"] == name) & (table["n"] > 0)]
        figure.add_trace(
            go.Scatter(
                x=part["confidence"],
                y=part["accuracy"],
                name=name,
                mode="lines+markers",
                line={"color": colour, "width": 2},
                marker={"size": 7 + 15 * np.sqrt(part["n"] / most)},
                customdata=part[["name", "low", "high", "n"]].to_numpy(),
                hovertemplate=f"{name}<br>says %{{x:.2f}}, is right %{{y:.2f}}"
                "<br>%{customdata[3]:,} facts<extra></extra>",
            )
        )
    figure.update_xaxes(title="probability of the first answer", range=[-0.02, 1.02])
    figure.update_yaxes(title="share of right first answers", range=[-0.02, 1.02])
    return figure.update_layout(height=470)


def correlation_matrix(matrix: pd.DataFrame) -> go.Figure:
    """Figure 3: the lower triangle of a correlation matrix. customdata: [row, column]."""
    names = list(matrix.columns)
    values = matrix.to_numpy(dtype=float).copy()
    values[np.triu_indices(len(names))] = np.nan
    figure = go.Figure(
        go.Heatmap(
            z=values[1:, :-1],
            x=names[:-1],
            y=names[1:],
            colorscale=SCALE,
            zmin=-0.6,
            zmax=0.6,
            xgap=2,
            ygap=2,
            showscale=False,
            texttemplate="%{z:.2f}",
            textfont={"color": "white"},
            hovertemplate="%{y} with %{x}: %{z:.3f}<extra></extra>",
            hoverongaps=False,
        )
    )
    figure.update_xaxes(showgrid=False)
    figure.update_yaxes(autorange="reversed", showgrid=False)
    return figure.update_layout(height=400)


def differences(table: pd.DataFrame, names: tuple[str, str], colours: Sequence[str]) -> go.Figure:
    """P@k of B less A by relation, with intervals; the colour says who is ahead.

    table: relation, label, difference, low, high, n, only_a, only_b. customdata: [relation].
    """
    table = table.assign(label=[_short(label) for label in table["label"]])
    value = 100 * table["difference"]
    sure = (table["low"] > 0) | (table["high"] < 0)
    colour = np.select([value < 0, value > 0], list(colours), WHISKER)
    figure = go.Figure(
        go.Scatter(
            x=value,
            y=table["label"],
            mode="markers",
            marker={
                "size": 10,
                "color": colour,
                "symbol": np.where(sure, "circle", "circle-open"),
                "line": {"width": 2},
            },
            error_x={
                "type": "data",
                "array": 100 * table["high"] - value,
                "arrayminus": value - 100 * table["low"],
                "thickness": 1.3,
                "width": 3,
                "color": WHISKER,
            },
            customdata=table[["relation", "n", "only_a", "only_b"]].to_numpy(),
            hovertemplate="<b>%{y}</b><br>difference %{x:+.1f} points, %{customdata[1]:,} facts"
            "<br>only A right: %{customdata[2]}, only B right: %{customdata[3]}<extra></extra>",
            showlegend=False,
        )
    )
    figure.add_vline(x=0, line={"color": WHISKER, "width": 1})
    figure.update_xaxes(title=f"points that {names[1]} is ahead of {names[0]}")
    figure.update_yaxes(range=_rows(table), ticksuffix="  ")
    return figure.update_layout(height=120 + 22 * max(1, len(table)))


def words(table: pd.DataFrame, colour: str) -> go.Figure:
    """The words that a run falls back on. table: answer, n, share. customdata: [answer]."""
    figure = go.Figure(
        go.Bar(
            x=table["n"],
            y=table["answer"],
            orientation="h",
            marker_color=colour,
            customdata=table[["answer", "share", "n_relations", "right_type"]].to_numpy(),
            text=[f"{100 * share:.1f} %" for share in table["share"]],
            textposition="outside",
            cliponaxis=False,
            hovertemplate="<b>%{y}</b>: %{x:,} times wrong in %{customdata[2]} relations"
            "<br>an object of the relation in %{customdata[3]:.0%} of them<extra></extra>",
        )
    )
    figure.update_xaxes(title="wrong answers")
    figure.update_yaxes(type="category", range=_rows(table), showgrid=False, ticksuffix="  ")
    return figure.update_layout(height=90 + 24 * max(1, len(table)))


def _rows(lines: Sized) -> list[float]:
    """The range of an axis of names that begins at the top."""
    return [len(lines) - 0.5, -0.5]


def _short(label: str) -> str:
    """A label that leaves room for the chart; it begins with the relation's unique name."""
    return label if len(label) <= MOST_LETTERS else label[: MOST_LETTERS - 1] + "…"


def _span(low: int, high: int) -> str:
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"


def confusion(found: Confusion) -> go.Figure:
    """Golds by first answers, coloured by the number of facts on a log scale.

    customdata of every cell with facts: [gold, answer, n, share]; "" for the others.
    """
    golds = [*found.golds, *([""] if len(found.counts) > len(found.golds) else [])]
    answers = [*found.answers, *([""] if found.counts.shape[1] > len(found.answers) else [])]
    n_other = (found.n_golds - len(found.golds), found.n_answers - len(found.answers))
    counts = found.counts
    with np.errstate(divide="ignore"):
        tone = np.where(counts > 0, np.log10(counts), np.nan)
    ticks = [10**power for power in range(int(np.log10(counts.max())) + 1)]
    figure = go.Figure(
        go.Heatmap(
            z=tone,
            text=[[f"{n:,}" if n else "" for n in line] for line in counts],
            texttemplate="%{text}" if len(answers) <= MOST_NUMBERED else "",
            textfont={"color": "white"},
            colorscale=COUNTED,
            zmin=0,
            zmax=max(1.0, float(np.nanmax(tone))),
            xgap=1,
            ygap=1,
            hoverinfo="skip",
            colorbar={
                "title": {"text": "facts"},
                "tickvals": np.log10(ticks),
                "ticktext": [f"{tick:,}" for tick in ticks],
                "thickness": 12,
            },
        )
    )
    # A heat map's cells can't be selected: marks that can't be seen are, in the middle of each.
    rows, columns = np.nonzero(counts)
    share = counts / counts.sum(axis=1, keepdims=True)
    named = [f"{n_other[0]:,} other golds" if not gold else _short(gold) for gold in golds]
    said = [f"{n_other[1]:,} other answers" if not word else _short(word) for word in answers]
    figure.add_trace(
        go.Scatter(
            x=columns,
            y=rows,
            mode="markers",
            marker={"symbol": "square", "size": 16, "opacity": 0},
            selected={"marker": {"opacity": 0}},
            unselected={"marker": {"opacity": 0}},
            customdata=[
                [golds[row], answers[column], int(counts[row, column]), float(share[row, column])]
                for row, column in zip(rows, columns, strict=True)
            ],
            text=[
                f"gold <b>{escape(named[row])}</b><br>first answer <b>{escape(said[column])}</b>"
                for row, column in zip(rows, columns, strict=True)
            ],
            hovertemplate="%{text}<br>%{customdata[2]:,} facts, %{customdata[3]:.1%} of the gold's"
            "<extra></extra>",
            showlegend=False,
        )
    )
    for update, names, title in (
        (figure.update_xaxes, said, "first answer"),
        (figure.update_yaxes, named, "gold"),
    ):
        update(
            tickvals=list(range(len(names))),
            ticktext=[escape(name) for name in names],
            title=title,
            showgrid=False,
        )
    figure.update_xaxes(side="top", tickangle=-45, range=[-0.5, len(answers) - 0.5])
    figure.update_yaxes(range=_rows(golds))
    return figure.update_layout(height=230 + 24 * len(golds), hoverdistance=40)


def precision_by_source(
    table: pd.DataFrame, colours: Colours, *, what: str, percent: bool
) -> go.Figure:
    """`precision_by_relation` with rows of sources, in bold, and their relations under them.

    table: as there, and is_source. customdata: [name, relation], as the table has it.
    """
    is_source = dict(zip(table["label"].map(_short), table["is_source"], strict=True))
    figure = precision_by_relation(table, colours, what=what, percent=percent)
    return figure.update_yaxes(
        tickvals=list(is_source),
        ticktext=[
            f"<b>{escape(label)}</b>" if whole else escape(label)
            for label, whole in is_source.items()
        ],
    )
