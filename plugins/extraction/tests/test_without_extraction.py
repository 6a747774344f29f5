"""Runs that stop are resumed; without this plug-in they are shown, and what makes them says so."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from births import write_births, write_text
from calling import call, told
from opening import open_page, said

from lama_core.candidates.columns import Columns
from lama_core.errors import UserError
from lama_core.probes.kinds import request_of, saved_request
from lama_core.requests import arguments
from lama_core.runs.find import load_run
from lama_core.runs.manage import list_runs
from lama_core.scoring.queries import Question
from lama_extraction.request import ExtractRequest
from lama_extraction.spec import LinkedExtractor

pytestmark = pytest.mark.usefixtures("home")
NEEDS = "needs the plug-in extraction, which is part of lama-explorer but not installed here"


@pytest.fixture
def request_(tmp_path: Path) -> ExtractRequest:
    return ExtractRequest(dataset=str(write_births(tmp_path)), corpus=str(write_text(tmp_path)))


def stop(request: ExtractRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Make the first run, and stop in the second part of the second; return its folder."""
    find = LinkedExtractor.find
    monkeypatch.setattr("lama_extraction.spec.PART", 4)

    def found(self: LinkedExtractor, question: Question, columns: Columns) -> Mapping[int, float]:
        if self.name == "RE_o" and question.fact.subject == "Person5":
            raise KeyboardInterrupt
        return find(self, question, columns)

    with monkeypatch.context() as patch:
        patch.setattr(LinkedExtractor, "find", found)
        assert call(*arguments(request))[0] == 130
    (unfinished,) = [run.name for run in list_runs.answer(list_runs.request()) if not run.info]
    return unfinished


def test_a_stopped_run_is_resumed(
    request_: ExtractRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = stop(request_, monkeypatch)
    stored, _ = saved_request(name)
    assert stored == request_
    naive, oracle = told(*arguments(stored))
    assert f"{oracle['run']}.part" == name
    assert (naive["p_at_1"], oracle["p_at_1"]) == (7 / 8, 7 / 8)
    info = load_run(oracle["run"]).info
    assert info.request is not None and info.request.package == ""
    again = request_of(info)
    assert again is not None and replace(again, dataset=request_.dataset) == request_


def test_its_runs_are_shown_without_it(
    request_: ExtractRequest, monkeypatch: pytest.MonkeyPatch, take_away: Callable[[], None]
) -> None:
    unfinished = stop(request_, monkeypatch)
    (finished,) = [run.name for run in list_runs.answer(list_runs.request()) if run.state == "whole"
                   and not run.bundled]  # fmt: skip
    shown = [("results", finished), ("results", finished, "--by", "relation"), ("runs", "list")]
    before = [told(*words) for words in shown]
    take_away()
    assert [told(*words) for words in shown] == before
    assert before[0][0]["p_at_1"] == 7 / 8
    with pytest.raises(UserError, match=f"extract {NEEDS}"):
        request_of(load_run(finished).info)
    with pytest.raises(UserError, match=f"extract {NEEDS}"):
        saved_request(unfinished)
    for run in (finished, unfinished):
        app = open_page("data", tab="Runs", run=run)
        assert [one.value for one in app.error] == []
        assert said(app).count(NEEDS) == 2  # of the finished and of the unfinished run
        assert "resume" not in " ".join(button.key or "" for button in app.button)
    assert not open_page("results", runs=[finished]).error
