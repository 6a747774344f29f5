"""Queries in the scoring process: the same answers, and what happens when either process ends."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest
import service_fakes
from service_fakes import (
    call_often,
    end,
    fail,
    load_until_refused,
    loads_here,
    process_id,
    running,
    unpicklable,
)
from until import until

from lama_core.errors import NotFetchedError, UserError
from lama_core.models.server.completions import RequestRefused
from lama_core.paths import IMPORT_ROOT
from lama_core.probes.prompts.accuracy_growth import PromptTrial
from lama_core.progress import Progress
from lama_core.queries.analogy import SolveRequest
from lama_core.queries.blank_answers import ModelAnswer
from lama_core.queries.cloze import ClozeRequest
from lama_core.queries.table import kind_of
from lama_core.scoring.limits import UNLIMITED
from lama_core.scoring.shared_fields import CandidateSettings
from lama_core.service import process, queries
from lama_core.service.process import ScoringProcess
from lama_core.service.queries import LOCAL, Visitor
from lama_core.types import Fact, Relation

EMBEDDED = "minilm-mlm"


SETTINGS = CandidateSettings(models=(EMBEDDED,))


def asked(request: Any) -> tuple[Any, ...]:
    """The arguments of a query to the embedded model."""
    return request, EMBEDDED, kind_of(request).prepare(request, UNLIMITED)


CLOZE = asked(ClozeRequest("Dante was born in ___.", models=(EMBEDDED,), gold="Florence"))


@pytest.fixture(scope="module")
def scorer() -> Iterator[ScoringProcess]:
    """A scoring process, which the end of the tests ends."""
    with pytest.MonkeyPatch.context() as patch:
        folder = str(Path(service_fakes.__file__).parent)
        patch.setenv("PYTHONPATH", folder, prepend=os.pathsep)
        found = ScoringProcess()
        yield found
        found.stop()


def test_answers_are_those_of_the_calling_process(scorer: ScoringProcess) -> None:
    here, there = (
        run(LOCAL, queries.answer, CLOZE, {}) for run in (queries.answer_query, scorer.run)
    )
    assert isinstance(there, ModelAnswer) and there == here
    analogy = asked(SolveRequest(("rome", "italy", "paris", "___"), models=(EMBEDDED,)))
    solved = [run(LOCAL, queries.answer, analogy, {}) for run in (queries.answer_query, scorer.run)]
    assert solved[0] == solved[1]
    first, second = (
        run(LOCAL, queries.candidates_of, (SETTINGS,), {})
        for run in (queries.answer_query, scorer.run)
    )
    assert first == second
    vectors = scorer.run(LOCAL, queries.word_vectors, (EMBEDDED, ["rome", "italy"]), {})
    assert vectors.shape == (2, 384) and vectors.dtype == np.float32
    ((held,), n_bytes, _) = scorer.run(LOCAL, queries.loaded_models, (), {})
    assert held.name == EMBEDDED and held.n_bytes == n_bytes
    (identity,) = scorer.run(LOCAL, queries.identities, ([(EMBEDDED, held.precision)],), {})
    assert identity
    scorer.run(LOCAL, queries.drop_model, (held,), {})
    assert scorer.run(LOCAL, queries.loaded_models, (), {})[0] == ()


def test_a_prompt_is_tried_with_facts_that_were_prepared_there(scorer: ScoringProcess) -> None:
    facts = [Fact("1", "France", "P36", "Paris", "x"), Fact("2", "Italy", "P36", "Rome", "x")]
    words = scorer.run(LOCAL, queries.candidates_of, (SETTINGS,), {})
    relation, template = Relation("P36", "x"), "The capital of [X] is [Y]."
    arguments = (EMBEDDED, "auto", relation, facts, words, "both")
    how = {"template": template, "known": None}
    prepared = scorer.run(LOCAL, queries.prompt_facts, arguments, how)
    assert [fact.object for fact in prepared.facts] == ["Paris", "Rome"]
    trial = PromptTrial(template, 2)
    tried = (EMBEDDED, "auto", trial, prepared, "both", "raw")
    found = scorer.run(LOCAL, queries.extended_trial, tried, {"n_facts": 2, "order": (0, 1)})
    assert [(one.gold, one.rank) for one in found.asked] == [("Paris", 1), ("Rome", 1)]


def test_errors_arrive_with_what_they_say(scorer: ScoringProcess) -> None:
    with pytest.raises(UserError, match="Unknown model 'nothing'"):
        scorer.run(LOCAL, queries.has_word_vectors, ("nothing",), {})
    with pytest.raises(NotFetchedError, match="data get lpaqa") as raised:
        scorer.run(LOCAL, fail, (NotFetchedError("LPAQA's prompts are", "lpaqa"),), {})
    assert raised.value.source == "lpaqa"
    with pytest.raises(RequestRefused, match="the server needs a key") as refused:
        scorer.run(LOCAL, fail, (RequestRefused("the server needs a key", 401),), {})
    assert refused.value.status == 401
    with pytest.raises(FileNotFoundError):  # not taken for a lost connection
        scorer.run(LOCAL, fail, (FileNotFoundError(2, "none", "file"),), {})
    with pytest.raises(RuntimeError, match="cannot pickle"):
        scorer.run(LOCAL, unpicklable, (), {})
    with pytest.raises(ZeroDivisionError, match="a fault"):
        scorer.run(LOCAL, fail, (ZeroDivisionError("a fault"),), {})


def test_a_visitor_who_leaves_ends_the_query(scorer: ScoringProcess) -> None:
    def leave(step: Progress) -> None:
        raise KeyboardInterrupt

    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            scorer.run(LOCAL, call_often, (), {"on_progress": leave})
    until(lambda: not scorer.run(LOCAL, running, (), {}))


def test_a_visitors_wait_for_a_model_is_limited_there(scorer: ScoringProcess) -> None:
    with pytest.raises(UserError, match="wasn't loaded within 0 seconds"):
        scorer.run(Visitor("203.0.113.7", 0.0), load_until_refused, (), {})
    assert scorer.run(LOCAL, loads_here, (), {})
    assert not scorer.run(Visitor("203.0.113.7", 600.0), loads_here, (), {})


def test_after_an_unexpected_end_the_next_query_is_answered(scorer: ScoringProcess) -> None:
    first = scorer.run(LOCAL, process_id, (), {})
    assert scorer.run(LOCAL, process_id, (), {}) == first != os.getpid()
    with pytest.raises(UserError, match="It starts again with the next query: reload"):
        scorer.run(LOCAL, end, (), {})
    psutil.Process(first).wait(60)
    assert scorer.run(LOCAL, process_id, (), {}) != first
    assert scorer.run(LOCAL, queries.answer, CLOZE, {}).blanks[0].predictions


def test_a_process_that_cannot_start_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "lama_core" / "__init__.py"
    package.parent.mkdir()
    package.write_text("raise ImportError")
    monkeypatch.setattr(process, "IMPORT_ROOT", tmp_path)
    with pytest.raises(UserError, match="can't start"):
        ScoringProcess().launch()

    def ended(*args: Any, **kwargs: Any) -> "subprocess.Popen[str]":
        child = subprocess.Popen(*args, **kwargs)
        child.wait()
        return child

    monkeypatch.setattr(process, "subprocess", SimpleNamespace(Popen=ended, PIPE=subprocess.PIPE))
    with pytest.raises(UserError, match="can't start"):  # it ended before it was written to
        ScoringProcess().launch()


APP = """
import sys, threading
from lama_core.service import process, queries
process.start()
model = "minilm-mlm"
print(process.run_query(queries.LOCAL, queries.loaded_models)[0], flush=True)
threading.Event().wait()
"""


@pytest.mark.parametrize("how", ["SIGTERM", "SIGKILL"])
def test_it_ends_with_the_app(how: str) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # a short path
        end_app(getattr(signal, how), Path(folder))


def end_app(how: signal.Signals, folder: Path) -> None:
    """End an app and expect its scoring process to end and to leave no file in `folder`."""
    environment = {**os.environ, "PYTHONPATH": str(IMPORT_ROOT), "TMPDIR": str(folder)}
    app = subprocess.Popen(
        [sys.executable, "-c", APP], env=environment, stdout=subprocess.PIPE, text=True
    )
    assert app.stdout and app.stdout.readline() == "()\n"
    (child,) = psutil.Process(app.pid).children()
    assert any(folder.glob("lama-explorer-*/queries-*"))
    app.send_signal(how)
    app.wait()
    psutil.wait_procs([child], timeout=60)
    assert not child.is_running() and not any(folder.iterdir())


def test_without_a_process_queries_run_here() -> None:
    assert process.run_query(LOCAL, process_id) == os.getpid()
