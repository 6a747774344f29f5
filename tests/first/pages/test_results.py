"""The Results, Facts and Data pages without a browser, on made-up runs."""

import re
from pathlib import Path

import pandas as pd
import pytest
from chart_marks import charts
from opening import open_page
from project_files import ROOT
from streamlit.testing.v1 import AppTest

from lama_core.metrics import compare
from lama_core.metrics.fact_answers import AnswerFilter, join_answers
from lama_core.metrics.slices import SLICINGS, WORDING_SEEN
from lama_core.rounding import percentage, rounded
from lama_core.runs.alignment import align
from lama_core.runs.find import load_run, runs_dir
from lama_core.runs.info import Run
from lama_core.runs.tags import change_tags, read_tags
from pages.ui.shared import screens
from pages.ui.shared.messages import plain
from pages.ui.shared.tables import Picked
from pages.ui.shared.url_state import title_of
from pages.ui.wrong_answers import confusion
from pages.ui.wrong_answers.filters import params_of
from tools.bench.made_up import SOURCES, make_runs


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def runs(home: Path) -> tuple[Run, ...]:
    return make_runs(home / "data" / "runs", n_relations=6, n_facts=600)


@pytest.fixture
def here(home: Path, runs: tuple[Run, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMA_HOME", str(home))
    monkeypatch.chdir(ROOT)


def tables(app: AppTest) -> list[pd.DataFrame]:
    return [frame.value for frame in app.dataframe]


@pytest.mark.usefixtures("here")
def test_models_beside_each_other_are_of_the_same_facts_or_say_it(runs: tuple[Run, ...]) -> None:
    n_common = align(runs)[0].info.n
    app = open_page("results", data="made-up")
    said = "All models are scored on the same facts."
    assert any(said in text.value for text in app.caption)
    assert "is ahead" in app.subheader[0].value and f"{n_common:,}" in app.subheader[0].value
    totals, by_relation = tables(app)[:2]
    assert totals["facts"].iloc[-1] == by_relation["facts"].sum() == n_common
    app = open_page("results", data="made-up", scored_on="each model's own facts")
    assert any("**Different facts**" in text.value for text in app.caption)
    assert "different facts" in app.subheader[0].value and "ahead" not in app.subheader[0].value
    totals, by_relation = tables(app)[:2]
    assert "facts" not in totals
    for run in runs:
        assert by_relation[f"{title_of(run.info.model)} n"].sum() == run.info.n > n_common


@pytest.mark.usefixtures("here")
def test_published_values_stand_beside_ours_and_means_say_of_how_many_relations() -> None:
    totals = tables(open_page("results", data="made-up", published=["BERT-base", "Freq"]))[0]
    assert totals["BERT-base *"].tolist() == pytest.approx([68.0, 32.4, 24.7, 31.1])
    assert totals["Freq *"].iloc[-1] == 22.0  # printed as 22.03
    totals = tables(open_page("results", data="starter", models=["minilm-mlm"]))[0]
    of_sources = totals[totals["type of relation"] == "mean over relations"]
    numbers = dict(zip(of_sources["source"], of_sources["relations"], strict=True))
    assert numbers == {"Google_RE": "2 of 3", "TREx": "42", "ConceptNet": "16", "Squad": "1"}


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("name", "n_charts"),
    [("Overview", 3), ("P@k curves", 1), ("Rank distribution", 2), ("Relation types", 1),
     ("Slices", 1), ("Calibration", 1), ("Correlations", 2), ("Compare", 2)],
)  # fmt: skip
def test_every_tab_is_drawn_and_its_charts_say_what_they_show(name: str, n_charts: int) -> None:
    where = {"tab": name} if name in ("Overview", "Compare") else {**screens.chart(name)}
    app = open_page("results", data="made-up", **where)
    assert not app.error
    drawn = charts(app)
    assert len(drawn) == n_charts
    for chart in drawn:
        assert chart.title
        assert chart.axis_title("x") or chart.parameter("words")
        assert chart.parameter("names") or chart.axis_title("y")
        said = [mark["said"] for mark in chart.marks() if "said" in mark]
        assert said and all("facts" in text for text in said)


@pytest.mark.usefixtures("here")
def test_a_difference_stands_with_the_test_of_its_unit(runs: tuple[Run, ...]) -> None:
    ids = [run.info.id for run in runs[:2]]
    found = compare(*(load_run(name) for name in ids))
    app = open_page("results", data="made-up", tab="Compare", run_a=ids[0], run_b=ids[1])
    shown = {one.label: one.value for one in app.metric}
    facts, relations = found.over_facts, found.over_relations
    assert shown[f"B minus A over {facts.n:,} facts"] == f"{100 * facts.difference:+.1f} points"
    assert shown["B minus A over 6 relations"] == f"{100 * relations.difference:+.1f} points"
    said = [text.value for text in app.caption]
    assert any("McNemar's test over the facts: p" in text for text in said)
    assert any(f"Student's t over the relations: p = {relations.p:.3f}" in text for text in said)
    ways = next(box for box in app.selectbox if box.label == "Slice by")
    assert ways.value == "gold's frequency" and "type of relation" in ways.options


@pytest.mark.usefixtures("here")
def test_facts_that_one_model_gets_right_and_another_wrong(runs: tuple[Run, ...]) -> None:
    a, b = "minilm-mlm", "gpt2"
    app = open_page("facts", data="made-up", models=[a, b], right=[a], wrong=[b])
    chosen = [next(run for run in runs if run.info.model == name) for name in (a, b)]
    rows = join_answers(chosen).select(AnswerFilter(right=(0,), wrong=(1,)))
    assert f"**{len(rows):,}** of " in app.markdown[0].value
    shown = tables(app)[0]
    assert (shown[f"{a} rank"] == 1).all() and (shown[f"{b} rank"] > 1).all()
    assert shown[f"{a} answer"].str.endswith(" ✓").all()
    shown = tables(open_page("facts", data="made-up", models=["gpt2"], rows="excluded"))[0]
    assert set(shown["gpt2 answer"]) == {"excluded: object is not one token of the model"}


def rows_of_chart(app: AppTest) -> list[str]:
    return charts(app)[0].parameter("names")


@pytest.mark.usefixtures("here")
def test_a_chart_of_many_relations_shows_sources_and_opens_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = rows_of_chart(open_page("results", data="made-up"))
    assert len(shown) == 1 + 6, "few relations are shown at once"
    make_runs(tmp_path / "data" / "runs", n_facts=600, sources=SOURCES)
    monkeypatch.setenv("LAMA_HOME", str(tmp_path))
    app = open_page("results", data="made-up")
    assert rows_of_chart(app) == [
        "all, 59 relations", "Google_RE, 3 relations", "TREx, 41 relations",
        "ConceptNet, 14 relations", "Squad, 1 relation",
    ]  # fmt: skip
    totals = tables(app)[0]
    means = totals.loc[totals["type of relation"] == "mean over relations", "GPT-2 small"]
    chart = charts(app)[0]
    gpt2 = [mark for mark in chart.marks("rect", "point") if mark["name"] == "GPT-2 small"][:5]
    said = [mark["said"].splitlines()[0] for mark in gpt2]
    assert [text.split(", ")[0] for text in said[1:]] == list(SOURCES), said
    assert [rounded(mark["value"], 1) for mark in gpt2[1:]] == means.tolist()
    opened = rows_of_chart(open_page("results", data="made-up", open=["Google_RE"]))
    assert [name.split()[0] for name in opened[2:5]] == ["P100", "P101", "P102"]
    assert len(opened) == 5 + 3
    params = {"data": "made-up", "relations": ["all of Google_RE", "P103"]}
    of_source = tables(open_page("results", **params))[1]["relation"]
    assert [name.split()[0] for name in of_source] == ["P100", "P101", "P102", "P103"]


@pytest.mark.usefixtures("here")
def test_a_slice_leads_to_as_many_facts_as_it_counts() -> None:
    chart = {"tab": "More", "chart": "Slices", "slice_by": "every way"}
    page = open_page("results", data="made-up", models=["gpt2"], **chart)
    table = tables(page)[0]
    assert any(plain("text of GPT-2 small isn't known") in one.value for one in page.caption)
    assert WORDING_SEEN not in set(table["slice by"])
    by_frequency = table[table["slice by"] == "right answer's frequency"]
    line = by_frequency[by_frequency["slice"] == "2 to 5"].iloc[0]
    fields = SLICINGS["gold's frequency"].slices["2 to 5"]
    app = open_page("facts", data="made-up", models=["gpt2"], **params_of(fields))
    assert f"**{line['facts']:,}** of " in app.markdown[0].value
    wrong = open_page(
        "facts", data="made-up", models=["gpt2"], kind="right type", **params_of(fields)
    )
    n = int(wrong.markdown[0].value.split("**")[1])
    n_wrong = int(
        open_page("facts", data="made-up", models=["gpt2"], rank_min="2", **params_of(fields))
        .markdown[0].value.split("**")[1]
    )  # fmt: skip
    assert line["GPT-2 small right_type"] == percentage(n / n_wrong)


@pytest.mark.usefixtures("here")
def test_a_pair_of_gold_and_answer_leads_to_its_facts() -> None:
    confusion = {"data": "made-up", "models": ["gpt2"], "view": "Confusion"}
    (wrong,) = tables(open_page("facts", **confusion))[:1]
    assert not (wrong["gold"].str.lower() == wrong["answer"].str.lower()).any()
    app = open_page("facts", **confusion, every_pair="true")
    pairs = tables(app)[0]
    assert len(pairs) > len(wrong)
    first = pairs.iloc[0]
    there = open_page("facts", data="made-up", models=["gpt2"], gold=first["gold"],
                      answer=first["answer"])  # fmt: skip
    assert f"**{first['n']:,}** of 587 scored facts" in there.markdown[0].value
    assert any(f"{pairs['n'].sum():,} facts with a first answer" in c.value for c in app.caption)


@pytest.mark.usefixtures("here")
def test_a_ticked_pair_of_answers_opens_its_own_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[pd.DataFrame] = []
    opened: list[tuple[str, ...]] = []
    ticked = lambda table, **_: drawn.append(table) or Picked((0,))  # noqa: E731
    monkeypatch.setattr(confusion, "draw_table", ticked)
    monkeypatch.setattr(confusion, "_open", lambda *of: opened.append(of[1:]))
    open_page("facts", models=["minilm-mlm"], view="Confusion")
    assert opened == [tuple(drawn[0].loc[drawn[0].index[0], ["gold", "answer"]])]


@pytest.mark.usefixtures("here")
def test_the_owner_writes_tags_and_a_visitor_reads_them(
    runs: tuple[Run, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = next(run for run in runs if run.info.model == "gpt2")
    rows = list(zip(run.facts["fact_id"].iloc[3:5], (0, 0), strict=True))
    change_tags(run.info, rows[:1], add=["<b>odd"])
    params = {"data": "made-up", "models": ["gpt2"], "rows": "all"}
    fact = open_page("facts", **params, fact=f"{rows[1][0]}#0")
    (tags,) = [one for one in fact.multiselect if one.label == r"Tags in the run of GPT\-2 small"]
    tags.set_value(["<b>odd"]).run()
    assert read_tags(run.info) == dict.fromkeys(rows, ("<b>odd",))
    listed = open_page("facts", **params, tag=["<b>odd"])
    assert "**2** of 600 facts" in listed.markdown[0].value
    assert [list(kept) for kept in tables(listed)[0]["tags"]] == [["<b>odd"]] * 2

    monkeypatch.setattr("pages.ui.shared.visitors.is_local_connection", lambda *_: False)
    seen = open_page("facts", **params, fact=f"{rows[1][0]}#0")
    assert any(r"Tags in the run of GPT\-2 small: \<b\>odd" in one.value for one in seen.markdown)
    assert not any("Tag" in one.label for one in seen.button)
    assert not any(one.label.startswith("Tags in") for one in seen.multiselect)


def test_without_runs_the_page_says_how_to_start_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAMA_HOME", str(tmp_path))
    monkeypatch.setattr("lama_core.runs.find.bundled_dir", lambda: tmp_path / "none")
    assert not runs_dir().exists()
    for name in ("results", "facts"):
        app = open_page(name)
        assert "lama-explorer probe" in app.info[0].value
        assert any(button.label == "Start a run" for button in app.button)
    assert any(button.label == "Start" for button in open_page("data", **screens.NEW_RUN).button)


@pytest.mark.usefixtures("here")
def test_data_have_licence_and_citation_before_they_are_fetched_and_facts_by_source() -> None:
    app = open_page("data", source="lama")
    text = " ".join(element.value for element in app.markdown).replace("\\", "")
    assert "CC BY-NC 4.0" in text and "Petroni et al. 2019" in text
    assert any("Get lama (" in button.label for button in app.button)
    app = open_page("data", source="starter", relation="P36")
    text = " ".join(element.value for element in app.markdown).replace("\\", "")
    for source in ("Google_RE", "TREx", "ConceptNet", "Squad"):
        assert re.search(rf"\*\*{source}\*\*: [\d,]+ facts of \d+ relations?", text)
    assert "- The capital of [X] is [Y]" in text


@pytest.mark.usefixtures("here")
def test_lama_itself_is_there_without_being_fetched() -> None:
    app = open_page("results", data="made-up", large="LAMA T-REx", ranking="raw")
    totals, by_relation = tables(app)[:2]
    assert totals["type"].tolist() == ["1-1", "N-1", "N-M", "all"]
    assert totals["BERT-large *"].tolist() == pytest.approx([74.5, 34.2, 24.3, 32.3])
    assert len(by_relation) == 41
    mean = by_relation["minilm-mlm"].sum() / 41
    assert totals["minilm-mlm"].iloc[-1] == pytest.approx(mean, abs=0.1)  # both are rounded
    said = " ".join(text.value for text in (*app.subheader, *app.caption)).replace("\\", "")
    scored = "29,394 (MiniLM-MLM) and 26,784 (SmolLM2 135M Instruct) of the paper's 34,039 facts"
    assert scored in said and "**raw** ranking" in said
    assert "of which 29,411 are in the data" in said
