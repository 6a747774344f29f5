"""Visitors of a running app: what they note, and what of it went wrong."""

import asyncio
import random
import time
from pathlib import Path

import psutil
import pytest
from load import clients
from streamlit.proto.Alert_pb2 import Alert
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from until import until

MAX_LEFT = 1 << 20  # bytes of a closed session


def alert(body: str, format: "Alert.Format.ValueType" = Alert.ERROR) -> ForwardMsg:
    message = ForwardMsg()
    message.delta.new_element.alert.body = body
    message.delta.new_element.alert.format = format
    return message


@pytest.mark.parametrize(
    ("message", "faults"),
    (
        (alert(r"No room left\."), ["error: No room left."]),
        (alert("LPAQA's prompts are not installed."), []),
        (alert("Fewer than ten facts.", Alert.INFO), []),
        (ForwardMsg(script_finished=ForwardMsg.FINISHED_SUCCESSFULLY), []),
        (
            ForwardMsg(script_finished=ForwardMsg.FINISHED_WITH_COMPILE_ERROR),
            ["the script did not compile"],
        ),
    ),
)
def test_only_a_failure_is_a_fault(message: ForwardMsg, faults: list[str]) -> None:
    drawn = clients.Drawn()
    drawn.take(message)
    assert drawn.faults == faults


def test_a_run_that_gives_way_to_another_has_not_finished() -> None:
    drawn = clients.Drawn()
    finished = []
    for ending in (
        ForwardMsg.FINISHED_EARLY_FOR_RERUN,
        ForwardMsg.FINISHED_SUCCESSFULLY,
        ForwardMsg.FINISHED_WITH_COMPILE_ERROR,
    ):
        drawn.take(ForwardMsg(script_finished=ending))
        finished.append(drawn.finished)
    assert finished == [False, True, True]


def test_an_answer_after_over_a_minute_is_a_hang() -> None:
    record = clients.Record(began=time.monotonic() - 300)
    record.note("data", "", 59.0, [])
    record.note("data", "", 61.0, [])
    record.note("data", "", 250.0, [])  # asked in the first minute
    assert record.faults == ["data?: hang: 61 s", "data?: hang: 250 s"]
    assert clients.describe_times(record.seconds["data"]) == (
        "2 asked, p50 60.0 s, p95 60.9 s, slowest 61.0 s"
    )
    assert record.seconds["data, first minute"] == [250.0]


def test_visitors_of_a_running_app_are_answered_until_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "LOOK_SECONDS", 0.2)
    monkeypatch.setattr(clients, "MAX_SECONDS", clients.LOST_SECONDS)  # no answer is too slow
    with clients.running_app(tmp_path / "home") as app:
        record = clients.visit(app, 3, 5.0)
        assert record.faults == []
        assert sum(map(len, record.seconds.values())) >= 3
        assert max(record.memory) > 50e6
        app.process.kill()
        until(lambda: app.process.status() == psutil.STATUS_ZOMBIE)
        lost = clients.visit(app, 1, 0.5)
    assert any("lost: " in fault for fault in lost.faults)
    assert "the app ended" in lost.faults


def test_sessions_that_are_closed_leave_little(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "MAX_SECONDS", clients.LOST_SECONDS)  # no answer is too slow

    async def open_and_close(app: clients.App, n: int) -> int:
        for number in range(n):
            visitor = clients.Client(app, record, random.Random(number))
            await visitor.open(("models", "data")[number % 2])
        return app.resident()

    record = clients.Record()
    with clients.running_app(tmp_path / "home") as app:
        warm = asyncio.run(open_and_close(app, 10))
        left = asyncio.run(open_and_close(app, 15)) - warm
    assert record.faults == []
    assert left / 15 < MAX_LEFT, f"{left:,} bytes"
