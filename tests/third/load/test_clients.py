"""Visitors of a running app: what they note, and what of it went wrong."""

import asyncio
import random
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
