"""Runs of statements on Results and Facts, on the eight facts of statement_fakes."""

from pathlib import Path

import pytest
from opening import open_page, said
from project_files import ROOT
from statement_fakes import SCORES, make_cloze_run, make_statement_run

from lama_core.probes.statements.request import StatementsRequest
from lama_core.requests import arguments
from lama_core.runs.info import Run
from pages.ui.wrong_answers.answer_scores import scores_table


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def runs(home: Path) -> tuple[Run, Run]:
    place = home / "data" / "runs"
    whole = make_statement_run(home, place)
    return whole, make_statement_run(home, place, aggregate="mean")


@pytest.fixture(scope="module")
def words(home: Path) -> Run:
    return make_cloze_run(home, home / "data" / "runs")


@pytest.fixture
def here(home: Path, runs: tuple[Run, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMA_HOME", str(home))
    monkeypatch.chdir(ROOT)


def both(runs: tuple[Run, Run]) -> list[str]:
    return [run.info.id for run in runs]


@pytest.mark.usefixtures("here")
def test_tables_have_the_answers_and_the_chance_level(runs: tuple[Run, Run]) -> None:
    app = open_page("results", data="stated", runs=runs[0].info.id)
    totals, by_relation = (frame.value for frame in app.dataframe[:2])
    assert by_relation["answers"].tolist() == ["4", "2"]
    assert by_relation["chance"].tolist() == ["25.0", "50.0"]
    assert totals["chance"].tolist()[-1] == "37.5"  # (1 / 4 + 1 / 2) / 2
    assert "whole answers, first template (ranked by the likelihood" in said(app)


@pytest.mark.usefixtures("here")
def test_lamas_published_numbers_stand_beside_words_only(runs: tuple[Run, Run], words: Run) -> None:
    def published(*ids: str) -> bool:
        app = open_page("results", data="stated", runs=list(ids))
        boxes = [box.label for box in app.multiselect]
        tables = [box.label for box in app.expander if "Petroni" in box.label]
        assert ("Compare with published" in boxes) == bool(tables)
        return bool(tables)

    assert published(words.info.id)
    assert not published(runs[0].info.id)
    assert not published(words.info.id, runs[0].info.id)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("P@k curves", "a random order of the answers"),
        ("Margins", "Margin: log-probability of the right answer"),
        ("Calibration", "softmax over all answers' scores"),
    ],
)
def test_every_tab_speaks_of_answers(runs: tuple[Run, Run], name: str, text: str) -> None:
    where = {"tab": name} if name == "Compare" else {"tab": "More", "chart": name}
    app = open_page("results", data="stated", runs=both(runs), **where)
    assert text in said(app)
    assert "All models are scored on the same facts" in said(app)
    assert "each relation's own, at most 4" in said(app)
    assert "whole vocabulary" not in said(app)
    some = open_page("results", data="stated", runs=both(runs), tab="More", chart="Correlations")
    assert "All models are scored" not in said(some)


@pytest.mark.usefixtures("here")
def test_statements_are_compared_with_words_and_it_is_said_what_differs(
    runs: tuple[Run, Run], words: Run
) -> None:
    pair = [runs[0].info.id, words.info.id]
    app = open_page("results", data="stated", runs=pair, tab="Compare")
    (warning,) = app.warning
    assert "whole answers (at most 4)" in warning.value and "blank (4)" in warning.value
    # New York is more than one token: Eve is asked of the statements alone.
    assert "B minus A over 7 facts" in {one.label for one in app.metric}
    assert "**Different things are ranked**" in said(app)
    app = open_page("results", data="stated", runs=pair, tab="More", chart="Margins")
    assert "Runs without margins, because they rank words: filler." in said(app)


@pytest.mark.usefixtures("here")
def test_a_link_to_a_bin_of_margins_lists_its_facts(runs: tuple[Run, Run]) -> None:
    app = open_page("facts", data="stated", runs=runs[0].info.id, margin_min="-2", margin_max="2")
    table = app.dataframe[0].value
    assert table["subject"].tolist() == ["Anna", "Ben", "Dan"]
    margins = next(table[name] for name in table if str(name).endswith(" margin"))
    assert margins.tolist() == pytest.approx([2.0, -1.0, 1.5])
    assert any(
        one.label.replace("\\", "").startswith("margin above -2 and up to 2") for one in app.button
    )


@pytest.mark.usefixtures("here")
def test_an_opened_fact_shows_all_answers_and_its_margin(runs: tuple[Run, Run]) -> None:
    facts = runs[0].facts
    app = open_page("facts", data="stated", runs=runs[0].info.id, fact=f"{facts.fact_id[1]}#0")
    assert "Margin of the right answer: -1.00 nats." in said(app)
    (table,) = [one.body for one in app.get("html") if 'title="of the answers"' in one.body]
    assert "<th>answer</th>" in table
    app = open_page("facts", data="stated", runs=runs[0].info.id, fact=f"{facts.fact_id[5]}#0")
    assert "No margin: no answer is wrong." in said(app)


def test_bars_mark_the_gold_and_other_right_answers(runs: tuple[Run, Run]) -> None:
    found = scores_table(runs[0], 6, "Paris")
    assert found is not None
    table, n_unknown = found
    assert n_unknown == 0
    assert table["word"].tolist() == ["Berlin", "Paris"]
    assert table["score"].tolist() == list(SCORES["Land"].values())
    assert table["mark"].tolist() == ["also right", "gold"]
    assert table["prob"].sum() == pytest.approx(1.0)


@pytest.mark.usefixtures("here")
def test_the_form_of_a_run_of_statements_says_its_command() -> None:
    app = open_page("data", data="stated", tab="New run")
    (kind,) = [one for one in app.button_group if one.key == "run_rank"]
    kind.set_value("whole answers").run()
    assert not app.exception
    next(one for one in app.number_input if one.label == "Facts per relation (at most)").set_value(
        3
    )
    next(one for one in app.button_group if one.key == "run_aggregate").set_value("mean")
    app.run()
    request = StatementsRequest("starter", ("minilm-mlm",), aggregate="mean", limit=3)
    assert arguments(request)[0] == "statements"
    assert any(" ".join(arguments(request)) in one.value for one in app.code)
