"""Visitors of a running app: what they ask, what they note, and what of it is a fault."""

import asyncio
from pathlib import Path

import psutil
import pytest
from streamlit.proto.Alert_pb2 import Alert
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from tools.stress import clients
from tools.stress.campaign import Outcome


def alert(body: str, format: "Alert.Format.ValueType" = Alert.ERROR) -> ForwardMsg:
    message = ForwardMsg()
    message.delta.new_element.alert.body = body
    message.delta.new_element.alert.format = format
    return message


@pytest.mark.parametrize(
    ("message", "faults"),
    (
        (alert(r"No room left\."), [("error", "No room left.")]),
        (alert("LPAQA's prompts are not here yet."), []),
        (alert("Fewer than ten facts.", Alert.INFO), []),
        (ForwardMsg(script_finished=ForwardMsg.FINISHED_SUCCESSFULLY), []),
        (
            ForwardMsg(script_finished=ForwardMsg.FINISHED_WITH_COMPILE_ERROR),
            [("traceback", "the script did not compile")],
        ),
    ),
)
def test_only_a_failure_is_a_fault(message: ForwardMsg, faults: list[tuple[str, str]]) -> None:
    drawn = clients.Drawn()
    drawn.take(message, "cloze")
    assert [(one.what, one.said) for one in drawn.faults] == faults


def test_a_run_that_gives_way_to_another_has_not_finished() -> None:
    drawn = clients.Drawn()
    finished = []
    for ending in (
        ForwardMsg.FINISHED_EARLY_FOR_RERUN,
        ForwardMsg.FINISHED_SUCCESSFULLY,
        ForwardMsg.FINISHED_WITH_COMPILE_ERROR,
    ):
        drawn.take(ForwardMsg(script_finished=ending), "cloze")
        finished.append(drawn.finished)
    assert finished == [False, True, True]


def test_an_answer_after_over_a_minute_is_a_hang() -> None:
    record = clients.Record(Outcome("clients"), lambda n: None)
    record.note("data", "data?", 59.0, [])
    record.note("data", "data?", 61.0, [])
    assert record.outcome.counts == {"answered": 1, "hang": 1}
    assert clients.describe_times(record.seconds["data"]) == (
        "2 asked, p50 60.0 s, p95 60.9 s, slowest 61.0 s"
    )


@pytest.mark.slow
def test_visitors_of_a_running_app_are_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "LOOK_SECONDS", 0.2)
    told: list[int] = []
    outcome = clients.run(3, 17, tmp_path / "visits", told.append, seconds=5)
    assert outcome.faults == []
    assert outcome.counts == {"answered": outcome.n}
    assert told == list(range(1, outcome.n + 1))
    assert outcome.n >= 3
    assert outcome.peak > 50e6
    assert {"memory", "processors"} < set(outcome.figures)
    assert outcome.figures["models that answered"].startswith("minilm-mlm")


@pytest.mark.slow
def test_an_app_that_ends_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def open_and_kill(client: clients.Client, page: str, until: float = 0.0) -> None:
        client.app.process.kill()
        while client.app.process.status() != psutil.STATUS_ZOMBIE:
            await asyncio.sleep(0.01)
        await asking(client, page, until)

    asking = clients.Client.open
    monkeypatch.setattr(clients.Client, "open", open_and_kill)
    monkeypatch.setattr(clients, "KEPT_SECONDS", 0)
    outcome = clients.run_sessions(1, 17, tmp_path / "killed", lambda n: None)
    assert [fault.what for fault in outcome.faults] == ["lost", "lost"]
    assert outcome.faults[1].said == "the app ended"
    assert outcome.counts == {"lost": 1}


@pytest.mark.slow
def test_sessions_that_are_closed_leave_little(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "ROUND", ("models", "data"))
    monkeypatch.setattr(clients, "WARM_SESSIONS", 10)
    monkeypatch.setattr(clients, "KEPT_SECONDS", 0)
    outcome = clients.run_sessions(25, 17, tmp_path / "sessions", lambda n: None)
    assert outcome.faults == []
    assert outcome.counts == {"answered": 25}
    assert outcome.figures["left by a session"].endswith(" kB")
