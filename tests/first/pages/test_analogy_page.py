"""The Analogy page without a browser: its probe results, and the strips of its scores."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from opening import html, open_page

from lama_core.errors import UserError
from lama_core.models.protocols import TokenScores
from lama_core.probes.analogy.spec import list_probe_runs
from lama_core.runs.find import bundled_dir
from pages.ui.analogy import probes
from pages.ui.analogy.probes import decision_rows
from pages.ui.queries.analogy import read_words
from pages.ui.shared import links, screens
from pages.ui.shared.token_strips import heat_strip


def test_the_decisions_are_those_of_the_run() -> None:
    runs = list_probe_runs([bundled_dir()])
    run = next(run for run in runs if run.details.probe == "random-head")
    first = run.details.relations[0]
    wrong = decision_rows(run.info, first.name, "wrong")
    right = decision_rows(run.info, first.name, "right")
    assert len(wrong) + len(right) == first.n
    assert len(right) / first.n == pytest.approx(first.accuracy)
    assert decision_rows(run.info, first.name, "excluded").empty


def test_a_strip_is_stronger_where_a_token_is_less_likely_and_shows_it_as_text() -> None:
    def strip(tokens: tuple[str, ...], *log_probs: float) -> str:
        return heat_strip(TokenScores(tokens, np.array(log_probs, np.float32)), "#2c86c7")

    shown = strip(("a", "b", "c"), np.nan, -3, -30)
    assert [f"#2c86c7 {share}%" in shown for share in (0, 11, 45)] == [True] * 3
    assert ">-3.0<" in shown and "not scored" in shown
    assert f"b: probability {math.exp(-3):.2g}" in shown
    near = strip(("a", "b"), -0.04, -0.06)
    assert "<small>0.0</small>" in near and "<small>-0.1</small>" in near
    text = strip(("<img src=x>", '"'), 0, 0)
    assert "<img" not in text and "&lt;img src=x&gt;" in text and 'title="&quot;:' in text


def test_a_decision_opens_its_pairs_on_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    gone: list[tuple[str, dict[str, Any]]] = []
    label = "Show the scores token by token"

    def pressed(name: str, **more: object) -> bool:
        return name == label

    monkeypatch.setattr(probes.st, "button", pressed)
    draw_table = probes.draw_table
    monkeypatch.setattr(
        probes, "draw_table", lambda *args, **more: replace(draw_table(*args, **more), rows=(0,))
    )
    monkeypatch.setattr(links, "go", lambda page, params: gone.append((page, dict(params))))
    app = open_page("results", tab="More", chart="Analogy probes")
    assert any(one.value.startswith("Differs from the paper") for one in app.warning)
    ((page, params),) = gone
    assert page == screens.ASK
    assert params.keys() >= {"query", "pairs"}
    assert (params["tab"], params["analogy"]) == ("Analogy", "Score")
    app = open_page("", **{**params, "models": "bert-base-cased"})  # not here: nothing is scored
    assert app.text_input(key="query").value == params["query"]
    assert not app.error


def test_an_analogy_is_read_from_one_line() -> None:
    for line, words in (
        ("Paris : France :: Rome : ?", ("Paris", "France", "Rome", "___")),
        ("Paris:France::?:Italy", ("Paris", "France", "___", "Italy")),
        ("King is to queen as man is to ?.", ("King", "queen", "man", "___")),
    ):
        assert read_words(line) == words
    for line in ("Paris : France", "a : ? :: c : ?"):
        with pytest.raises(UserError, match="question mark for one word"):
            read_words(line)


@pytest.mark.usefixtures("home")
def test_the_verdict_counts_the_models_with_the_right_answer_first() -> None:
    app = open_page("", tab="Analogy", models=["minilm-mlm", "minilm-mlm-twin"])
    shown = html(app)
    assert '<div class="lx-sentence">Paris is to France as Rome is to <b' in shown
    verdict = shown.split('class="lx-conclusion">')[1].split("</div>")[0]
    assert verdict.startswith("Models with <b>Italy</b> first: <b>")
    ranked = [each.split("</table>")[0] for each in shown.split('<table class="lx">')[1:]]
    right = '<tr class="gold"><td class="rank">1<'
    first = sum(right in each for each in ranked)
    assert any("not ranked: word of the query" in each for each in ranked), "it doesn't count"
    assert first == 2, "the opening example works"
    assert f"<b>{first} of 2</b> in the sentence, by vector arithmetic <b>" in verdict
    assert "(both formulas)" in verdict or "(3CosAdd) and" in verdict
    assert ">Sentence: The relation between Paris and France is the same as" in shown
    vectors = shown.split('class="lx lx-small"')[1].split("</table>")[0].lower()
    assert vectors.count("italy</td>") == 0, "the right answer is marked"


@pytest.mark.usefixtures("home")
def test_the_first_pair_is_named_above_the_scores() -> None:
    app = open_page("", tab="Analogy", analogy="Score", models="minilm-mlm")
    shown = html(app)
    first = shown.split('class="lx-pair">')[1].split("<b>")[1].split("</b>")[0]
    verdict = "(correct)" if first.endswith(" ✓") else "(wrong)"
    pair = first.removesuffix(" ✓").replace(" ", "\u00a0")
    assert f"Ranks <b>{pair}</b> {verdict} first, before " in shown
    assert shown.count("Rome : Italy ✓") == 1
    app.button(key="secondary hot:cold").click().run()
    assert not app.exception and "high : low" in html(app)
