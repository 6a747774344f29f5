"""The Prompts page without a browser: every tab draws, and the first paint needs no torch."""

import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

import pytest
from opening import open_page
from probe_fakes import CITIES, hash_model, write_dataset
from streamlit.testing.v1 import AppTest

from lama_core.probes.prompts.plan import plan
from lama_core.probes.prompts.request import StudyRequest
from lama_core.probes.prompts.spec import Study, list_studies
from lama_core.runs.execute import execute
from lama_core.runs.find import bundled_dir
from pages.ui.prompts import study_choice
from pages.ui.prompts.published import TABLES, PaperTable, python_of
from pages.ui.prompts.study_choice import PromptsChoice, load_relations
from pages.ui.prompts.view import VIEWS
from pages.ui.shared import screens


@pytest.fixture
def open_on(home: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., AppTest]:
    """`open_on(which, view)`: the view, on the first study for which `which` holds."""

    def opened(which: Callable[[Study], bool], view: str, **params: str) -> AppTest:
        def first(studies: Sequence[Study]) -> Study:
            return next(filter(which, studies))

        monkeypatch.setattr(study_choice, "default_study", first)
        app = open_page("results", tab="Prompts", prompts_view=view, **params)
        assert not app.error
        return app

    return opened


def test_prompts_that_tell_a_left_to_right_model_nothing_are_marked(
    open_on: Callable[..., AppTest],
) -> None:
    app = open_on(
        lambda study: study.info.context == "left",
        screens.ONE_RELATION,
        relation="P36 capital",
        set="All",
    )
    table = next(one.value for one in app.dataframe if "tells" in one.value)
    blind = [text.index("[Y]") < text.index("[X]") for text in table["prompt"]]
    assert 0 < sum(blind) < len(blind)
    assert [bool(told) for told in table["tells"]] == blind
    said = f"{sum(blind)} of {len(blind)} prompts hide the subject"
    assert any(said in caption.value for caption in app.caption)


def test_a_typed_prompt_without_an_object_is_refused_in_one_sentence(
    open_on: Callable[..., AppTest],
) -> None:
    app = open_on(lambda study: study.info.model == "minilm-mlm", screens.ONE_RELATION)
    app.text_input(key="try").set_value("The chief city of [X] is big.").run()
    assert ["has no \\[Y\\]" in fault.value for fault in app.error] == [True]


def test_a_prompt_of_the_study_is_compared_with_the_manual_one_at_once(
    open_on: Callable[..., AppTest],
) -> None:
    app = open_on(
        lambda study: study.info.model == "smollm2-135m",
        screens.ONE_RELATION,
        relation="P17 country",
    )
    study = next(one for one in list_studies([bundled_dir()]) if one.info.model == "smollm2-135m")
    relation = study.relation("P17")
    template = app.text_input(key="try").value
    own, manual = relation.pool.find(template), relation.pool.manual
    assert own is not None and manual is not None and own != manual
    right = relation.ranks == 1
    gained, lost = (right[own] & ~right[manual]).sum(), (right[manual] & ~right[own]).sum()
    points = 100 * (gained - lost) / len(relation.test)
    (said,) = (one.value for one in app.markdown if "The example is better" in one.value)
    assert f"is {points:.1f} points higher" in said and f"same {len(relation.test)} facts" in said
    values = [metric.value for metric in app.metric]
    assert values == [f"{100 * right[one].mean():.1f} %" for one in (own, manual)]
    flips, board, *_ = (one.value for one in app.dataframe)
    assert board["test"].is_monotonic_decreasing
    place = list(board["prompt"]).index(template)
    assert board["difference"].iloc[place] == pytest.approx(points, abs=0.06)
    n = len(relation.pool.members("all"))
    assert len(board) == n
    assert any(f"place {place + 1} of {n}" in one.value for one in app.markdown)
    assert flips["the example"].str.endswith(" ✓").sum() == gained
    assert flips["manual prompt"].str.endswith(" ✓").sum() == lost


def test_every_tab_of_a_filtered_study_is_filtered(
    open_on: Callable[..., AppTest], tmp_path: Path
) -> None:
    data = write_dataset(tmp_path / "lama", n_facts=0)
    facts = [
        {"uuid": f"n{n}", "sub_label": f"Land {n % 4}", "obj_label": CITIES[n // 4]}
        for n in range(160)  # every object is right for every subject
    ]
    (data / "TREx" / "P47.jsonl").write_text("\n".join(map(json.dumps, facts)), encoding="utf-8")
    _write_mined(tmp_path / "own")
    request = StudyRequest(
        dataset=str(data), model="hash", relations=("P47",), prompts=tmp_path / "own",
        ranking="filtered", combinations=("manual", "mine+man"),
    )  # fmt: skip
    made = Study(execute(plan(request, load=hash_model)[0], load=hash_model))
    study = made.relation("P47")
    found = study.ensemble("mine+man", "optimised")
    assert found is not None
    right = 100 * (found[1] == 1).mean()
    raw = 100 * (study.ensemble_rows["rank_raw"] == 1).mean(axis=1)
    assert right not in raw
    for view, part in ((VIEWS[0], ""), (VIEWS[1], screens.ENSEMBLES), (VIEWS[2], "")):
        parts = {"relation_part": part} if part else {}
        app = open_on(lambda study: not study.info.bundled, view, **parts)
        assert any("**filtered ranking**" in caption.value for caption in app.caption)
        if part:
            table = app.dataframe[0].value.set_index("weights")["P@1"]
            assert table["optimised"] == pytest.approx(right)
            assert any("filtered ranking; log-linear" in one.value for one in app.caption)


def _write_mined(folder: Path, relation: str = "P47") -> None:
    (folder / "mine").mkdir(parents=True)
    rows = [json.dumps({"template": text}) for text in ("[X] , near [Y] .", "[X] and [Y] .")]
    (folder / "mine" / f"{relation}.jsonl").write_text("\n".join(rows), encoding="utf-8")


def _in_the_paper(open_on: Callable[..., AppTest], table: str) -> tuple[AppTest, str]:
    """The paper's table on the first study, and all that is written around it."""
    app = open_on(
        lambda study: True, screens.ALL_RELATIONS, prompts_part="In the paper", table=table
    )
    return app, " ".join(one.value for one in (*app.markdown, *app.caption))


def test_the_papers_tables_have_the_studys_lines_and_it_is_said_what_differs(
    open_on: Callable[..., AppTest],
) -> None:
    app, said = _in_the_paper(open_on, "table4")
    ours, theirs = (one.value for one in app.dataframe)
    assert set(ours["id"]) == {"P17", "P19", "P30", "P36", "P37", "P103", "P106", "P1376"}
    assert dict(zip(theirs["id"], theirs["gain"], strict=True))["P140"] == 60.0
    assert (ours["test facts"] > 0).all() and ours["gain"].is_monotonic_decreasing
    assert "starter facts" in said and "not BERT" in said and "Not comparable" in said
    for table, line in (("table8", "MiniLM-MLM"), ("table12", "Mine+Man")):
        ours = _in_the_paper(open_on, table)[0].dataframe[0].value
        assert line in set(ours.iloc[:, 0]) and (ours["test facts"] > 0).all()
    app, said = _in_the_paper(open_on, "table9")
    (theirs,) = (one.value for one in app.dataframe)
    assert list(theirs.columns) == ["model", "Man+Para"]  # the others can't be read
    assert "reproduce jiang2020 --table table9" in said and "illegible in the copy" in said


@pytest.mark.parametrize(
    "table", [one for one in TABLES.values() if one.python], ids=lambda one: one.id
)
def test_the_lines_of_python_give_the_table(home: Path, table: PaperTable) -> None:
    study = bundled_study()
    relation = study.relation(study.relations[0])
    choice = PromptsChoice(study, relation, "mine")
    lines = python_of(choice, table, ours=True)
    body, last = lines.split("others = ")
    known = names_after(f"{body}others = {last.partition(chr(10))[0]}")
    assert table.ours is not None
    exec(f"found = {table.python}", named := {**known})
    assert bool(named["found"]) == (not table.ours(choice, load_relations(study.info)).empty)


@lru_cache
def bundled_study() -> Study:
    """Read once for all tables."""
    return list_studies([bundled_dir()])[0]


@lru_cache
def names_after(lines: str) -> dict[str, object]:
    """What lines of Python name; most tables have the same lines but the last."""
    known: dict[str, object] = {}
    exec(lines, known)
    return known
