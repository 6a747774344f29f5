"""Figures as Plotly charts: DataFrame in, chart out, one trace a run in the run's colour.

`customdata` of every mark says what it stands for, so that a click can lead to the facts behind
it. Backgrounds are transparent and texts uncoloured: Streamlit's theme colours them. Whiskers and
marks on bars are dark with a white edge: the one is seen on bars of every colour and on a light
page, the other on a dark one. What comes from data or models is escaped: Plotly reads tags in
texts.
"""

import textwrap
from collections.abc import Mapping, Sequence, Sized
from html import escape
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st
from numpy.typing import NDArray

from lama_core.metrics import Metric
from lama_core.metrics.confusion import Confusion
from lama_core.rounding import fixed, percent

Colours = Mapping[str, str]
CLEAR = "rgba(0,0,0,0)"
FAINT = "rgba(128,128,128,0.25)"
GREY = "#808080"  # three times as light as a dark page, a third as light as a white one
DARK = "#1b2430"
EDGE = "#ffffff"
SCALE = [[0.0, "#a8431f"], [0.5, "#7a838e"], [1.0, "#1f6aa5"]]  # white text is read on all of it
COUNTED = [[0.0, "#7a838e"], [1.0, "#a8431f"]]  # as SCALE, from few to many
MOST_NUMBERED = 24  # columns of a heat map whose cells have room for a number
MOST_LETTERS = 30
MOST_BARS = 3  # more runs than this stand as points on one line a relation
LEAST_CHANCE = 0.001  # below it a mark stands on the axis
LINE = 40  # letters of a title that a telephone has room for, beside the buttons
FOOT = 60  # of a footnote
TITLE_ROW, TITLE_SIZE, TEXT_SIZE, FOOT_SIZE = 22, 14, 12, 10  # pixels
ASCENT = 0.7  # of a letter, by Plotly's reckoning
INTERVAL = "95 % interval"


def show(
    figure: go.Figure,
    key: str,
    *,
    title: str,
    footnote: str = "",
    picture: str = "png",
    counts: str = "facts",
    enlarged: float = 1.0,
) -> list[dict[str, Any]]:
    """Draw a chart; what was clicked, as dictionaries with `customdata`.

    title: above the chart, what a screen reader says, and the picture's file name. footnote: how it
    was made, under the chart and in its picture. counts: what n is of, where it isn't facts.
    enlarged: the size of letters and marks, where 1 is the usual one.
    """
    if counts != "facts":
        for trace in figure.data:
            if trace.hovertemplate:
                trace.hovertemplate = trace.hovertemplate.replace(" facts<", f" {counts}<")
    named = figure.layout.showlegend is not False and (
        sum(trace.showlegend is not False for trace in figure.data) > 1
    )
    under = _wrapped(footnote if len(footnote) < 160 else footnote[:157] + "...", FOOT)
    below = round(enlarged * (22 + 1.3 * FOOT_SIZE * len(under))) if under else 0
    room = _add_title(figure, title, named, enlarged)
    figure.update_layout(
        paper_bgcolor=CLEAR,
        plot_bgcolor=CLEAR,
        modebar={"bgcolor": CLEAR, "color": GREY, "activecolor": _ink()},
        margin={
            "l": 8, "r": 12, "t": room + (40 if named else 8), "b": round(40 * enlarged) + below
        },
        height=enlarged * (figure.layout.height or 400) + room + below,
        barcornerradius=2,
        hoverlabel={"align": "left"},
        dragmode=False,
    )  # fmt: skip
    figure.update_xaxes(zeroline=False, gridcolor=FAINT, automargin=True)
    figure.update_yaxes(zeroline=False, gridcolor=FAINT, automargin=True)
    if enlarged != 1:
        font = {"size": enlarged * TEXT_SIZE}
        figure.update_layout(legend={"font": font}, hoverlabel={"font": font})
        figure.update_xaxes(tickfont=font, title={"font": font})
        figure.update_yaxes(tickfont=font, title={"font": font})
    if under:
        figure.add_annotation(
            text="<br>".join(map(escape, under)), showarrow=False, align="right",
            x=1, y=0, xref="paper", yref="paper", xanchor="right", yanchor="top",
            yshift=-58 * enlarged, font={"size": enlarged * FOOT_SIZE, "color": "gray"},
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


def _wrapped(text: str, letters: int) -> list[str]:
    return textwrap.wrap(text, letters, break_on_hyphens=False)


def _add_title(figure: go.Figure, title: str, named: bool, enlarged: float) -> int:
    """Put a chart's title at its top left, over its legend if it has one; the pixels it takes."""
    lines = _wrapped(title, LINE) or [""]
    size = enlarged * TITLE_SIZE
    heading = {
        "text": f"<b>{'<br>'.join(map(escape, lines))}</b>", "font": {"size": size, "color": _ink()}
    }  # fmt: skip
    if named:  # Plotly gives a legend as many rows as it takes, and its title stands on them
        figure.update_layout(
            title=None,
            legend={
                "orientation": "h", "x": 0, "xref": "container", "y": 1, "yref": "container",
                "yanchor": "top", "titleclick": False, "title": heading | {"side": "top"},
            },
        )  # fmt: skip
    else:
        figure.update_layout(
            showlegend=False,
            title=heading | {
                "x": 0, "xref": "container", "pad": {"l": 2}, "y": 1, "yref": "container",
                "yanchor": "top", "xanchor": "left",
            },
        )  # fmt: skip
        # The first of several lines Plotly puts onto the place that a single one stands under.
        figure.layout.title.pad.t = 4 if len(lines) == 1 else 4 + ASCENT * size
    return round(enlarged * TITLE_ROW * len(lines))


def whiskers(
    values: Any, low: Any, high: Any, *, colour: str = GREY, thickness: float = 1.3, width: int = 3
) -> dict[str, Any]:
    """Error bars from low to high around some values, on any background without a bar."""
    values, low, high = (np.asarray(one, dtype=float) for one in (values, low, high))
    return {
        "type": "data", "array": high - values, "arrayminus": values - low,
        "thickness": thickness, "width": width, "color": colour,
    }  # fmt: skip


def add_bars(figure: go.Figure, low: Any, high: Any, *, name: str, **bar: Any) -> None:
    """A trace of lying bars with whiskers, in a group of its own.

    Two traces in one place: the bars with the whiskers' white edge, then the whiskers.
    """
    group = {"offsetgroup": name, "legendgroup": name, "orientation": "h"}
    if not np.isfinite(np.asarray(high, dtype=float)).any():
        figure.add_trace(go.Bar(name=name, **group, **bar))
        return
    edge = whiskers(bar["x"], low, high, colour=EDGE, thickness=4, width=4)
    figure.add_trace(go.Bar(name=name, error_x=edge, **group, **bar))
    core = whiskers(bar["x"], low, high, colour=DARK, thickness=1.5, width=3)
    clear = {"color": CLEAR, "line": {"width": 0}}
    figure.add_trace(
        go.Bar(
            x=bar["x"], y=bar["y"], marker=clear, error_x=core, hoverinfo="skip", showlegend=False,
            **group,
        )
    )  # fmt: skip


def add_marks(
    figure: go.Figure,
    *,
    name: str,
    symbol: str,
    size: int,
    legend: bool = True,
    place: Mapping[str, Any],
    **said: Any,
) -> None:
    """A trace of open marks that are seen on bars and pages.

    Two traces in one place, as in `add_bars`; in the legend is the one that the page shows. place:
    where they stand. said: what is said of them.
    """  # fmt: skip
    dark = st.context.theme.type == "dark"
    for ink, width, more in ((EDGE, 5, {"hoverinfo": "skip"}), (DARK, 2, said)):
        marker = {"symbol": symbol, "size": size, "color": ink, "line": {"width": width}}
        figure.add_trace(
            go.Scatter(
                mode="markers", name=name, marker=marker, legendgroup=name,
                showlegend=legend and dark == (ink == EDGE), **place, **more,
            )
        )  # fmt: skip


def precision_by_relation(
    table: pd.DataFrame, colours: Colours, *, what: str, metric: Metric
) -> go.Figure:
    """A value by relation with intervals: bars for a few runs, points on a line for more.

    table: name (of the run), relation, label, value, low, high (NaN for none), freq, chance, n;
    relations in the order of the table. Chance is marked where it can be told from 0. what: the
    figure's name. customdata: [name, relation].
    """
    figure = go.Figure()
    bars = len(colours) <= MOST_BARS
    scale = 100 if metric.is_share else 1
    sign = " %" if metric.is_share else ""
    table = table.assign(label=[_short(label) for label in table["label"]])
    labels = list(dict.fromkeys(table["label"]))
    for name, colour in colours.items():
        part = table[table["name"] == name]
        value, low, high = (scale * part[end].to_numpy() for end in ("value", "low", "high"))
        said = [
            [
                name,
                line.relation,
                line.n,
                f"{metric.shown(shown)}{sign}",
                ends,
                escape(str(line.label)),
            ]
            for line, shown, ends in zip(
                part.itertuples(),
                part["value"].tolist(),
                _ends(part["low"], part["high"]),
                strict=True,
            )
        ]
        shared: dict[str, Any] = {
            "x": value,
            "y": part["label"],
            "name": escape(name),
            "customdata": said,
            "hovertemplate": f"<b>%{{customdata[5]}}</b><br>{escape(name)}: %{{customdata[3]}}"
            "%{customdata[4]}<br>%{customdata[2]:,} facts<extra></extra>",
        }
        if bars:
            add_bars(figure, low, high, marker_color=colour, **shared)
            continue
        if np.isfinite(high).any():
            edge = whiskers(value, low, high, thickness=3.5, width=3)
            clear = {"color": CLEAR, "size": 1}
            figure.add_trace(
                go.Scatter(
                    x=value, y=part["label"], mode="markers", marker=clear, error_x=edge,
                    hoverinfo="skip", showlegend=False, legendgroup=name,
                )
            )  # fmt: skip
            shared["error_x"] = whiskers(value, low, high, colour=colour, thickness=1.5, width=2)
        marker = {"color": colour, "size": 9, "line": {"width": 1, "color": GREY}}
        figure.add_trace(go.Scatter(mode="markers", marker=marker, legendgroup=name, **shared))
    first = table.drop_duplicates("relation")
    if metric.is_share and first["freq"].notna().any():
        add_marks(
            figure,
            name="Freq baseline",
            symbol="line-ns-open",
            size=11 if bars else 14,
            place={"x": first["freq"] * scale, "y": first["label"]},
            hovertext=first["freq"].map(percent),
            customdata=first.assign(name="", said=first["label"].map(escape))[
                ["name", "relation", "n", "said"]
            ].to_numpy(),
            hovertemplate="<b>%{customdata[3]}</b><br>always the most frequent object: "
            "%{hovertext} %<br>%{customdata[2]:,} facts<extra></extra>",
        )
    guessed = table[table["chance"] >= LEAST_CHANCE].drop_duplicates(["relation", "chance"])
    if metric.is_share and len(guessed):
        add_marks(
            figure,
            name="chance",
            symbol="diamond-open",
            size=8,
            place={"x": guessed["chance"] * scale, "y": guessed["label"]},
            hovertext=guessed["chance"].map(percent),
            customdata=guessed.assign(said=guessed["label"].map(escape))[
                ["name", "relation", "n", "said"]
            ].to_numpy(),
            hovertemplate="<b>%{customdata[3]}</b><br>a random order of the answers: "
            "%{hovertext} %<extra></extra>",
        )
    row = 9 + 13 * len(colours) if bars else 22
    figure.update_layout(height=120 + max(1, len(labels)) * row, bargap=0.28, bargroupgap=0.05)
    _name_rows(figure, labels)
    figure.update_yaxes(title="relation", showgrid=not bars)
    figure.update_xaxes(title=f"{what}, {metric.unit}", rangemode="tozero")
    return figure


def precision_curves(table: pd.DataFrame, colours: Colours, k: int) -> go.Figure:
    """Figure 2: mean P@k against k on a log axis. customdata: [name, k]."""
    figure = go.Figure()
    for name, colour in colours.items():
        part = table[table["name"] == name]
        ends = _ends(part["low"], part["high"])
        counts = part[["k", "n", "n_relations"]].itertuples(index=False)
        figure.add_trace(
            go.Scatter(
                x=part["k"],
                y=100 * part["p_at_k"],
                hovertext=part["p_at_k"].map(percent),
                name=escape(name),
                mode="lines+markers",
                line={"color": colour, "width": 2},
                marker={"size": 5},
                customdata=[
                    [name, at, n, n_relations, said]
                    for (at, n, n_relations), said in zip(counts, ends, strict=True)
                ],
                hovertemplate=f"{escape(name)}<br>P@%{{x}}: %{{hovertext}} %%{{customdata[4]}}"
                "<br>mean over %{customdata[3]} relations, %{customdata[2]:,} facts<extra></extra>",
            )
        )
    for name, colour in colours.items():
        part = table[table["name"] == name]
        guessed = part[part["chance"] >= LEAST_CHANCE]
        if guessed.empty:
            continue
        figure.add_trace(
            go.Scatter(
                x=guessed["k"],
                y=100 * guessed["chance"],
                hovertext=guessed["chance"].map(percent),
                name=f"{escape(name)}, chance",
                mode="lines",
                line={"color": colour, "width": 1.5, "dash": "dot"},
                customdata=[[name, at] for at in guessed["k"]],
                hovertemplate=f"{escape(name)}<br>a random order: P@%{{x}} %{{hovertext}} %"
                "<extra></extra>",
            )
        )
    if k > 1:
        figure.add_vline(x=k, line={"color": GREY, "width": 1, "dash": "dot"})
    figure.update_xaxes(
        type="log", title="k: best answers that are counted (log axis)",
        tickvals=[1, 2, 5, 10, 20, 50, 100], range=[-0.03, 2.03],
    )  # fmt: skip
    figure.update_yaxes(title="mean P@k, % of facts", range=[0, 101])
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
                hovertext=part["share"].map(percent),
                name=escape(name),
                marker_color=colour,
                customdata=part.assign(all=part["n"].sum())[
                    ["name", "low", "high", "n", "all"]
                ].to_numpy(),
                hovertemplate=f"{escape(name)}<br>rank %{{x}}: %{{customdata[3]:,}} of "
                "%{customdata[4]:,} facts, %{hovertext} %<extra></extra>",
            )
        )
    figure.update_xaxes(title="rank of the gold, 1 = best (log axis)", type="category")
    figure.update_xaxes(showgrid=False)
    figure.update_yaxes(title="share of the facts, %")
    return figure.update_layout(height=380, bargap=0.15)


def rank_boxes(table: pd.DataFrame, colours: Colours, what: str) -> go.Figure:
    """Box plots of ranks by run, on a log axis; the whiskers hold 90% of the facts.

    table: name, n, low, q1, median, q3, high, mean. customdata: [name] of the mean's marks.
    """
    figure = go.Figure()
    known = table[table["median"].notna()]
    for row in known.itertuples():
        figure.add_trace(
            go.Box(
                y=[escape(str(row.name))],
                q1=[row.q1],
                median=[row.median],
                q3=[row.q3],
                lowerfence=[row.low],
                upperfence=[row.high],
                orientation="h",
                name=escape(str(row.name)),
                **box_colours(colours[str(row.name)]),
                showlegend=False,
                hoverinfo="skip",
            )
        )
    figure.add_trace(
        go.Scatter(
            x=known["mean"],
            y=[escape(name) for name in known["name"]],
            mode="markers",
            name="mean",
            marker={
                "symbol": "diamond",
                "size": 11,
                "color": [colours[name] for name in known["name"]],
                "line": {"width": 1.4, "color": _ink()},
            },
            hovertext=[fixed(one, 1) for one in known["mean"]],
            customdata=[
                [name, *(fixed(one, 0) for one in ranks), n]
                for name, *ranks, n in known[
                    ["name", "median", "q1", "q3", "low", "high", "n"]
                ].itertuples(index=False)
            ],
            hovertemplate="%{y}, %{customdata[6]:,} facts"
            "<br>mean %{hovertext}, median %{customdata[1]}"
            "<br>half between %{customdata[2]} and %{customdata[3]}"
            "<br>90 % between %{customdata[4]} and %{customdata[5]}<extra></extra>",
            showlegend=False,
        )
    )
    figure.update_xaxes(type="log", title=f"{what}, 1 = best (log axis)", dtick=1)
    figure.update_yaxes(title="model", range=_rows(known), showgrid=False, ticksuffix="  ")
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
        value, low, high = (100 * part[end].to_numpy() for end in ("value", "low", "high"))
        bar = go.Bar(
            x=part["type"],
            y=value,
            hovertext=part["value"].map(percent),
            name=escape(name),
            offsetgroup=name,
            legendgroup=name,
            marker={"color": colour, "opacity": 0.45},
            customdata=[
                [name, "type", line.type, line.n_relations, line.n, ends]
                for line, ends in zip(
                    part.itertuples(), _ends(part["low"], part["high"]), strict=True
                )
            ],
            hovertemplate=f"{escape(name)}<br>%{{x}}: mean %{{hovertext}} %%{{customdata[5]}}"
            "<br>%{customdata[3]} relations, %{customdata[4]:,} facts<extra></extra>",
        )
        figure.add_trace(bar)
        points = relations[relations["name"] == name]
        ends = _ends(points["low"], points["high"])
        figure.add_trace(
            go.Scatter(
                x=points["type"],
                y=100 * points["value"],
                hovertext=points["value"].map(percent),
                name=escape(name),
                offsetgroup=name,
                legendgroup=name,
                mode="markers",
                showlegend=False,
                marker={"color": colour, "size": 8, "line": {"width": 1, "color": GREY}},
                customdata=[
                    [name, "relation", line.relation, escape(str(line.label)), line.n, said]
                    for line, said in zip(points.itertuples(), ends, strict=True)
                ],
                hovertemplate=f"{escape(name)}<br>%{{customdata[3]}}: %{{hovertext}} %"
                "%{customdata[5]}<br>%{customdata[4]:,} facts<extra></extra>",
            )
        )
        guessed = part[part["chance"] >= LEAST_CHANCE]
        if len(guessed):
            add_marks(
                figure,
                name="chance",
                symbol="diamond-open",
                size=10,
                legend=False,
                place={"x": guessed["type"], "y": 100 * guessed["chance"], "offsetgroup": name},
                hovertext=guessed["chance"].map(percent),
                customdata=[[name, "type", kind] for kind in guessed["type"]],
                hovertemplate=f"{escape(name)}<br>%{{x}}: a random order, mean %{{hovertext}} %"
                "<extra></extra>",
            )
        # Points lie over all bars and what belongs to them: these whiskers are points' too.
        for ink, thickness in ((EDGE, 5.0), (DARK, 2.0)):
            figure.add_trace(
                go.Scatter(
                    x=part["type"], y=value, mode="markers", marker={"color": CLEAR, "size": 1},
                    error_y=whiskers(value, low, high, colour=ink, thickness=thickness, width=5),
                    offsetgroup=name, legendgroup=name, showlegend=False, hoverinfo="skip",
                )
            )  # fmt: skip
    figure.update_xaxes(
        title="type of relation", categoryorder="array", categoryarray=order, showgrid=False
    )
    figure.update_yaxes(title=f"P@{k}, % of facts", rangemode="tozero")
    return figure.update_layout(height=430, bargap=0.3, scattermode="group", scattergap=0.3)


def reliability(table: pd.DataFrame, colours: Colours) -> go.Figure:
    """The reliability diagram. table: name, low, high, n, confidence, accuracy.

    The area of a point grows with its facts; two sizes stand in the legend.
    customdata: [name, low, high].
    """
    figure = go.Figure()
    figure.add_trace(
        go.Scatter(
            x=[0, 1],
            y=[0, 1],
            mode="lines",
            name="as often right as it says",
            line={"color": GREY, "width": 1, "dash": "dash"},
            hoverinfo="skip",
        )
    )
    most = max(1, int(table["n"].max())) if len(table) else 1

    def size(n: Any) -> Any:
        return 4 + 12 * np.sqrt(n / most)  # a legend shows marks of up to 16 pixels

    for name, colour in colours.items():
        part = table[(table["name"] == name) & (table["n"] > 0)]
        figure.add_trace(
            go.Scatter(
                x=part["confidence"],
                y=part["accuracy"],
                hovertext=[
                    f"says {fixed(said, 2)}, is right {fixed(right, 2)}"
                    for said, right in zip(part["confidence"], part["accuracy"], strict=True)
                ],
                name=escape(name),
                mode="lines+markers",
                line={"color": colour, "width": 2},
                marker={"size": size(part["n"])},
                customdata=part[["name", "low", "high", "n"]].to_numpy(),
                hovertemplate=f"{escape(name)}<br>%{{hovertext}}"
                "<br>%{customdata[3]:,} facts<extra></extra>",
            )
        )
    highest = 10 ** int(np.log10(most))
    for n in dict.fromkeys((max(1, highest // 10), highest)):
        figure.add_trace(
            go.Scatter(
                x=[None], y=[None], mode="markers", hoverinfo="skip",
                name=f"{n:,} fact{'' if n == 1 else 's'}",
                marker={"size": float(size(n)), "color": CLEAR,
                        "line": {"width": 1.5, "color": GREY}},
            )
        )  # fmt: skip
    figure.update_xaxes(title="probability of the first answer, 0 to 1", range=[-0.02, 1.02])
    figure.update_yaxes(title="share of right first answers, 0 to 1", range=[-0.02, 1.02])
    return figure.update_layout(height=470)


def correlation_matrix(matrix: pd.DataFrame, n: int | None) -> go.Figure:
    """Figure 3: the lower triangle of a correlation matrix. customdata: [row, column].

    n: facts, None where they are not known.
    """
    names = list(matrix.columns)
    values = matrix.to_numpy(dtype=float).copy()
    values[np.triu_indices(len(names))] = np.nan
    of = "" if n is None else f"<br>{n:,} facts"
    figure = go.Figure(
        go.Heatmap(
            z=values[1:, :-1],
            text=[
                ["" if np.isnan(one) else fixed(one, 2) for one in line] for line in values[1:, :-1]
            ],
            hovertext=[[fixed(one, 3) for one in line] for line in values[1:, :-1]],
            x=names[:-1],
            y=names[1:],
            colorscale=SCALE,
            zmin=-0.6,
            zmax=0.6,
            xgap=2,
            ygap=2,
            colorbar={
                "title": {"text": "Pearson's r", "side": "right"},
                "thickness": 12,
                "tickvals": [-0.6, -0.3, 0, 0.3, 0.6],
                "ticktext": ["≤ −0.6", "−0.3", "0", "0.3", "≥ 0.6"],
                "outlinewidth": 0,
            },
            texttemplate="%{text}",
            textfont={"color": "white"},
            hovertemplate=f"%{{y}} with %{{x}}: r = %{{hovertext}}{of}<extra></extra>",
            hoverongaps=False,
        )
    )
    figure.update_xaxes(title="measure", showgrid=False)
    figure.update_yaxes(title="measure", autorange="reversed", showgrid=False)
    return figure.update_layout(height=400)


def differences(
    table: pd.DataFrame, names: tuple[str, str], colours: Sequence[str], *, k: int, unit: str,
    rows: str = "relation",
) -> go.Figure:  # fmt: skip
    """P@k of B less A by relation, or by other rows, with intervals; the colour says who is ahead.

    table: relation, label, difference, low, high, n, only_a, only_b. unit: what n counts, as
    `facts`. A mark is open where its interval holds 0. customdata: [relation].
    """
    labels = [_short(label) for label in table["label"]]
    sure = (table["low"] > 0) | (table["high"] < 0)
    table = table.assign(label=labels, symbol=np.where(sure, "circle", "circle-open"))
    figure = go.Figure()
    ahead = np.sign(table["difference"].to_numpy())
    kinds = ((f"{names[1]} ahead", 1, colours[1]), (f"{names[0]} ahead", -1, colours[0]),
             ("neither", 0, GREY))  # fmt: skip
    for said, side, colour in kinds:
        part = table[ahead == side]
        if part.empty:
            continue
        value, low, high = (100 * part[end].to_numpy() for end in ("difference", "low", "high"))
        figure.add_trace(
            go.Scatter(
                x=value,
                y=part["label"],
                hovertext=[percent(one, signed=True) for one in part["difference"]],
                mode="markers",
                name=escape(said),
                marker={
                    "size": 10,
                    "color": colour,
                    "symbol": part["symbol"],
                    "line": {"width": 2},
                },
                error_x=whiskers(value, low, high),
                customdata=[
                    [line.relation, line.n, line.only_a, line.only_b, ends, escape(line.label)]
                    for line, ends in zip(
                        part.itertuples(),
                        _ends(part["low"], part["high"], signed=True),
                        strict=True,
                    )
                ],
                hovertemplate="<b>%{customdata[5]}</b>"
                "<br>difference %{hovertext} points%{customdata[4]}"
                f"<br>%{{customdata[1]:,}} {unit}; only A right: %{{customdata[2]:,}}, only B "
                "right: %{customdata[3]:,}<extra></extra>",
                showlegend=True,
            )
        )
    figure.add_trace(
        go.Scatter(
            x=[None], y=[None], mode="markers", name="open: the interval holds 0", hoverinfo="skip",
            marker={"size": 10, "color": GREY, "symbol": "circle-open", "line": {"width": 2}},
        )
    )  # fmt: skip
    figure.add_vline(x=0, line={"color": GREY, "width": 1})
    figure.update_xaxes(title=f"P@{k} of B less A, percentage points")
    _name_rows(figure, labels)
    figure.update_yaxes(title=rows)
    return figure.update_layout(height=120 + 22 * max(1, len(table)))


def words(table: pd.DataFrame, colour: str) -> go.Figure:
    """The words that a run falls back on. table: answer, n, share. customdata: [answer]."""
    figure = go.Figure(
        go.Bar(
            x=table["n"],
            y=[escape(str(word)) for word in table["answer"]],
            orientation="h",
            marker_color=colour,
            customdata=list(
                zip(
                    table["answer"],
                    table["share"],
                    table["n_relations"],
                    [percent(share, 0) for share in table["right_type"]],
                    strict=True,
                )
            ),
            text=[f"{percent(share)} %" for share in table["share"]],
            textposition="outside",
            cliponaxis=False,
            hovertemplate="<b>%{y}</b>: %{x:,} times wrong in %{customdata[2]} relations"
            "<br>an object of the relation in %{customdata[3]} % of them<extra></extra>",
        )
    )
    figure.update_xaxes(title="facts with this wrong first answer")
    figure.update_yaxes(title="answer", type="category", range=_rows(table), showgrid=False)
    figure.update_yaxes(ticksuffix="  ")
    return figure.update_layout(height=90 + 24 * max(1, len(table)))


def margins(table: pd.DataFrame, colours: Colours) -> go.Figure:
    """Facts by margin: each run's right ones above the line, its wrong ones below it.

    table: name, right, low, high (-inf and inf at the ends), n, share. customdata: [name, low,
    high, right] with None for an endless end.
    """
    figure = go.Figure()
    ends = table.drop_duplicates(["low", "high"])
    labels = [_interval(low, high) for low, high in zip(ends["low"], ends["high"], strict=True)]
    for name, colour in colours.items():
        for right in (True, False):
            part = table[(table["name"] == name) & (table["right"] == right) & (table["n"] > 0)]
            if part.empty:
                continue
            said = "right" if right else "wrong"
            figure.add_trace(
                go.Bar(
                    x=[
                        _interval(low, high)
                        for low, high in zip(part["low"], part["high"], strict=True)
                    ],
                    y=100 * part["share"] * (1 if right else -1),
                    hovertext=part["share"].map(percent),
                    name=f"{escape(name)}, {said}",
                    offsetgroup=name,
                    marker={"color": colour, "pattern": {"shape": "" if right else "/"}},
                    customdata=[
                        [name, _finite(low), _finite(high), right, n]
                        for low, high, n in zip(part["low"], part["high"], part["n"], strict=True)
                    ],
                    hovertemplate=f"{escape(name)}, first answer {said}<br>margin %{{x}}: "
                    "%{customdata[4]:,} facts<br>%{hovertext} % of its facts<extra></extra>",
                )
            )
    figure.update_xaxes(
        title="margin: score of the gold less that of the best wrong answer, in nats",
        type="category", categoryorder="array", categoryarray=labels, showgrid=False,
        range=[-0.5, len(labels) - 0.5],
    )  # fmt: skip
    figure.update_yaxes(title="share of the facts, %: right above, wrong below")
    return figure.update_layout(height=420, bargap=0.1)


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _interval(low: float, high: float) -> str:
    """A bin in words: above its lower end, at most its upper one."""
    if not np.isfinite(low):
        return f"≤ {high:.9g}"
    return f"> {low:.9g}" if not np.isfinite(high) else f"{low:.9g} to {high:.9g}"


def answer_scores(table: pd.DataFrame, colour: str) -> go.Figure:
    """All answers to one fact, best first, as bars that begin at the worst of them.

    table: word, score, prob, mark (`gold`, `also right` or empty), best first.
    """
    scores = table["score"].to_numpy(dtype=float)
    span = float(scores.max() - scores.min()) or 1.0
    base = float(scores.min()) - 0.03 * span
    rows = [f"{at:,}" for at in range(1, len(table) + 1)]
    figure = go.Figure()
    marked = {"": (colour, "other answers", 0.35), "gold": (colour, "the gold", 1.0),
              "also right": (colour, "also right", 0.65)}  # fmt: skip
    for mark, (ink, said, opacity) in marked.items():
        part = table[table["mark"] == mark]
        if part.empty:
            continue
        at = np.flatnonzero((table["mark"] == mark).to_numpy())
        figure.add_trace(
            go.Bar(
                x=part["score"] - base,
                base=base,
                y=[rows[one] for one in at],
                orientation="h",
                name=said,
                marker={
                    "color": ink,
                    "opacity": opacity,
                    "line": {"width": 2 if mark else 0, "color": _ink()},
                },
                customdata=[
                    [escape(str(word)), fixed(score, 2), prob, said]
                    for word, score, prob in zip(
                        part["word"], part["score"], part["prob"].map(percent), strict=True
                    )
                ],
                hovertemplate="<b>%{customdata[0]}</b>, %{customdata[3]}<br>rank %{y}, score "
                "%{customdata[1]}<br>%{customdata[2]} % of the answers' softmax<extra></extra>",
            )
        )
    figure.update_xaxes(title="score, in nats (bars begin at the worst answer)")
    figure.update_yaxes(
        title="answer", type="category", categoryorder="array", categoryarray=rows, tickvals=rows,
        ticktext=[
            f"<b>{escape(_short(str(word)))}</b>" if mark else escape(_short(str(word)))
            for word, mark in zip(table["word"], table["mark"], strict=True)
        ],
        range=_rows(rows), showgrid=False, ticksuffix="  ",
    )  # fmt: skip
    return figure.update_layout(height=110 + 20 * len(table), barmode="overlay", bargap=0.2)


def _ends(low: Any, high: Any, *, signed: bool = False) -> list[str]:
    """Intervals of shares as lines of a hover text; empty where there is none."""
    pairs: NDArray[np.float64] = np.column_stack([low, high]).astype(float)
    return [
        f"<br>{INTERVAL}: {' to '.join(percent(end, signed=signed) for end in pair)}"
        if np.isfinite(pair).all()
        else ""
        for pair in pairs.tolist()
    ]


def _ink() -> str:
    """The colour of the page's text, for lines that no bar lies under."""
    theme = "dark" if st.context.theme.type == "dark" else "light"
    return str(st.get_option(f"theme.{theme}.textColor") or DARK)


def box_colours(colour: str) -> dict[str, Any]:
    """Of a box plot: filled with a colour like `#2c86c7`, half transparent, its lines as text."""
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    line = {"color": _ink(), "width": 1.6}
    return {"line": line, "fillcolor": f"rgba({red},{green},{blue},0.5)"}


def _name_rows(figure: go.Figure, labels: Sequence[str]) -> None:
    """Rows from the top in the order of the labels, which are shown as text."""
    figure.update_yaxes(
        categoryorder="array", categoryarray=labels, range=_rows(labels), tickvals=labels,
        ticktext=[escape(label) for label in labels], ticksuffix="  ",
    )  # fmt: skip


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
                [golds[row], answers[column], int(counts[row, column]), percent(share[row, column])]
                for row, column in zip(rows, columns, strict=True)
            ],
            text=[
                f"gold <b>{escape(named[row])}</b><br>first answer <b>{escape(said[column])}</b>"
                for row, column in zip(rows, columns, strict=True)
            ],
            hovertemplate="%{text}<br>%{customdata[2]:,} facts, %{customdata[3]} % of the gold's"
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
    table: pd.DataFrame, colours: Colours, *, what: str, metric: Metric
) -> go.Figure:
    """`precision_by_relation` with rows of sources, in bold, and their relations under them.

    table: as there, and is_source. customdata: [name, relation], as the table has it.
    """
    is_source = dict(zip(table["label"].map(_short), table["is_source"], strict=True))
    figure = precision_by_relation(table, colours, what=what, metric=metric)
    return figure.update_yaxes(
        tickvals=list(is_source),
        ticktext=[
            f"<b>{escape(label)}</b>" if whole else escape(label)
            for label, whole in is_source.items()
        ],
    )
