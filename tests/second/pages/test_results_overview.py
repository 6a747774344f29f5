"""What the tabs Overview, Compare and More of Results show first, and what they lead to."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from chart_marks import charts
from opening import open_page
from streamlit.testing.v1 import AppTest

from lama_core.metrics import compare, precision_curves, score_table
from lama_core.rounding import percent
from lama_core.runs.alignment import align
from lama_core.runs.find import load_run
from lama_core.runs.info import Run
from lama_core.views.figure import Figure
from pages.ui.results.more import GROUPS, all_charts, entries
from pages.ui.shared import figures, screens
from pages.ui.shared.run_choice import unscored
from pages.ui.shared.url_state import title_of

TWO = ["gpt2", "minilm-mlm"]
CAPITAL = "P101 made-up relation 1"


pytestmark = pytest.mark.usefixtures("runs")


def headline(app: AppTest) -> str:
    return str(app.subheader[0].value).replace("\\", "").replace("\N{NO-BREAK SPACE}", " ")


def click(app: AppTest, label: str) -> None:
    next(one for one in app.button if one.label.strip("*") == label).click().run()


def test_the_headline_is_first_and_has_the_figure_of_the_curve(runs: dict[str, Run]) -> None:
    app = open_page("results", data="made-up", models=TWO)
    curves = precision_curves(align([runs[name] for name in TWO]), k_max=1)
    best = curves.loc[curves["p_at_k"].idxmax()]
    ends = f"({percent(best['low'])} to {percent(best['high'])})"
    assert headline(app).startswith(
        f"{title_of(best['model'])} is clearly ahead: {percent(best['p_at_k'])} % {ends} of first "
        "answers are right on average over these 6 TREx relations"
    )
    counted = f"6 relations, {best['n']:,} facts in all"
    assert any(counted in one.proto.help for one in app.caption)
    order = [
        one.type for one in app.main if one.type in ("subheader", "vega_lite_chart", "dataframe")
    ]
    assert not order or order[0] == "subheader"


def test_the_headline_is_about_the_chosen_relation_k_measure_and_facts() -> None:
    app = open_page("results", data="made-up", models=["gpt2"], relations=[CAPITAL], p_at="10")
    assert headline(app).startswith(f"GPT-2 small on {CAPITAL}: ")
    assert headline(app).endswith("facts have the right answer among the first 10")
    at_10 = open_page("results", data="made-up", models=TWO, p_at="10")
    assert headline(open_page("results", data="made-up", models=TWO, figure="P@10")) == headline(
        at_10
    )
    app = open_page("results", data="made-up", models=TWO, figure="mean rank")
    assert " is ahead: mean rank " in headline(app) and "interval" not in headline(app)
    app = open_page("results", data="made-up", models=TWO, scored_on="each model's own facts")
    assert headline(app).endswith("the models are scored on different facts")


def test_the_weakest_relations_lead_to_facts_that_every_model_gets_wrong(
    gone: list[dict[str, Any]], runs: dict[str, Run]
) -> None:
    means = score_table(align([runs[name] for name in TWO])).groupby("relation")["p_at_k"].mean()
    weakest = means.sort_values(kind="stable").head(3)
    app = open_page("results", data="made-up", models=TWO)
    shown = [one.label for one in app.button if " %" in one.label]
    assert [label.split()[0] for label in shown] == list(weakest.index)
    assert shown[0].endswith(f": {percent(weakest.iloc[0])} %")
    click(app, shown[0])
    assert gone[-1].items() >= {"wrong": TWO, "sort": "most confident first"}.items()
    there = open_page("results", **{name: gone[-1][name] for name in ("data", "tab", "wrong")})
    assert any(one.label.startswith("wrong in GPT") for one in there.button)


def test_the_best_two_are_compared_in_one_click(
    gone: list[dict[str, Any]], runs: dict[str, Run]
) -> None:
    app = open_page("results", data="made-up", models=TWO)
    best = next(name for name in TWO if headline(app).startswith(title_of(name)))
    click(app, "Compare the best two")
    (other,) = set(TWO) - {best}
    pair = [runs[name].info.id for name in (other, best)]
    assert [gone[-1]["run_a"], gone[-1]["run_b"]] == pair
    app = open_page("results", data="made-up", tab="Compare", run_a=pair[0], run_b=pair[1])
    assert [box.value for box in app.selectbox if box.label in ("A (baseline)", "B")] == pair
    shown = compare(*map(load_run, pair)).over_relations.difference
    ahead = title_of(best if shown > 0 else other)
    assert f"{ahead} is ahead of" in headline(app)
    assert f"by {percent(abs(shown))} points (" in headline(app)


def test_the_menu_has_eight_questions_with_the_charts_that_answer_them(
    gone: list[dict[str, Any]],
) -> None:
    app = open_page("results", data="made-up", models=TWO, tab="More")
    cards = [one for one in app.button if one.label.startswith("**")]
    assert [one.label.strip("*") for one in cards] == list(entries()) and len(GROUPS) == 8
    assert sorted(name for names in entries().values() for name in names) == sorted(all_charts())
    ready = [one.label.strip("*") for one in cards if not one.disabled]
    assert [entries()[title][0] for title in entries() if title not in ready] == [
        "Wording and negation", "Ways of asking", "Training",
    ]  # fmt: skip
    assert not charts(app)
    click(app, "Which facts do models know, and what do these have in common?")
    assert gone[-1]["chart"] == "Slices"


def test_a_chart_of_an_address_that_cant_be_drawn_says_what_it_needs(
    gone: list[dict[str, Any]],
) -> None:
    app = open_page("results", data="made-up", tab="More", chart="Margins")
    assert "Needs: a whole-answer run." in [one.value for one in app.info]
    assert not charts(app)
    n_gone = len(gone)
    app = open_page("results", data="starter", tab="More", chart="Margins")
    assert charts(app) and not app.info
    assert any(one.value.startswith("Shown here only: ") for one in app.caption)
    assert len(gone) == n_gone and "prompts" not in app.query_params  # other tabs stay as they are


WRONG = {"data": "made-up", "models": TWO, "tab": "Wrong answers"}


def found_facts(app: AppTest) -> str:
    return next(one.value for one in app.markdown if " facts" in one.value and "**" in one.value)


def test_wrong_answers_opens_on_wrong_ones_unless_the_url_asks_more(runs: dict[str, Run]) -> None:
    app = open_page("results", **WRONG)
    first = app.selectbox(key="of").value
    assert app.multiselect(key="wrong").value == [first]
    assert app.selectbox(key="sort").value == screens.CONFIDENT_FIRST
    for asked in ({"facts": "all"}, {"relations": [CAPITAL]}, {"of": first}):
        assert open_page("results", **WRONG, **asked).multiselect(key="wrong").value == []
    old = open_page("results", **WRONG, wrong=["gpt2"])
    assert old.multiselect(key="wrong").value == ["gpt2"]
    assert title_of("gpt2") in found_facts(old).replace("\\", "")


@pytest.mark.parametrize("view", ["Confusion", "Frequent answers"])
def test_views_of_all_answers_ignore_that_only_wrong_ones_are_listed(view: str) -> None:
    wrong = open_page("results", **WRONG, wrong=["gpt2"], of="gpt2")
    matrix = open_page("results", **WRONG, wrong=["gpt2"], of="gpt2", view=view)
    every = open_page("results", **WRONG, facts="all")
    assert found_facts(matrix).split()[0] == found_facts(every).split()[0]
    assert found_facts(wrong).split()[0] != found_facts(every).split()[0]
    said = {
        "Confusion": f"{title_of('gpt2')} is right on",
        "Frequent answers": "of its wrong answers",
    }
    assert said[view] in headline(matrix) and "among these" not in headline(matrix)


def test_a_view_names_the_relations_of_which_not_all_runs_score_a_fact() -> None:
    def run(*counts: int) -> Any:
        parts = [SimpleNamespace(name=f"P{at}", n=n) for at, n in enumerate(counts)]
        return SimpleNamespace(relations=parts)

    def said(*runs: Any, chosen: Sequence[str] = ()) -> str:
        labels = {f"P{at}": f"P{at} label" for at in range(5)}
        choice: Any = SimpleNamespace(runs=runs, relations=chosen, labels=labels)
        return unscored(choice)

    assert said(run(1, 1, 1, 1, 1)) == ""
    assert said(run(1, 0, 1, 1, 1)) == "Left out, as no fact counts: **P1 label**."
    both = "Left out, as no fact is scored by all runs: "
    assert said(run(1, 0, 1, 1, 1), run(0, 1, 1, 1, 1)) == f"{both}**P0 label, P1 label**."
    assert said(run(1, 0, 1, 1, 1), run(1, 1, 1, 1, 1), chosen=("P0",)) == ""
    many = said(run(0, 0, 0, 0, 0), run(1, 1, 1, 1, 1))
    assert many == f"{both}**P0 label, P1 label, P2 label** and 2 more relations."


@pytest.mark.parametrize(
    ("source", "relations"),
    (("Google_RE", ["all of Google_RE"]), ("Squad", ["Squad"]), (None, None)),
)
def test_a_clicked_bar_of_a_source_shows_its_relations_in_this_model(
    gone: list[dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    source: str | None,
    relations: list[str] | None,
) -> None:
    def clicked(figure: Figure, _: object) -> dict[str, Any] | None:
        table = figure.frame
        if "source" not in table or "relation" not in table:
            return None
        rows = table[(table["source"] == source) | (table["source"].isna() & (source is None))]
        return next(row for row in rows.to_dict("records") if "minilm_mlm-" in row["run"])

    monkeypatch.setattr(figures, "mark_of", clicked)
    open_page("results", data="starter")
    assert gone[0].get("relations") == relations
    assert source or gone[0]["models"] == ["minilm-mlm"]
