"""Charts and exports: what is clicked says what it stands for, and what is taken says how made."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
from plotly import io

from lama_core.metrics.confusion import Confusion
from lama_core.rounding import percent
from lama_core.runs.find import RunListing
from lama_core.runs.info import RunInfo
from lama_core.views.colours import PALETTE
from lama_core.views.correlations import triangle
from lama_core.views.figure import (
    CHANCE,
    Axis,
    Baseline,
    Figure,
    relation_label,
    said,
    said_interval,
)
from lama_core.views.margins import margins
from lama_core.views.ranks import ranks
from lama_core.views.view import Shown, show_runs
from pages.ui.shared import charts, figures
from pages.ui.shared.plotly_chart import PlotlyChart, UncheckedFigure
from pages.ui.shared.run_choice import pick_runs, run_names, run_titles
from pages.ui.shared.url_state import title_of
from tools.bench.made_up import make_runs

COLOURS = {"a": "#2c86c7", "b": "#e0913a"}


def chart(*traces: dict[str, Any], **layout: Any) -> PlotlyChart:
    """A chart with these traces."""
    made = PlotlyChart()
    for trace in traces:
        made.add(**trace)
    return made.update(**layout)


PLAIN = PlotlyChart.unchecked.fget  # as users have it; see `conftest.charts_are_checked`
BAR = {"kind": "bar", "x": [1]}


def by_relation(names: tuple[str, ...]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"name": name, "relation": relation, "label": f"{relation} label", "value": 0.25,
             "low": 0.2, "high": 0.4, "freq": 0.1, "chance": 0.05, "n": 40}
            for relation in ("P19", "P36")
            for name in names
        ]
    )  # fmt: skip


def bars(table: pd.DataFrame, colours: dict[str, str], **more: Any) -> go.Figure:
    """The drawn chart of such a table, with both baselines."""
    return chart_of(table, colours, **more).figure


def chart_of(table: pd.DataFrame, colours: dict[str, str], **more: Any) -> PlotlyChart:
    lines = [
        said(
            f"{line['name']}, {line['label']}",
            f"{percent(line['value'])} %",
            said_interval(line["low"], line["high"]),
            f"{line['n']} facts",
        )
        for line in table.to_dict("records")
    ]
    figure = Figure(
        shape="bars",
        frame=table.assign(said=lines),
        by=Axis(column="label", title="relation"),
        value=Axis(column="value", title="P@1, % of facts", share=True),
        series="name",
        names={name: name for name in colours},
        low="low",
        high="high",
        baselines=(Baseline(column="freq", name="Freq", mark="tick"), CHANCE),
        title="P@1",
        **more,
    )
    return figures.plot(figure, colours)


def test_every_bar_says_its_run_and_relation() -> None:
    figure = bars(by_relation(("a", "b")), COLOURS)
    drawn = [trace for trace in figure.data if trace.type == "bar" and trace.hoverinfo != "skip"]
    assert [list(bar.customdata[1]) for bar in drawn] == [[2], [3]]  # rows of the table
    assert drawn[0].marker.color == COLOURS["a"]
    assert list(drawn[0].x) == [25.0, 25.0]
    whiskers = [trace.error_x for trace in figure.data if trace.error_x.color == charts.DARK]
    np.testing.assert_allclose(whiskers[0].array, [15.0, 15.0])
    assert drawn[0].hovertext[0] == (
        "<b>a, P19 label</b><br>25.0 %<br>95 % interval: 20.0 to 40.0<br>40 facts"
    )
    assert figure.layout.xaxis.title.text == "P@1, % of facts"


def test_a_source_stands_in_bold_above_its_relations() -> None:
    table = by_relation(("a", "b"))
    whole = table[table["relation"] == "P19"].assign(label="<i>x</i>, 2 relations")
    figure = bars(pd.concat([whole, table]), COLOURS, bold=frozenset({"<i>x</i>, 2 relations"}))
    assert figure.layout.yaxis.ticktext == (
        "<b>&lt;i&gt;x&lt;/i&gt;, 2 relations</b>", "P19 label", "P36 label"
    )  # fmt: skip


def test_long_names_take_three_lines_and_longer_ones_are_cut_but_stay_apart() -> None:
    long = "a name of more than eighty letters, which are the three lines of thirty letters, "
    table = by_relation(("a",)).assign(label=[f"{long}one", f"{long}two"])
    figure = bars(table, {"a": COLOURS["a"]})
    assert list(figure.layout.yaxis.tickvals) == [f"{long}one", f"{long}two"]
    assert len(set(figure.layout.yaxis.ticktext)) == 1
    assert figure.layout.yaxis.ticktext[0].count("<br>") == 2
    assert list(figure.data[0].y) == [f"{long}one", f"{long}two"]


def test_correlations_are_written_as_papers_round_them_and_none_is_no_text() -> None:
    names = ["SM", "OM", "P@1"]
    matrix = pd.DataFrame([[1, 0, 0], [0.125, 1, 0], [np.nan, -0.125, 1]], names, names)
    cells, marks = figures.plot(triangle(matrix, title="r", caption="8 facts"), {}).figure.data
    assert [list(line) for line in cells.text] == [["0.13", ""], ["", "-0.13"]]
    assert list(marks.hovertext)[1] == "<b>right answer with subject mentions: unknown</b>"


def test_every_cell_of_golds_by_answers_says_its_words_and_facts() -> None:
    pairs = pd.DataFrame({"gold": ["<b>", "<b>"], "answer": ["x", "y"], "n": [3, 1]})
    found = Confusion(pairs, ("<b>",), ("x",), 2, 3, np.array([[3, 1], [0, 8]]))
    cells, right, others, marks = charts.confusion(found).figure.data
    assert not np.isfinite(right.z.astype(float)).any(), "<b> is no answer"
    assert [[bool(np.isfinite(z)) for z in line] for line in others.z] == [
        [False, True],
        [False, True],
    ]
    assert [list(mark) for mark in marks.customdata] == [["<b>", "x"], ["<b>", ""], ["", ""]]
    assert np.isnan(cells.z[1][0]) and cells.z[0][0] == np.log10(3)
    first, second, third = marks.hovertext
    assert "&lt;b&gt;" in first and "3 facts, 75.0 %" in first and "1 facts, 25.0 %" in second
    assert "1 other right answers" in third and "8 facts, 100.0 %" in third
    assert "<b>2 other answers</b>" in second


def test_rows_whose_first_name_is_a_number_are_all_drawn() -> None:
    table = pd.DataFrame(
        {
            "row": ["1", "2 to 5"], "ahead": ["b", "a"], "said": ["1", "2 to 5"],
            "difference": [0.1, -0.1], "low": [0.0, -0.2], "high": [0.2, 0.0], "unsure": True,
        }
    )  # fmt: skip
    figure = figures.plot(
        Figure(
            shape="points", frame=table, by=Axis(column="row", title="slice"),
            value=Axis(column="difference", title="B minus A", share=True), series="ahead",
            names={"b": "b ahead", "a": "a ahead"}, low="low", high="high", zero=0.0,
            hollow="unsure", hollow_name="open", title="differences",
        ),
        {"a": "#2c86c7", "b": "#1aa179"},
    ).figure  # fmt: skip
    assert [list(trace.y) for trace in figure.data[:4:2]] == [["1"], ["2 to 5"]]
    keys = {one.name: one.marker.symbol for one in figure.data if one.showlegend is not False}
    assert keys == {"b ahead": None, "a ahead": None, "open": "circle-open"}
    assert figure.layout.yaxis.type == "category"  # else Plotly infers numbers from the first trace


def test_a_narrow_confusion_matrix_has_short_names() -> None:
    pairs = pd.DataFrame({"gold": ["x"], "answer": ["y"], "n": [3]})
    found = Confusion(pairs, ("x",), ("y",), 2, 3, np.array([[3, 1], [0, 8]]))
    figure = charts.confusion(found, narrow=True).figure
    assert figure.layout.xaxis.ticktext == ("y", "others") and not figure.data[0].showscale


def test_many_runs_are_points_on_one_line_a_relation() -> None:
    names = tuple("abcd")
    colours = dict.fromkeys(names, "#2c86c7")
    figure = bars(by_relation(names), colours)
    assert {trace.type for trace in figure.data} == {"scatter"}


@pytest.mark.parametrize("under", [*PALETTE, "#ffffff", "#12161c"])
def test_whiskers_are_seen_on_every_bar_and_page(under: str) -> None:
    figure = bars(by_relation(("a",)), {"a": PALETTE[0]})
    edge, core = (trace.error_x for trace in figure.data if trace.error_x.array is not None)
    assert core.thickness < edge.thickness and list(core.array) == list(edge.array)
    assert max(contrast(core.color, under), contrast(edge.color, under)) >= 3
    if under in PALETTE:
        assert contrast(core.color, under) >= 3, "the edge has gone, the line is still there"


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[go.Figure]:
    """The figures that were shown."""
    found: list[go.Figure] = []

    class Event:
        class selection:
            points: tuple[dict[str, str], ...] = ()

    def draw(figure: UncheckedFigure, **_: object) -> type[Event]:
        found.append(go.Figure(figure.to_dict()))
        return Event

    monkeypatch.setattr(charts.st, "plotly_chart", draw)
    return found


def test_a_title_of_several_lines_begins_where_a_single_one_does(drawn: list[go.Figure]) -> None:
    for title in ("Short", "Long enough to take two lines" + " of at most ninety letters each" * 3):
        charts.draw_chart(chart(BAR), "key", title=title)
    one, two = (figure.layout for figure in drawn)
    assert (one.title.text.count("<br>"), two.title.text.count("<br>")) == (0, 1)
    # Plotly writes a single line 0.7 of its 14 pixels below the place, several from the place on.
    assert two.title.pad.t == pytest.approx(one.title.pad.t + 0.7 * 14)
    # Below it there is room for both lines, of 1.3 * 14 pixels each.
    assert two.margin.t >= two.title.pad.t + 1.3 * 14


def test_a_chart_of_one_model_has_its_title_once(drawn: list[go.Figure]) -> None:
    """Bars with intervals are two traces, and two traces have a legend unless it is forbidden."""
    table = by_relation(("a",)).assign(freq=np.nan, chance=np.nan)
    made = chart_of(table, {"a": "#2c86c7"})
    assert len(made.data) > 1
    charts.draw_chart(made, "key", title="P@1 of a")
    (layout,) = (figure.layout for figure in drawn)
    assert layout.title.text == "<b>P@1 of a</b>"
    assert layout.showlegend is False


def test_large_letters_are_large_in_a_chart_too(drawn: list[go.Figure]) -> None:
    for made in (chart(BAR), chart(BAR, BAR)):
        charts.draw_chart(made, "key", title="P@1", footnote="a run", enlarged=1.5)
    one, two = (figure.layout for figure in drawn)
    assert one.title.font.size == two.title.font.size == 1.5 * 14
    assert one.xaxis.tickfont.size == two.yaxis.title.font.size == two.legend.font.size == 1.5 * 12
    assert "font-size:16.5px" in one.xaxis.title.text and one.height > 1.5 * 400


def test_a_long_footnote_takes_lines_that_a_picture_has_room_for(drawn: list[go.Figure]) -> None:
    run = "starter-a_model-manual-982bb2ed6d-" + 60 * "a"
    for orientation, footnote in (("h", run), ("h", f"{run}, {run}"), ("v", f"{run}, {run}")):
        made = chart({**BAR, "orientation": orientation}, xaxis_title="facts")
        charts.draw_chart(made, "key", title="P@1", footnote=footnote)
    one, two, three = (figure.layout for figure in drawn)
    first, second = (layout.annotations[0].text for layout in (one, two))
    assert f">{run}</span>" in first and f">{run},<br>{run}</span>" in second
    assert two.margin.b - one.margin.b == two.height - one.height == 15
    text = three.xaxis.title.text
    assert text.startswith("facts<br>") and f"{run},<br>{run}" in text


def test_properties_are_nested_and_others_kept() -> None:
    made = chart({**BAR, "marker_line_width": 2, "error_x": {"array": [1]}}, xaxis_title="facts")
    made.update(xaxis={"title": {"font_size": 9}, "range": [0, 1]}, plot_bgcolor="#fff")
    assert made.data == [
        {"type": "bar", "x": [1], "marker": {"line": {"width": 2}}, "error_x": {"array": [1]}}
    ]
    axis = {"title": {"text": "facts", "font": {"size": 9}}, "range": [0, 1]}
    assert made.layout == {"xaxis": axis, "plot_bgcolor": "#fff"}
    without_title = made.update(yaxis_title=None, xaxis_title_text=None)
    assert without_title.figure.layout.xaxis.title.text is None
    with pytest.raises(ValueError, match="Invalid property"):
        _ = chart({**BAR, "marker_size": 3}).figure


def test_a_chart_is_sent_as_plotly_would_send_it() -> None:
    made = chart_of(by_relation(("a", "b")), COLOURS)
    sent, checked = io.from_json(io.to_json(PLAIN(made).to_dict(), validate=False)), made.figure
    assert sent.layout == checked.layout and sent.layout.template == checked.layout.template
    for one, other in zip(sent.data, checked.data, strict=True):
        assert [list(one[name]) for name in "xy"] == [list(other[name]) for name in "xy"]
        assert (one.marker, one.type, one.name) == (other.marker, other.type, other.name)


def test_a_clicked_mark_is_a_row_of_plain_numbers() -> None:
    # A number of numpy can't be compared with (), as the filter of the facts behind a mark does.
    axis, frame = Axis(column="k", title="k"), pd.DataFrame({"k": [1, 2]})
    made = Figure(shape="points", frame=frame, by=axis, value=axis, names={}, title="", caption="")
    row = figures.mark_of(made, [{"customdata": [1]}])
    assert row == {"k": 2} and type(row["k"]) is int


def test_a_title_of_data_is_shown_as_text(drawn: list[go.Figure]) -> None:
    table = by_relation(("a", "b")).assign(label="<b>P19</b>")
    for colours in (COLOURS, {"a": COLOURS["a"]}):
        made = chart_of(table, colours)
        made.data = made.data[: 3 * len(colours)]
        assert charts.draw_chart(made, "key", title="P@1 of <i>x</i>") == []
    alone, both = drawn[1].layout, drawn[0].layout
    assert both.title.text == alone.title.text == "<b>P@1 of &lt;i&gt;x&lt;/i&gt;</b>"
    assert set(alone.yaxis.ticktext) == {"&lt;b&gt;P19&lt;/b&gt;"}
    assert drawn[0].data[0].hovertext[0].startswith("<b>a, &lt;b&gt;P19&lt;/b&gt;</b><br>")


def contrast(one: str, other: str) -> float:
    """Of two colours as #rrggbb, by WCAG 2."""

    def light(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return float(np.dot([0.2126, 0.7152, 0.0722], linear))

    dark, bright = sorted((light(one), light(other)))
    return (bright + 0.05) / (dark + 0.05)


def drawn_with(frame: pd.DataFrame, **more: Any) -> go.Figure:
    """A figure of the run `a` with its marks."""
    figure = Figure(frame=frame.assign(run="a", said="a"), names={"a": "a"}, title="", **more)
    return figures.plot(figure, COLOURS).figure


def test_the_sizes_of_a_reliability_diagram_stand_in_its_legend() -> None:
    bins = pd.DataFrame({"n": [1500, 20], "confidence": [0.05, 0.1], "accuracy": [0.1, 0.2]})
    figure = drawn_with(
        bins, shape="lines", by=Axis(column="confidence", title=""),
        value=Axis(column="accuracy", title=""), size="n", diagonal="perfect calibration",
    )  # fmt: skip
    sizes = {trace.name: trace.marker.size for trace in figure.data[-2:]}
    assert list(sizes) == ["100 facts", "1,000 facts"]
    assert sizes["1,000 facts"] == pytest.approx(4 + 12 * np.sqrt(1000 / 1500))
    assert figure.data[0].name == "perfect calibration" and list(figure.data[0].y) == [0, 1]
    assert max(figure.data[1].marker.size) == 16


def test_histogram_bins_say_their_ranks(tmp_path_factory: pytest.TempPathFactory) -> None:
    run = make_runs(tmp_path_factory.mktemp("runs"), n_relations=2, n_facts=50)[0]
    shown = show_runs(ranks.view, [run], ranks.request())
    drawn = figures.plot(shown.figure, {}).figure
    assert [mark[0] for mark in drawn.data[0].customdata[:3]] == [0, 1, 2]
    assert drawn.data[0].x[2] == "3–5"
    mark = figures.mark_of(shown.figure, [{"customdata": [2]}])
    assert mark is not None
    found = shown.facts(mark)
    assert found is not None and (found.filter["rank_min"], found.filter["rank_max"]) == (3, 5)


def test_backgrounds_are_clear_and_texts_left_to_the_theme() -> None:
    box = {"n": 9, "low": 1, "q1": 2, "median": 3, "q3": 4, "high": 9, "mean": 4, "who": "a"}
    figure = drawn_with(
        pd.DataFrame([box]), shape="boxes", by=Axis(column="who", title="model"),
        value=Axis(column="mean", title="rank", log=True), low="low", high="high",
    )  # fmt: skip
    assert figure.layout.font.color is None
    assert figure.data[0].lowerfence == (1,) and figure.data[0].upperfence == (9,)


@pytest.mark.parametrize(("theme", "page"), (("light", "#ffffff"), ("dark", "#12161c")))
def test_the_texts_of_axes_can_be_read(
    drawn: list[go.Figure], monkeypatch: pytest.MonkeyPatch, theme: str, page: str
) -> None:
    monkeypatch.setattr(charts, "theme", lambda: theme)
    cells = {"kind": "heatmap", "z": [[1]], "colorbar": {"title": "n"}}
    charts.draw_chart(chart(BAR, BAR, cells), "key", title="P@1")
    (layout,), scale = [figure.layout for figure in drawn], drawn[0].data[2].colorbar
    for part in (layout.xaxis, layout.yaxis, scale):
        assert contrast(part.tickfont.color, page) >= 4.5
        assert contrast(part.title.font.color, page) >= 4.5
    assert contrast(layout.legend.font.color, page) >= 4.5


def test_a_model_is_shown_by_its_run_on_most_facts(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    first = make_runs(tmp_path_factory.mktemp("a"), n_relations=2, n_facts=50)
    second = make_runs(tmp_path_factory.mktemp("b"), n_relations=2, n_facts=90)
    listing = RunListing(tuple(run.info for run in (*first, *second)))
    picked = pick_runs(list(listing), "made-up", "manual")
    assert {run.n + run.n_excluded for run in picked.values()} == {90}
    assert pick_runs(list(listing), "made-up", "negated") == {}


def test_runs_of_one_model_are_told_apart(tmp_path_factory: pytest.TempPathFactory) -> None:
    info = make_runs(tmp_path_factory.mktemp("a"), n_relations=2, n_facts=50)[0].info
    other = RunInfo(**{**{f: getattr(info, f) for f in info.__dataclass_fields__},
                       "prompts": "negated"})  # fmt: skip
    assert run_names([info]) == (info.model,)
    assert run_names([other]) == (f"{info.model} negated",), "no P@1 without what was asked"
    assert run_names([info, other]) == (info.model, f"{info.model} negated")
    few = make_runs(tmp_path_factory.mktemp("b"), n_relations=1, n_facts=20)[0].info
    title, relation = title_of(info.model), few.relations[0].name
    none = replace(info.relations[0], name="none", n=0)  # isn't counted
    info = replace(info, relations=(*info.relations, none))
    assert run_titles([info, few, other]) == (
        f"{title}, {info.n} facts of 2 relations",
        f"{title}, {few.n} facts of {relation}",
        f"{title} negated",
    )


def test_a_label_that_repeats_the_name_is_left_out() -> None:
    assert relation_label("place_of_birth", "place of birth") == "place of birth"
    assert relation_label("P19", "place of birth") == "P19 place of birth"


def test_a_chance_level_that_can_be_told_from_0_is_marked_once_a_relation() -> None:
    table = by_relation(("a", "b"))
    figure = bars(table, COLOURS)
    edge, marks = [trace for trace in figure.data if trace.name == CHANCE.name]
    assert (edge.hoverinfo, edge.showlegend, marks.showlegend) == ("skip", False, True)
    assert list(edge.x) == list(marks.x)
    assert list(marks.x) == [5.0, 5.0] and list(marks.y) == ["P19 label", "P36 label"]
    assert [list(one) for one in marks.customdata] == [[0], [2]]
    for unseen in (0.0009, float("nan")):
        figure = bars(table.assign(chance=unseen), COLOURS)
        assert CHANCE.name not in [trace.name for trace in figure.data]


def test_margins_of_wrong_answers_are_striped(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    bins = [(-np.inf, 0.0), (0.0, 2.0), (2.0, np.inf)]
    table = pd.DataFrame(
        [
            {"run": "a", "right": right, "low": low, "high": high, "n": n, "share": n / 8}
            for right, counts in ((True, (0, 3, 1)), (False, (4, 0, 0)))
            for (low, high), n in zip(bins, counts, strict=True)
        ]
    )
    info = make_runs(tmp_path_factory.mktemp("runs"), n_relations=2, n_facts=50)[0].info
    shown = Shown(margins.view, margins.request(), (info,), table, {"a": "a"})
    bars, key = figures.plot(shown.figure, COLOURS).figure.data
    assert list(bars.x) == ["0 to 2", "> 2", "≤ 0"]
    assert list(bars.y) == [100 * 3 / 8, 100 * 1 / 8, 100 * 4 / 8]
    assert list(bars.marker.pattern.shape) == ["", "", "/"] and "wrong" in key.name


def test_bars_of_answers_end_at_their_scores_and_the_gold_is_marked() -> None:
    table = pd.DataFrame(
        {
            "word": ["Rome", "<b>Paris</b>", "Oslo"],
            "score": [-1.0, -2.0, -5.0],
            "prob": [0.7, 0.25, 0.05],
            "mark": ["", "gold", "also right"],
        }
    )
    figure = charts.answer_scores(table, COLOURS["a"]).figure
    ends = {
        trace.name: [trace.base + length for length in trace.x] for trace in figure.data
    }  # fmt: skip
    assert ends == {
        "other answers": pytest.approx([-1.0]), "right answer": pytest.approx([-2.0]),
        "also right": pytest.approx([-5.0]),
    }  # fmt: skip
    assert all(min(trace.x) > 0 for trace in figure.data), "the worst has a bar, too"
    assert list(figure.layout.yaxis.ticktext) == [
        "Rome", "<b>&lt;b&gt;Paris&lt;/b&gt;</b>", "<b>Oslo</b>"
    ]  # fmt: skip
