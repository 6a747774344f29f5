"""Network addresses of clients, connections per address, and the server's start."""

import asyncio
import logging
from types import SimpleNamespace
from typing import Any

import pytest
from opening import open_page
from streamlit import file_util, net_util

from lama_core.cli import app as command
from lama_core.errors import UserError
from lama_core.queue import (
    LOOK_SECONDS,
    MAX_OF_ADDRESS,
    RESERVED,
    ROOM_SECONDS,
    SLOTS_FOR_OTHERS,
    Ticket,
    VisitorQueue,
)
from pages.ui import serve
from pages.ui.shared.addresses import network_address


@pytest.mark.parametrize(
    ("address", "counted"),
    [
        (None, "127.0.0.1"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("testclient", "testclient"),
    ],
)
def test_a_client_counts_by_its_address_or_its_network(address: str | None, counted: str) -> None:
    assert network_address(address) == counted


class Websocket:
    """A connection that is open until it is let go."""

    def __init__(self, address: str) -> None:
        self.client = SimpleNamespace(host=address)
        self.status: int | None = None
        self.left = asyncio.Event()

    async def close(self, code: int) -> None:
        self.status = code


def test_connections_of_one_address_are_bounded_at_once_and_in_a_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [1000.0]
    monkeypatch.setattr(serve.time, "monotonic", lambda: now[0])

    async def endpoint(websocket: Any) -> None:
        await websocket.left.wait()

    limited = serve.limited(endpoint, 2)
    tasks: list[asyncio.Task[None]] = []

    async def come(address: str, seconds: float = 0.0) -> Websocket:
        now[0] += seconds
        websocket = Websocket(address)
        tasks.append(asyncio.create_task(limited(websocket)))
        await asyncio.sleep(0)
        return websocket

    async def connect_all() -> list[int | None]:
        opened = [await come(address) for address in ("::1", "::2", "::3", "192.0.2.1")]
        opened[0].left.set()
        await tasks[0]
        opened += [await come("::4"), await come("::5", 61.0), await come("::6", 61.0)]
        for one in opened:
            one.left.set()
        await asyncio.gather(*tasks)
        return [one.status for one in opened]

    accepted, refused = None, serve.POLICY_VIOLATION
    assert asyncio.run(connect_all()) == [
        *(accepted, accepted, refused, accepted),  # the third of a network at once
        refused,  # one has left, but two came in this minute
        accepted,
        refused,  # two are connected
    ]


def test_a_query_waits_for_room_before_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = VisitorQueue(slots=8)
    fill(queue, MAX_OF_ADDRESS, "a")
    waits: list[float] = []
    clock = SimpleNamespace(monotonic=lambda: sum(waits), sleep=waits.append)
    monkeypatch.setattr("lama_core.queue.time", clock)
    with pytest.raises(UserError, match="from your network address"):
        queue._wait_for_room("a")
    assert ROOM_SECONDS < sum(waits) <= ROOM_SECONDS + LOOK_SECONDS
    waits.clear()
    queue._wait_for_room("b")
    assert not waits


def fill(queue: VisitorQueue, n_waiting: int, address: str) -> None:
    queue._waiting += [Ticket(f"{address} {n}", float(n), address) for n in range(n_waiting)]


def test_an_address_has_a_bound_and_a_share_is_for_those_without_a_query() -> None:
    queue = VisitorQueue(slots=8)
    fill(queue, MAX_OF_ADDRESS - 1, "a")
    queue._check_room("a")
    fill(queue, 1, "a")
    with pytest.raises(UserError, match="30 queries from your network address are waiting"):
        queue._check_room("a")
    fill(queue, queue.max_waiting - RESERVED - MAX_OF_ADDRESS, "b")
    with pytest.raises(UserError, match="The queue is full: 40"):
        queue._check_room("b")
    for number in range(RESERVED):
        queue._check_room(f"c {number}")
        fill(queue, 1, f"c {number}")
    with pytest.raises(UserError, match="The queue is full: 60"):
        queue._check_room("d")


def test_an_address_never_holds_all_slots_and_another_comes_first() -> None:
    queue = VisitorQueue(slots=4)
    fill(queue, 10, "a")
    queue._grant()
    assert queue.n_running == 4 - SLOTS_FOR_OTHERS
    fill(queue, 1, "b")
    queue._grant()
    assert [ticket.address for ticket in queue._running] == ["a", "a", "b"]
    fill(queue, 1, "c")
    queue._grant()
    assert [ticket.address for ticket in queue._running] == ["a", "a", "b", "c"]
    queue._running.clear()
    fill(queue, 10, "")  # the local user
    queue._grant()
    assert queue.n_running == 4


@pytest.mark.parametrize(
    "named",
    [
        {"LAMA_HOSTS": "lama.example.org, www.example.org", "SPACE_HOST": "me-lama.hf.space"},
        {"SPACE_HOST": "lama.example.org,www.example.org"},  # on Hugging Face Spaces
    ],
)
def test_a_public_app_answers_under_its_own_names(
    monkeypatch: pytest.MonkeyPatch, started: list[str], named: dict[str, str]
) -> None:
    for name, value in named.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(command, "_own_hosts", lambda: ["machine", "192.0.2.1"])
    command.open_app(public=True)
    hosts = {started[n + 1] for n, word in enumerate(started) if word == "--server.allowedHosts"}
    local = {"localhost", "127.0.0.1", "::1"}
    assert hosts == {*local, "lama.example.org", "www.example.org", "machine", "192.0.2.1"}
    assert started[started.index("--browser.serverAddress") + 1] == "lama.example.org"
    assert started[started.index("--server.address") + 1] == "0.0.0.0"
    started.clear()
    command.open_app(public=True, address="127.0.0.1")
    assert started[started.index("--server.address") + 1] == "127.0.0.1"


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The words of the command that replaces this process."""
    words: list[str] = []
    monkeypatch.setattr(command, "_become", words.extend)
    monkeypatch.setenv("LAMA_PUBLIC", "")
    return words


def test_the_servers_start_replaces_what_it_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    from streamlit.web.server.starlette import starlette_static_routes, starlette_websocket

    for module, name in (
        (starlette_websocket, "create_websocket_handler"),
        (starlette_static_routes, "create_streamlit_static_handler"),
    ):
        monkeypatch.setattr(module, name, getattr(module, name))
    monkeypatch.setattr(net_util, "get_external_ip", lambda: "203.0.113.7")
    before = starlette_websocket.create_websocket_handler
    serve.set_limits()
    assert starlette_websocket.create_websocket_handler is not before
    assert net_util.get_external_ip() is None
    files = starlette_static_routes.create_streamlit_static_handler(
        file_util.get_static_dir(), None
    )
    scope = {"type": "http", "method": "GET", "path": "/results", "headers": []}
    page = asyncio.run(files.get_response("results", scope))
    assert serve.BASE in page.body and page.headers["content-type"].startswith("text/html")
    icon = asyncio.run(files.get_response("favicon.png", {**scope, "path": "/favicon.png"}))
    assert str(icon.path).endswith("favicon.png")


def test_few_messages_of_one_line_are_logged_a_minute() -> None:
    def record(line: int, at: float) -> logging.LogRecord:
        made = logging.LogRecord("x", logging.WARNING, "server.py", line, "refused", (), None)
        made.created = at
        return made

    few = serve.FewOfEach(most=3)
    records = [record(1, n / 10) for n in range(9)]
    assert [few.keeps(one) for one in records] == [True] * 3 + [False] * 6
    assert [one.getMessage() for one in records[1:3]] == [
        "refused",
        "refused (more of this kind are dropped for a minute)",
    ]
    assert few.keeps(record(2, 1.0)) and few.keeps(record(1, 60.0))


def test_a_search_of_a_hundred_thousand_characters_is_dropped() -> None:
    app = open_page("facts", view="Frequent answers", find="x" * 100_000)
    assert app.text_input(key="find").value == ""
    assert not app.exception
