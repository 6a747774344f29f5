"""Ways of asking on Results, and generated texts on Wrong answers, on the facts of make_ways."""

from pathlib import Path
from typing import Any

import pytest
from opening import html, open_page, press, said
from statement_fakes import make_ways
from streamlit.testing.v1 import AppTest

from lama_core.runs.info import Run
from lama_core.runs.tags import change_tags, read_tags
from pages.ui.shared import screens
from pages.ui.wrong_answers.tags import AS_MATCHED


@pytest.fixture
def runs(home: Path) -> tuple[Run, Run, Run]:
    return make_ways(home, home / "data" / "runs")


def key(run: Run, row: int) -> str:
    return str(run.facts["fact_id"].iloc[row])


def open_ways(**params: str | list[str]) -> AppTest:
    return open_page("results", data="stated", tab="More", chart=screens.WAYS, **params)


def open_fact(run: Run, row: int, *others: Run) -> AppTest:
    ids = [one.info.id for one in (run, *others)]
    return open_page("facts", data="stated", runs=ids, fact=f"{key(run, row)}#0")


def test_verdicts_are_counted_on_request(runs: tuple[Run, Run, Run]) -> None:
    change_tags(runs[2].info, [(key(runs[2], 2), 0)], add=["judged wrong"])
    app = open_ways()
    assert "generated answers: 42.9 % as matched, 28.6 % with your verdicts" in said(app)
    assert app.dataframe[3].value["subject"].tolist() == ["Cleo", "Isle"]
    app = open_ways(verdicts="true")
    assert app.dataframe[3].value["subject"].tolist() == ["Isle"]
    (command,) = [one.value for one in app.code if "results ways" in one.value][:1]
    assert "--verdicts" in command


def test_a_text_is_shown_as_text_with_its_question(runs: tuple[Run, Run, Run]) -> None:
    app = open_fact(runs[2], 1)
    assert "&lt;b&gt;PARISIAN&lt;/b&gt;" in html(app) and "<b>PARIS" not in html(app)
    assert "✗ no match" in html(app) and "In which city was Ben born?" in said(app)
    assert "was Ben" not in html(open_fact(runs[2], 1, runs[0])), (
        "the question heads the fact already"
    )
    assert "city was Ben" in html(open_fact(runs[0], 1, runs[2])), "the first run has another query"
    table = app.dataframe[0].value
    answers = next(table[name] for name in table if str(name).endswith(" answer"))
    assert answers.tolist()[:2] == ["Rome, I think. ✓", "<b>PARISIAN</b>"]
    assert "(an empty text)" in answers.tolist()
    assert not [name for name in table if str(name).endswith(" rank")]


def test_a_verdict_is_stored_as_a_tag_and_shown_with_and_without(
    runs: tuple[Run, Run, Run],
) -> None:
    run = runs[2]
    app = open_fact(run, 1)
    (verdict,) = [one for one in app.segmented_control if one.label == "Verdict"]
    assert verdict.value == AS_MATCHED
    verdict.set_value("judged right").run()
    assert read_tags(run.info) == {(key(run, 1), 0): ("judged right",)}
    assert "37.5 % as matched, 50.0 % with your 1 verdict" in said(app)  # 3 and 4 of 8
    (verdict,) = [one for one in app.segmented_control if one.label == "Verdict"]
    verdict.set_value(AS_MATCHED).run()
    assert read_tags(run.info) == {} and "as matched," not in said(app)


def test_visitors_read_verdicts_and_set_none(
    runs: tuple[Run, Run, Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    change_tags(runs[2].info, [(key(runs[2], 1), 0)], add=["judged right"])
    monkeypatch.setattr("pages.ui.shared.visitors.may", lambda what: what != "manage")
    app = open_fact(runs[2], 1)
    assert not [one for one in app.segmented_control if one.label == "Verdict"]
    assert "The operator's verdict: judged right" in said(app)


def test_runs_of_all_kinds_open_together(
    runs: tuple[Run, Run, Run], gone: list[dict[str, Any]]
) -> None:
    app = open_fact(runs[2], 2, *runs[:2])
    assert "In Rome." in html(app)
    press(app, "Ask it")
    assert gone[0]["tab"] == "Question" and gone[0]["right_texts"] == "Rome"
