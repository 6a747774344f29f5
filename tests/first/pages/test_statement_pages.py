"""Runs of statements on Results and Facts, on the eight facts of statement_fakes."""

from pathlib import Path

import pytest
from opening import open_page, said
from project_files import ROOT
from statement_fakes import SCORES, make_cloze_run, make_statement_run

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
