"""Many at once: its table, its filters, its faults, its address, and what it gives away."""

import csv
import io
import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from calling import invoke
from opening import html as html_of
from opening import open_page, press
from streamlit.testing.v1 import AppTest

from lama_core.errors import UserError
from lama_core.queries.batch import ManyKind
from lama_core.reports.table_files import csv_of
from lama_core.requests import command_line
from lama_core.scoring.limits import UNLIMITED, load_page_limits
from pages.ui.queries import batch, draw_batch
from pages.ui.shared import cache, export, screens, visitors
from pages.ui.shared.messages import plain

pytestmark = pytest.mark.usefixtures("home")
MODEL = "minilm-mlm"
TYPED = (
    "The capital of France is ___. | Paris\n\nno blank here\nHe is in [MASK] | Ouagadougou\n"
    "=2 ___ <b>is</b> [it](http://x.y).\tnothing\nTwo ___ in ___."
)


def opened(typed: str = TYPED, **params: str | list[str]) -> AppTest:
    given = {**screens.LIST, "models": MODEL, batch.PARAM: typed}
    return open_page("cloze", **{**given, **params})


def table(app: AppTest) -> Any:
    return app.dataframe[0].value


def test_the_address_brings_its_sentences_and_their_answers_are_those_of_each_alone() -> None:
    app = opened()
    assert not app.error
    found = table(app)
    assert list(found["line"]) == [1, 3, 4, 5, 6]
    assert list(found["gold"].fillna("")) == ["Paris", "", "Ouagadougou", "nothing", ""]
    assert found[f"{MODEL} answer"][0] == "paris ✓"
    alone = open_page("cloze", text="He is in ___", gold="Ouagadougou", models=MODEL)
    html = "".join(one.proto.body for one in alone.get("html"))
    word = html.split('<td class="word">')[1].split("<")[0]
    assert found[f"{MODEL} likelier"][2].startswith(f"{word} 0.")
    assert found[f"{MODEL} answer"][2].endswith(" – *"), "not counted, and another is likelier"
    assert found[f"{MODEL} rank"].isna()[2] and "not among the candidates" in html
    (warned,) = (one.value for one in app.warning)
    assert warned.startswith(plain("Line 3: The text has no blank"))
    assert plain("Line 6: The sentence has 2 blanks") in warned
    assert (
        '<b>1 of 1 right answers first</b></div><div class="lx-muted">P@1 100.0 % (20.7 to 100.0); '
        "3 of 5 sentences answered; 2 right answers not among the candidates, not counted; in "
        in html_of(app)
    )


def test_a_visitor_asks_so_many_sentences_at_once_and_the_owner_any(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    load_page_limits().check_sentences(500, 2)
    with pytest.raises(UserError, match=r"500 sentences for 3 models are 1,500 queries; the max"):
        load_page_limits().check_sentences(500, 3)
    UNLIMITED.check_sentences(500, 8)
    monkeypatch.setenv("LAMA_QUERY_SENTENCES", "2")
    typed = "A ___.\nB ___.\nno blank"
    assert not opened(f"{typed}\nC ___.").error, "the owner"
    monkeypatch.setattr(visitors, "is_local_user", lambda: False)
    assert not opened(typed).error
    monkeypatch.setattr(cache, "answer", lambda *_, **__: pytest.fail("it was asked"))
    (refused,) = (one.value for one in opened(f"{typed}\nC ___.").error)
    assert refused == plain(
        "3 sentences for 1 model are 3 queries; the maximum of a batch here is 2. Remove "
        "sentences or models."
    )


def test_what_the_time_of_a_question_leaves_is_asked_behind_those_who_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []
    back: list[int] = []
    ask = ManyKind.answer

    def two_at_a_time(kind: Any, model: Any, given: Any, calls: Any) -> Any:
        asked.append(len(given.shared))
        return ask(kind, model, replace(given, shared=given.shared[:2]), calls)

    monkeypatch.setattr(ManyKind, "answer", two_at_a_time)
    monkeypatch.setattr(draw_batch, "queue_last", lambda: back.append(len(asked)))
    app = opened("\n".join(f"Five {n} is ___." for n in range(5)))
    assert asked == [5, 3, 1] and back == [0, 1, 2]
    assert len(table(app)) == 5 and all(table(app)[f"{MODEL} answer"])
    app.run()
    assert asked == [5, 3, 1], "nothing is asked twice"


def test_filters_leave_what_is_sought_and_right_and_what_models_differ_on() -> None:
    lines = "The capital of France is ___. | Paris\nThe capital of France is ___. | Rome\nA ___."
    assert list(table(opened(lines, many_find="PARIS"))["gold"]) == ["Paris", "Rome"]
    assert list(table(opened(lines, many_find="rome"))["gold"]) == ["Rome"]
    assert list(table(opened(lines, many_show="right"))["gold"]) == ["Paris"]
    assert list(table(opened(lines, many_show="wrong"))["gold"]) == ["Rome"]
    assert table(opened(lines, many_show="models differ")).empty


def test_an_address_holds_what_fits_into_it() -> None:
    def shared(app: AppTest) -> str:
        return str(app.code[0].value)

    assert batch.PARAM in shared(opened("A ___. | b"))
    app = opened("A ___. | b")
    app.text_area(key=batch.TEXT).set_value("\n".join(f"{n} and ___." for n in range(450))).run()
    assert batch.PARAM not in shared(app)
    assert any("too long for the URL" in one.value for one in app.caption)
    assert len(table(app)) == 450


def test_what_was_stopped_asks_nothing_more_until_it_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = "\n".join(f"Number {n} is ___." for n in range(40))
    asked = []
    ask = ManyKind.answer

    def slow(kind: Any, model: Any, given: Any, calls: Any) -> Any:
        asked.append(len(given.shared))
        if len(asked) == 2:
            st.stop()  # as when the reader clicks while the second part is asked
        return ask(kind, model, given, calls)

    monkeypatch.setattr(ManyKind, "answer", slow)
    app = opened(lines)
    assert asked == [32, 8]
    app.button(key=f"stop {MODEL}").click().run()
    assert asked == [32, 8], "nothing is asked"
    answers = list(table(app)[f"{MODEL} answer"])
    assert [answer == f"({draw_batch.UNASKED})" for answer in answers] == [False] * 32 + [True] * 8
    press(app, "Resume")
    assert asked == [32, 8, 8], "what was answered is not asked again"
    assert draw_batch.UNASKED not in "".join(table(app)[f"{MODEL} answer"])


def test_the_table_that_is_taken_away_is_answered_alike_by_the_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    taken: dict[str, Any] = {}

    def take(name: str, make_table: Any, made: Any, how: Any, **more: Any) -> None:
        taken.update(rows=make_table(), made=made, how=how, record=more["record"]())

    monkeypatch.setattr(export, "draw_export", take)
    opened("The capital of France is ___. | Paris\n-5 is ___.\nHe is in ___ | Rome")
    monkeypatch.chdir(tmp_path)
    text = csv_of(export.frame_of(taken["rows"])).decode()
    Path("many.csv").write_text(text, encoding="utf-8")
    assert next(iter(csv.DictReader(io.StringIO(text))))[f"{MODEL} gold_rank"] == "1"
    assert "'-5 is ___." in text, "a spreadsheet takes no cell for a formula"
    said = invoke(shlex.split(command_line(taken["how"], "--json"))[1:])
    assert said.exit_code == 0, said.output
    told, shown = json.loads(said.stdout), taken["record"]
    opened("The capital of France is ___. | Paris\nHe is in ___ | Rome", many_find="rome")
    (model,) = taken["record"]["models"]
    for rows in (taken["rows"], model["answers"]):
        assert [row["line"] for row in rows] == [2], "what the filter leaves"
    for ours, theirs in zip(told["models"], shown["models"], strict=True):
        assert (ours["n"], ours["p_at_1"]) == (theirs["n"], theirs["p_at_1"])
        for one, other in list(zip(ours["answers"], theirs["answers"], strict=True))[::2]:
            assert one["predictions"][0]["token"] == other["predictions"][0]["token"]
            assert one["gold"]["rank"] == other["gold"]["rank"]


def test_a_file_takes_the_place_of_what_was_typed_if_the_visitor_may_bring_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = opened("A ___.")
    table_ = b'id,text,gold\n1,"Rome, ""old"", is\nin ___.",Italy\n2,bad,\n'
    app.file_uploader(key="many file 0").upload("my.csv", table_, "text/csv").run()
    press(app, "Ask its 2 sentences")
    assert app.text_area(key=batch.TEXT).value == 'Rome, "old", is in ___.\tItaly\nbad'
    assert list(table(app)["sentence"]) == ['Rome, "old", is in ___.', "bad"]
    app.file_uploader(key="many file 1").upload("x.csv", b"text\nK\xf6ln\n", "text/csv").run()
    assert any("Not valid UTF" in one.value for one in app.error)
    monkeypatch.setattr(visitors, "may", lambda right: right != "upload")
    app = opened("A ___.")
    assert not app.file_uploader
    assert any("Paste the sentences instead" in one.value for one in app.caption)
