"""Charts of pages: what is clicked says what it stands for, and texts of data are texts."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from chart_marks import DARK, LIGHT, Drawn, drawn

from lama_core.metrics.confusion import Confusion
from lama_core.queries.grid import GridCell
from lama_core.rounding import percent
from lama_core.runs.find import RunListing
from lama_core.runs.info import RunInfo
from lama_core.views import vega
from lama_core.views.colours import PALETTE
from lama_core.views.correlations import triangle
from lama_core.views.figure import CHANCE, Axis, Baseline, Figure, said, said_interval
from pages.ui.prompts.ensembles import method_columns
from pages.ui.queries.grid_chart import grid_figure
from pages.ui.shared import figures
from pages.ui.shared.run_choice import pick_runs, run_names, run_titles
from pages.ui.shared.url_state import place_of, title_of
from pages.ui.wrong_answers.answer_scores import OTHER, score_points
from pages.ui.wrong_answers.confusion import cells_of
from tools.bench.made_up import make_runs

COLOURS = {"a": "#2c86c7", "b": "#e0913a"}


def by_relation(names: tuple[str, ...]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"name": name, "relation": relation, "label": f"{relation} label", "value": 0.25,
             "low": 0.2, "high": 0.4, "freq": 0.1, "chance": 0.05, "n": 40}
            for relation in ("P19", "P36")
            for name in names
        ]
    )  # fmt: skip


def bars(
    table: pd.DataFrame, colours: dict[str, str], look: vega.Look = LIGHT, **more: Any
) -> Drawn:
    """The drawn chart of such a table, with both baselines."""
    lines = [
        said(
            f"{line['name']}, {line['label']}",
            f"{percent(line['value'])} %",
            said_interval(line["low"], line["high"]),
            f"{line['n']} facts",
        )
        for line in table.to_dict("records")
    ]
    settings = {"title": "P@1"} | more
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
        **settings,
    )
    return drawn(figure, colours, look)


def test_every_bar_says_its_run_and_relation() -> None:
    chart = bars(by_relation(("a", "b")), COLOURS)
    marks = chart.marks("rect")
    assert [(one["mark"], one["name"], one["ink"]) for one in marks] == [
        (0, "a", COLOURS["a"]), (1, "b", COLOURS["b"]), (2, "a", COLOURS["a"]),
        (3, "b", COLOURS["b"]),
    ]  # fmt: skip
    assert [one["value"] for one in marks] == [25.0] * 4
    assert [(one["low"], one["high"]) for one in chart.marks("rule")] == [(20.0, 40.0)] * 8
    assert marks[0]["said"] == "a, P19 label\n25.0 %\n95 % interval: 20.0 to 40.0\n40 facts"
    assert chart.axis_title("x") == "P@1, % of facts"


def test_correlations_are_written_as_papers_round_them_and_none_is_no_text() -> None:
    names = ["SM", "OM", "P@1"]
    matrix = pd.DataFrame([[1, 0, 0], [0.125, 1, 0], [np.nan, -0.125, 1]], names, names)
    chart = drawn(triangle(matrix, title="r", caption="8 facts"), {})
    cells = [(one["column"], one["at"], one["text"]) for one in chart.marks("text")]
    assert cells == [(0, 0, "0.13"), (1, 1, "-0.13")], "an unknown one isn't drawn"
    assert chart.marks("rect")[0]["said"] == "object mentions with subject mentions: r = 0.125"


WORDS = Confusion(
    pd.DataFrame({"gold": ["<b>", "<b>"], "answer": ["x", "y"], "n": [3, 1]}),
    ("<b>",), ("x",), 2, 3, np.array([[3, 1], [0, 8000]]),
)  # fmt: skip


def test_every_cell_of_golds_by_answers_says_its_words_and_facts() -> None:
    figure = cells_of(WORDS, "words", "")
    chart = drawn(figure, {})
    cells = chart.marks("rect")
    assert [(one["behind"] - 0.48, one["right"] - 0.49) for one in cells] == [
        (0, 0), (0, 1), (1, 1)
    ], "no cell without facts"  # fmt: skip
    rows = [figures.mark_of(figure, [{"mark": one["mark"]}]) or {} for one in cells]
    assert [(row["gold"], row["answer"]) for row in rows] == [("<b>", "x"), ("<b>", ""), ("", "")]
    assert [one["said"].splitlines() for one in cells] == [
        ["right answer <b>", "first answer x", "3 facts, 75.0 % of this right answer's"],
        ["right answer <b>", "first answer 2 others",
         "1 fact, 25.0 % of this right answer's"],
        ["right answer 1 other right answers", "first answer 2 others",
         "8,000 facts, 100.0 % of this right answer's"],
    ]  # fmt: skip
    assert chart.parameter("words") == ["x", "2 others"]
    assert chart.axis("x")["orient"] == "top"


def test_words_of_a_grid_whose_rank_is_unknown_have_no_colour_but_can_be_clicked() -> None:
    def cell(sentence: int, rank: int | None, prob: float | None) -> GridCell:
        return GridCell(sentence, "t", "<w>", rank, prob, None, 1, None)

    rows = [(cell(0, 1, 1.0), cell(1, None, None)), (cell(0, 20, 1e-4), cell(1, 2, 0.01))]
    probs, numbers = ["1.000", "", "<\N{NO-BREAK SPACE}0.001", "0.010"], ["1", "", "20", "2"]
    for by_rank, words in ((False, probs), (True, numbers)):
        figure = grid_figure(rows, ["same", "same"], "m", top_k=10, by_rank=by_rank)
        chart = drawn(figure, {})
        cells = chart.marks("rect")
        first, last = cells[0]["ink"], cells[3]["ink"]
        assert [one["ink"] for one in cells[:2]] == ["#5ba4e3", "transparent"]
        assert first != last and cells[1]["said"] == "same\n<w>: not among the first 100"
        assert [one["mark"] for one in cells] == [0, 1, 2, 3]
        weights = {layer["mark"]["fontWeight"]: [one["text"] for one in layer["data"]["values"]]
                   for layer in chart.layers("text")}  # fmt: skip
        assert weights == {"normal": words[1:3], "bold": [words[0], words[3]]}
        assert chart.parameter("words") == ["same", "same"], "one column each"


@pytest.mark.parametrize("look", [LIGHT, DARK])
def test_texts_can_be_read_and_whiskers_are_seen_on_every_bar_and_page(look: vega.Look) -> None:
    chart = bars(by_relation(("a",)), {"a": PALETTE[0]}, look)
    edge, core = (layer["mark"] for layer in chart.layers("rule"))
    assert core["strokeWidth"] < edge["strokeWidth"]
    for under in (*PALETTE, look.page):
        assert max(contrast(one["color"], under) for one in (core, edge)) >= 3
        if look == LIGHT and under != look.page:
            assert contrast(core["color"], under) >= 3, "the edge has gone, the line is still there"
    config = chart.spec["config"]
    inks = [config["axis"]["labelColor"], config["axis"]["titleColor"], config["title"]["color"]]
    for ink in (*inks, config["legend"]["labelColor"], config["title"]["subtitleColor"]):
        assert contrast(ink, look.page) >= 4.5


def test_a_clicked_mark_is_a_row_of_plain_numbers() -> None:
    # A number of numpy can't be compared with (), as the filter of the facts behind a mark does.
    axis, frame = Axis(column="k", title="k"), pd.DataFrame({"k": [1, 2]})
    made = Figure(shape="points", frame=frame, by=axis, value=axis, names={}, title="", caption="")
    row = figures.mark_of(made, [{"mark": 1}])
    assert row == {"k": 2} and type(row["k"]) is int
    for picked in (None, [], [{}], [{"mark": 2}], [{"mark": "1"}]):
        assert figures.mark_of(made, picked) is None


TEXTS = ("<b>P19</b>", "datum.value", "a' + alert(1) + '", '"\\n"', "a ? b : c")


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_of_data_is_shown_as_text(text: str) -> None:
    table = by_relation(("a", "b")).assign(label=text)
    table["name"] = table["name"].map({"a": "a", "b": text})
    chart = bars(table, {"a": "#2c86c7", text: "#e0913a"}, title=f"P@1 of {text}")
    assert chart.title == f"P@1 of {text}"
    assert chart.parameter("names") == [text] and chart.parameter("keys")[1] == text
    assert chart.marks("rect")[1]["said"].startswith(f"{text}, {text}\n")
    scene = json.dumps(vega_scene(chart))
    assert json.dumps(text)[1:-1] in scene


def vega_scene(chart: Drawn) -> Any:
    """What is drawn, on a page of 600 pixels."""
    import vl_convert

    spec = chart.spec
    return vl_convert.vegalite_to_scenegraph(json.dumps({**spec, "width": 600}))


def contrast(one: str, other: str) -> float:
    """Of two colours as #rrggbb, by WCAG 2."""

    def light(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return float(np.dot([0.2126, 0.7152, 0.0722], linear))

    dark, bright = sorted((light(one), light(other)))
    return (bright + 0.05) / (dark + 0.05)


def test_a_box_has_its_quartiles_whiskers_and_mean() -> None:
    box = {"n": 9, "low": 1, "q1": 2, "median": 3, "q3": 4, "high": 9, "mean": 4, "who": "a"}
    figure = Figure(
        frame=pd.DataFrame([box]).assign(run="a", said="a"), names={"a": "a"}, title="",
        shape="boxes", by=Axis(column="who", title="model"),
        value=Axis(column="mean", title="rank", log=True), low="low", high="high",
    )  # fmt: skip
    chart = drawn(figure, COLOURS)
    assert chart.spec["background"] == "transparent"
    (body,), (mean,) = chart.marks("rect"), chart.marks("point")
    assert (body["q1"], body["q3"], mean["value"]) == (2, 4, 4)
    whiskers = [layer["data"]["values"][0] for layer in chart.layers("rule")]
    assert {(one.get("low"), one.get("q1")) for one in whiskers} >= {(1, 2)}
    assert {(one.get("q3"), one.get("high")) for one in whiskers} >= {(4, 9)}


def test_a_model_is_shown_by_its_run_on_most_facts(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    first = make_runs(tmp_path_factory.mktemp("a"), n_relations=2, n_facts=50)
    second = make_runs(tmp_path_factory.mktemp("b"), n_relations=2, n_facts=90)
    listing = RunListing(tuple(run.info for run in (*first, *second)))
    picked = pick_runs(list(listing), "made-up", "manual")
    assert {run.n + run.n_excluded for run in picked.values()} == {90}
    backwards = pick_runs([*listing][::-1], "made-up", "manual")
    assert list(backwards) == list(picked) == sorted(picked, key=place_of)
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


def test_a_chance_level_that_can_be_told_from_0_is_marked_once_a_relation() -> None:
    table = by_relation(("a", "b")).assign(freq=np.nan)
    chart = bars(table, COLOURS)
    edge, core = chart.layers("point")
    marks = core["data"]["values"]
    assert edge["data"] == core["data"] and CHANCE.name in chart.keys
    assert [(one["line"], one["mark"]) for one in marks] == [(5.0, 0), (5.0, 2)]
    assert "said" in marks[0], "a click and a tooltip"
    for unseen in (0.0009, float("nan")):
        assert CHANCE.name not in bars(table.assign(chance=unseen), COLOURS).parameter("keys")


def test_answers_are_at_their_scores_and_the_gold_is_marked() -> None:
    table = pd.DataFrame(
        {
            "word": ["Rome", "<b>Paris</b>", "Oslo"],
            "score": [-1.0, -2.0, -5.0],
            "prob": [0.7, 0.25, 0.05],
            "mark": ["", "gold", "also right"],
        }
    )
    chart = drawn(score_points(table, "scores"), {"right answer": "#2c86c7"})
    points = sorted(chart.marks("point"), key=lambda one: int(one["at"]))
    assert [(one["value"], one["name"]) for one in points] == [
        (-1.0, OTHER), (-2.0, "right answer"), (-5.0, "also right")
    ]  # fmt: skip
    assert [one["face"] == "#ffffff" for one in points] == [True, False, True], "only gold is full"
    assert chart.parameter("names") == ["Rome", "<b>Paris</b>", "Oslo"]
    assert "indexof([1, 2]" in chart.axis("y")["labelFontWeight"]["condition"]["test"]
    assert points[1]["said"] == (
        "<b>Paris</b>, right answer\nrank 2, score -2.00\n25.0 % of the answers' softmax"
    )


def test_columns_of_methods_have_numbers_above_their_whiskers_and_published_ones() -> None:
    rows = pd.DataFrame(
        {"title": ["Top1", "Oracle"], "value": [40.0, 60.0], "low": [30.0, 50.0],
         "high": [50.0, 70.0], "published": [31.5, np.nan], "facts": 100}
    )  # fmt: skip
    names = {"ours": "m", "published": "BERT (published)"}
    chart = drawn(
        method_columns(rows, names, "P@1, %", title="t", caption="c"), {"ours": "#2c86c7"}
    )
    numbers = [(one["text"], one["end"]) for one in chart.marks("text")]
    assert numbers == [("40.0", 50), ("60.0", 70), ("31.5", 31.5)]
    columns = [one["said"].splitlines() for one in chart.marks("rect")]
    assert columns == [
        ["Top1: 40.0 %", "95 % interval: 30.0 to 50.0", "100 test facts"],
        ["Oracle: 60.0 %", "95 % interval: 50.0 to 70.0", "100 test facts"],
        ["Top1, published: 31.5 %"],
    ]
    assert {one["name"] for one in chart.marks("rule")} == {"m"}
