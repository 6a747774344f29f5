"""Charts and exports: what is clicked says what it stands for, and what is taken says how made."""

import json

import numpy as np
import pandas as pd
import pytest

from lama_core.metrics import rank_histogram
from lama_core.metrics.confusion import Confusion
from lama_core.runs.find import RunListing
from lama_core.runs.info import RunInfo
from pages.ui.shared import charts
from pages.ui.shared.choice import pick_runs, relation_label, run_names
from pages.ui.shared.export import json_of, records_of, to_csv
from tools.bench.pages import make_runs

COLOURS = {"a": "#2c86c7", "b": "#e0913a"}


def by_relation(names: tuple[str, ...]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"name": name, "relation": relation, "label": f"{relation} label", "value": 0.25,
             "low": 0.2, "high": 0.4, "freq": 0.1, "n": 40}
            for relation in ("P19", "P36")
            for name in names
        ]
    )  # fmt: skip


def test_every_bar_says_its_run_and_relation() -> None:
    figure = charts.precision_by_relation(by_relation(("a", "b")), COLOURS, what="", percent=True)
    bars = [trace for trace in figure.data if trace.type == "bar"]
    assert [list(bar.customdata[1][:2]) for bar in bars] == [["a", "P36"], ["b", "P36"]]
    assert bars[0].marker.color == COLOURS["a"]
    assert list(bars[0].x) == [25.0, 25.0]
    np.testing.assert_allclose(bars[0].error_x.array, [15.0, 15.0])


def test_a_source_stands_in_bold_above_its_relations() -> None:
    table = by_relation(("a", "b")).assign(is_source=False)
    whole = table[table["relation"] == "P19"].assign(
        relation="source x", label="<i>x</i>, 2 relations", is_source=True
    )
    figure = charts.precision_by_source(
        pd.concat([whole, table]), COLOURS, what="", percent=True
    )  # fmt: skip
    assert figure.layout.yaxis.ticktext == (
        "<b>&lt;i&gt;x&lt;/i&gt;, 2 relations</b>", "P19 label", "P36 label"
    )  # fmt: skip
    assert list(figure.data[0].customdata[0][:2]) == ["a", "source x"]


def test_every_cell_of_golds_by_answers_says_its_words_and_facts() -> None:
    pairs = pd.DataFrame({"gold": ["<b>", "<b>"], "answer": ["x", "y"], "n": [3, 1]})
    found = Confusion(pairs, ("<b>",), ("x",), 2, 3, np.array([[3, 1], [0, 8]]))
    cells, marks = charts.confusion(found).data
    assert [list(mark) for mark in marks.customdata] == [
        ["<b>", "x", 3, 3 / 4], ["<b>", "", 1, 1 / 4], ["", "", 8, 1.0]
    ]  # fmt: skip
    assert np.isnan(cells.z[1][0]) and cells.z[0][0] == np.log10(3)
    assert "&lt;b&gt;" in marks.text[0] and "1 other golds" in marks.text[2]
    assert marks.text[1].endswith("<b>2 other answers</b>")


def test_many_runs_are_points_on_one_line_a_relation() -> None:
    names = tuple("abcd")
    colours = dict.fromkeys(names, "#2c86c7")
    figure = charts.precision_by_relation(by_relation(names), colours, what="", percent=True)
    assert {trace.type for trace in figure.data} == {"scatter"}


def test_histogram_bins_say_their_ranks(tmp_path_factory: pytest.TempPathFactory) -> None:
    run = make_runs(tmp_path_factory.mktemp("runs"), n_relations=2, n_facts=50)[0]
    table = rank_histogram([run]).assign(name="a")
    figure = charts.rank_histogram(table, {"a": COLOURS["a"]})
    assert [tuple(cell[1:3]) for cell in figure.data[0].customdata[:3]] == [(1, 1), (2, 2), (3, 5)]
    assert figure.data[0].x[2] == "3–5"


def test_backgrounds_are_clear_and_texts_left_to_the_theme() -> None:
    ranks = {"name": "a", "low": 1, "q1": 2, "median": 3, "q3": 4, "high": 9, "mean": 4}
    figure = charts.rank_boxes(pd.DataFrame([ranks]), COLOURS, "rank")
    assert figure.layout.font.color is None


def test_json_says_how_it_was_made_and_has_null_for_the_unknown() -> None:
    table = pd.DataFrame({"n": np.array([3], np.int64), "p": np.array([np.nan], np.float32)})
    read = json.loads(json_of({"rows": records_of(table)}, {"runs": {"a": "starter-a"}}))
    assert read["rows"] == [{"n": 3, "p": None}]
    assert read["made_with"]["runs"] == {"a": "starter-a"}


def test_csv_keeps_formulas_as_text() -> None:
    assert to_csv(records_of(pd.DataFrame({"word": ["=1+1"]}))) == "word\r\n'=1+1\r\n"


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


def test_a_label_that_repeats_the_name_is_left_out() -> None:
    assert relation_label("place_of_birth", "place of birth") == "place_of_birth"
    assert relation_label("P19", "place of birth") == "P19 place of birth"
