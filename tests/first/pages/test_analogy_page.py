"""The Analogy page without a browser: its probe results, and the strips of its scores."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from analogy_fakes import Work, run_probes
from numpy.typing import NDArray
from opening import html, open_page, said
from project_files import ROOT
from streamlit.testing.v1 import AppTest

from lama_core.datasets.dataset import AnalogyRelation, Pair, ReadReport, make_analogies
from lama_core.errors import UserError
from lama_core.models.protocols import TokenScores
from lama_core.probes.analogy.accuracy_tables import RELATION_KINDS, UNMARKED
from lama_core.probes.analogy.instances import Instance, ProbeOptions
from lama_core.probes.analogy.scorers import OnDone
from lama_core.probes.analogy.spec import ProbeRun
from lama_core.progress import ignore
from lama_core.queries.analogy import analogy
from pages.ui.analogy import probes
from pages.ui.analogy.probes import decision_rows
from pages.ui.queries.analogy import FIELD, N_CHIPS, OPENING, read_words
from pages.ui.shared import links, screens
from pages.ui.shared.messages import plain
from pages.ui.shared.token_strips import heat_strip

PAIRS = tuple((f"<b>{c}</b>", (f"{c}*{c}",)) for c in "abcdefgh")
RELATIONS = (
    AnalogyRelation("letter - double", "inflectional", PAIRS, one_to_many=True),
    AnalogyRelation("letter - other", "lexicographic", PAIRS[:6], bidirectional=True),
)


class Coin:
    """A judge that is right whenever the positive's head comes early in the alphabet."""

    name, identity, method, device = "coin", "1", "model", "cpu"

    def missing(self, words: Iterable[str]) -> tuple[str, ...]:
        return ()

    def prefer(
        self, instances: Sequence[Instance], on_done: OnDone = ignore
    ) -> NDArray[np.float64]:
        on_done(len(instances))
        return np.array([[1.0, 0.0 if one.positive[0] < "<b>d" else 2.0] for one in instances])

    def features(
        self, rows: Sequence[tuple[Pair, Pair]], on_done: OnDone = ignore
    ) -> NDArray[np.float32]:
        on_done(len(rows))
        return np.array([[len(a[0]), ord(b[0][0])] for a, b in rows], np.float32)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def runs(home: Path) -> tuple[ProbeRun, ...]:
    work = Work(
        make_analogies("made-up", RELATIONS, ReadReport()),
        options=ProbeOptions(n_seeds=2, hidden=3, limit=20),
    )
    return run_probes(Coin(), work, folder=home / "data" / "runs")  # type: ignore[arg-type]


def open_probes(home: Path, monkeypatch: pytest.MonkeyPatch, **params: str) -> AppTest:
    monkeypatch.setenv("LAMA_HOME", str(home))
    monkeypatch.chdir(ROOT)
    app = open_page("results", **{"tab": "More", "chart": "Analogy probes", **params})
    assert not app.error
    return app


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize("setting", ["unsupervised", "supervised"])
def test_probe_results_are_shown_by_kind_and_relation(
    home: Path, setting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = open_probes(home, monkeypatch, data="made-up", setting=setting)
    kinds = app.dataframe[0].value
    # Every relation here is marked.
    assert kinds.columns.tolist() == ["model", "probe", *RELATION_KINDS, "all"]
    assert {"RoBERTa-base", "fastText"} < set(kinds["model"])
    assert any(model.startswith("coin") for model in kinds["model"])
    assert "Accuracy: coin on random (" in said(app)
    (warning,) = (
        one.value for one in app.warning if one.value.startswith("Differs from the paper")
    )
    assert plain("made-up, not BATS 3.0; at most 20 a relation") in warning
    tested = next(one.value for one in app.dataframe if "relation" in one.value.columns)
    assert {column.split(", ")[1] for column in tested.columns if ", " in column} == {
        "random", "random-head", "random-tail",
    }  # fmt: skip
    summed = next(one.value for one in app.dataframe if "p above 0.05" in one.value.columns)
    assert summed["probe"].tolist() == ["random", "random-head", "random-tail", "random"]
    assert summed["p above 0.05"].tolist()[-1] == "over two thirds"


@pytest.mark.usefixtures("runs")
def test_the_papers_average_without_marked_relations_stands_below_its_kinds(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = open_probes(
        home, monkeypatch, data="made-up", setting="supervised", beside="RoBERTa-large"
    )
    kinds = app.dataframe[0].value.set_index(["model", "probe"])
    assert kinds.columns.tolist() == [*RELATION_KINDS, "all", UNMARKED]
    assert kinds.loc[("RoBERTa-large", "random"), UNMARKED] == "68.5"


def test_the_decisions_are_those_of_the_run(runs: tuple[ProbeRun, ...]) -> None:
    run = next(run for run in runs if run.details.probe == "random-head")
    (first, _) = run.details.relations
    wrong = decision_rows(run.info, first.name, "wrong")
    right = decision_rows(run.info, first.name, "right")
    assert len(wrong) + len(right) == first.n
    assert len(right) / first.n == pytest.approx(first.accuracy)
    assert decision_rows(run.info, first.name, "excluded").empty


def test_without_a_run_the_page_says_how_to_make_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lama_core.runs.find.bundled_dir", lambda: tmp_path / "none")
    app = open_probes(tmp_path, monkeypatch)
    assert "There is no finished probe yet" in app.info[0].value


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
    open_page("results", tab="More", chart="Analogy probes")
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
def test_the_other_examples_that_are_always_shown_split_the_models() -> None:
    asked = FIELD.examples()[1:N_CHIPS]
    words = [read_words(line) for line, _ in asked]
    models = ["minilm-mlm", "minilm-mlm-twin"]
    for each, (_, gold) in zip(words, asked, strict=True):
        rows = analogy(each, models=models, template=OPENING, candidates="own", gold=gold, top_k=1)
        rows = rows[(rows["method"] == "model") & (rows["rank"] == 1)]
        assert len(rows) == 2 and (rows["word"] == gold).sum() == 1, each


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
def test_a_link_without_a_template_keeps_the_former_one() -> None:
    app = open_page("", tab="Analogy", models="minilm-mlm")
    assert app.selectbox(key="template").value == "rel-same"
    app = open_page("", tab="Analogy", models="minilm-mlm", solve="Oslo : Norway :: Rome : ?")
    assert app.selectbox(key="template").value == "to-as"


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
