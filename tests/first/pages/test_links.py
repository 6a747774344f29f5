"""An address holds what its screen depends on, also what it would show by default."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from opening import open_page, shared
from streamlit.proto.ClientState_pb2 import ContextInfo

from lama_core.probes.prompts import spec as prompt_runs
from pages.ui.prompts import study_choice as prompts_choice
from pages.ui.shared import links, screens
from pages.ui.shared.share import qr_code
from pages.ui.shared.url_state import title_of
from tools.bench.made_up import make_runs

pytestmark = pytest.mark.usefixtures("home")
ABSENT = "bert-base-cased"  # not on a fresh machine: it is offered, and nothing is scored


def test_the_address_of_prompts_holds_its_study_when_another_comes_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = open_page("prompts")
    first, second = (study.info.id for study in prompt_runs.list_studies())
    shown = {first, second} - {app.selectbox(key="study").value}
    (study,) = shared(app)["study"]

    def other(studies: Sequence[prompt_runs.Study]) -> prompt_runs.Study:
        return next(one for one in studies if one.info.id in shown)

    monkeypatch.setattr(prompts_choice, "default_study", other)
    assert open_page("prompts").selectbox(key="study").value in shown
    again = open_page("prompts", study=study)
    assert again.selectbox(key="study").value not in shown
    by_id = open_page("prompts", study=shown.copy().pop())
    assert by_id.selectbox(key="study").value in shown


def test_an_address_shows_its_runs_where_there_are_more(home: Path) -> None:
    folder = home / "data" / "runs"
    made = make_runs(folder, n_relations=2, n_facts=40)
    last = made[-1].info.folder
    last.rename(home / last.name)
    before = open_page("results", data="made-up")
    asked = shared(before)
    (home / last.name).rename(last)

    plainly = open_page("results", data="made-up")
    assert title_of(made[-1].info.model) in plainly.dataframe[0].value
    linked = open_page("results", **asked)
    assert linked.dataframe[0].value.equals(before.dataframe[0].value)
    assert any("1 other run not shown" in text.value for text in linked.caption)
    linked.run()
    assert linked.dataframe[0].value.equals(before.dataframe[0].value)


def test_what_an_address_asks_for_and_is_not_here_is_said_and_ids_are_enough() -> None:
    app = open_page("results", data="<b>gone</b>")
    assert "gone" in app.info[0].value and "<b>" not in app.info[0].value
    assert shared(app)["data"] == ["starter"]
    app = open_page("results", data="starter", relations="P36")
    assert app.multiselect(key="relations").value == ["P36"]
    assert shared(app)["relations"] == ["P36"], "the label would make the address longer"


def test_an_emptied_gold_stays_empty_by_its_address() -> None:
    app = open_page("cloze", models=ABSENT)
    assert shared(app)["gold"] == [app.text_input(key="gold").value]
    text = shared(app)["text"]
    app.text_input(key="gold").input("").run()
    assert shared(app)["text"] == text
    assert open_page("cloze", models=ABSENT, text=text).text_input(key="gold").value == ""


@pytest.mark.parametrize("root", ["", "/here", "/results", "/courses/help"])
@pytest.mark.parametrize("now", ["", "/", "/results", "/facts"])
def test_an_address_stands_below_where_the_app_is_served(
    root: str, now: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = ContextInfo(url=f"https://lama.example{root}{now}")
    monkeypatch.setattr(
        links.st, "session_state", {links.ROOT: links.root_of(browser, now.strip("/"))}
    )
    assert links.path_of(screens.RESULTS) == f"{root}/results"
    assert links.path_of(screens.ASK) == f"{root}/"


def test_a_code_holds_modules_only_and_too_long_an_address_has_none() -> None:
    assert "script" not in qr_code("https://lama.example/?text=<script>")
    assert qr_code("x" * 2953).startswith("<svg")
    assert qr_code("x" * 2954) == ""
