"""What can't be chosen says why, and what isn't here yet comes with the button that fetches it."""

from pathlib import Path

import pytest
from opening import open_page
from streamlit.testing.v1 import AppTest

from lama_core.datasets.library import download
from lama_core.datasets.library.download import GetRequest
from lama_core.scoring.prompt_choice import LPAQA_SETS, PROMPT_SETS
from pages.ui.shared import jobs, screens

pytestmark = pytest.mark.usefixtures("home")
TEMPLATE = "capital of [X] : [Y] ."  # has no verb that could be negated
TABLE = f"subject,object,template\nFrance,Paris,{TEMPLATE}\nPeru,Lima,{TEMPLATE}\n"
MISSING = """
from lama_core.candidates.lists import named_candidates
from pages.ui.shared.messages import errors_shown

for _ in range(2):
    with errors_shown():
        named_candidates("lama", [])
"""


def test_a_run_form_offers_what_the_data_can_answer_and_says_why_not_the_rest(
    tmp_path: Path,
) -> None:
    (tmp_path / "mine.csv").write_text(TABLE)
    download.import_dataset(tmp_path / "mine.csv")
    app = open_page("data", **screens.NEW_RUN)
    app.selectbox(key="run_prompts").set_value("ten-sentences").run()
    app.selectbox(key="data").set_value("mine").run()
    assert not app.exception and not app.error
    prompts = app.selectbox(key="run_prompts")
    assert prompts.options == ["manual", "paraphrases", "misprimed"] and prompts.value == "manual"
    assert app.selectbox(key="run_candidates").options == ["common", "words", "full", "relation"]
    said = " ".join(text.value for text in app.caption).replace("\\", "")
    for name in ("sentences", "ten-sentences", "negated"):
        assert f"({PROMPT_SETS[name].lacking})" in said
    assert f"**{', '.join(LPAQA_SETS)}** (not installed)" in said


def test_what_is_not_here_is_fetched_by_one_button_however_often_it_is_missed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[object] = []
    monkeypatch.setattr(jobs, "start", lambda name, request: asked.append(request))
    app = AppTest.from_string(MISSING, default_timeout=60).run()
    assert [fault.value for fault in app.error] == [
        "The published LAMA vocabulary is not installed\\."
    ] * 2
    (button,) = app.button
    button.click().run()
    assert asked == [GetRequest("lama")]
