"""Many visitors at once: websocket clients that talk to a running app as browsers do.

    python tests/load/clients.py --visitors 30 --seconds 300 [--bare]

A browser opens a websocket and asks for a page by its address (`rerun_script`); the server answers
with what is to be drawn, message by message, and with `script_finished`. A changed widget is the
same request again with the widget's new value. Streamlit's own classes are the messages, so that a
new version of it can't be misread. Not simulated: the files of the page itself, and pages that ask
again by themselves while a job runs.

Prints how long answers took by page, what went wrong, and the app's memory and CPU time. The exit
status is 1 if anything went wrong. With `--bare` the same visitors meet the smallest app that gives
these answers (`bare/app.py`): what this machine can do.
"""

import argparse
import asyncio
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode

import numpy as np
import psutil
from streamlit.proto.Alert_pb2 import Alert
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus, WebSocketException
from websockets.sync.client import connect as sync_connect

ROOT = Path(__file__).resolve().parents[2]
LOOK_SECONDS = 2.0  # what a visitor looks at an answer for, drawn evenly from none to twice this
FIRST_SECONDS = 60.0
START_SECONDS = 180.0
MAX_SECONDS = 60.0  # a longer answer is a fault
LOST_SECONDS = 300.0  # after so long a visitor gives up
MAX_BYTES = 4 << 30
SENTENCES = (
    "{} is the capital of ___.", "In {} people speak ___.", "The river in {} is called the ___.",
    "{} lies in the country of ___.", "The mayor of {} was born in ___.",
)  # fmt: skip
PLACES = (
    "Paris", "Rome", "Madrid", "Berlin", "Vienna", "Lisbon", "Athens", "Warsaw", "Prague", "Oslo",
    "Cairo", "Tokyo", "Beijing", "Delhi", "Lima", "Bogota", "Ankara", "Riga",
)  # fmt: skip
MODELS = ("minilm-mlm", "smollm2-135m")
# Half of all screens are the tab Sentence, where the models answer. The rest: addresses of tabs, by
# a name for the report, and the path of their page where it has another name.
TABS = {
    "results": (
        "", "tab=Compare", "large=P%40k+curves", "tab=More&chart=Rank+distribution",
        "tab=More&chart=Calibration", "tab=More&chart=Analogy+probes",
    ),
    "wrong answers": (
        "tab=Wrong+answers", "tab=Wrong+answers&view=Confusion",
        "tab=Wrong+answers&view=Wrong+answers",
    ),
    "prompts": (
        "tab=Prompts", "tab=Prompts&prompts_view=One+relation",
        "tab=Prompts&prompts_view=One+fact",
    ),
    "analogy": ("tab=Analogy", "tab=Analogy&analogy=Score"),
    "data": ("", "tab=Runs"),
    "models": ("",),
}  # fmt: skip
CLOZE = "cloze"
PATHS = {CLOZE: "", "analogy": "", "wrong answers": "results", "prompts": "results"}


@dataclass
class Drawn:
    """What came of a request: what went wrong, and what can be changed next.

    choices: by the address's parameter, the widget's id and the values that it offers.
    """

    faults: list[str] = field(default_factory=list)
    choices: dict[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    finished: bool = False

    def take(self, message: ForwardMsg) -> None:
        """Note a message of the server."""
        kind = message.WhichOneof("type")
        if kind == "new_session":
            self.finished, self.choices = False, {}
        elif kind == "script_finished":
            # A run that ends early gives way to one that the script itself asked for.
            self.finished = message.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN
            if message.script_finished == ForwardMsg.FINISHED_WITH_COMPILE_ERROR:
                self.faults.append("the script did not compile")
        elif kind == "delta" and message.delta.WhichOneof("type") == "new_element":
            self._take_element(message.delta.new_element)

    def _take_element(self, element: Any) -> None:
        match element.WhichOneof("type"):
            case "exception":
                self.faults.append(f"traceback: {element.exception.message}")
            case "alert" if element.alert.format == Alert.ERROR:
                said = element.alert.body.replace("\\", "")
                if "not installed" not in said:  # what is to be fetched is offered
                    self.faults.append(f"error: {said}")
            case "text_input" if element.text_input.query_param_key == "text":
                self.choices["text"] = element.text_input.id, ()
            case "selectbox" if element.selectbox.query_param_key:
                box = element.selectbox
                self.choices[box.query_param_key] = box.id, tuple(box.options)


@dataclass(frozen=True, slots=True)
class App:
    """A running app: its port, its process, the file of what it says, and its base path."""

    port: int
    process: psutil.Process
    log: Path
    base: str = ""

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://localhost:{self.port}{self.base}"

    def resident(self) -> int:
        """Bytes of memory of the app and the processes that it started."""
        found = 0
        for one in (self.process, *self.process.children(recursive=True)):
            try:
                found += one.memory_info().rss
            except psutil.NoSuchProcess:
                continue  # ended between the listing and the look
        return found


@contextmanager
def running_app(home: Path, *, root: Path = ROOT, **more: str) -> Iterator[App]:
    """An app with that home, made if need be, and the user's weights.

    root: the checkout. more: of its environment.

    Raises RuntimeError if it ends or stays silent.
    """
    from lama_core.paths import cache_dir

    home.mkdir(parents=True, exist_ok=True)
    cache_dir().mkdir(parents=True, exist_ok=True)
    (home / "cache").symlink_to(cache_dir())
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    log = home.with_suffix(".log")
    server = root / "pages" / "ui" / "serve.py"
    start = [str(server)] if server.is_file() else ["-m", "streamlit"]  # before version 0.3
    command = [sys.executable, *start, "run", "app.py", "--server.headless", "true"]
    with log.open("wb") as said:
        process = subprocess.Popen(
            [*command, "--server.port", str(port)],
            cwd=root,
            # Real visitors have different addresses.
            env={**os.environ, "LAMA_HOME": str(home), "LAMA_ADDRESS_CONNECTIONS": "0", **more},
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
        )
    try:
        path = more.get("STREAMLIT_SERVER_BASE_URL_PATH", "").strip("/")
        app = App(port, psutil.Process(process.pid), log, f"/{path}" if path else "")
        _wait_for_health(app, process)
        yield app
    finally:
        # Killed, not asked to stop: it would first finish what its threads are scoring.
        process.kill()
        process.wait()


def _wait_for_health(app: App, process: "subprocess.Popen[bytes]") -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"the app ended with status {process.returncode}")
        try:
            with urllib.request.urlopen(f"{app.url}/_stcore/health", timeout=2):
                return
        except OSError:
            time.sleep(0.2)
    raise RuntimeError(f"the app did not answer within {START_SECONDS:.0f} s")


def handshake(url: str, port: int, origin: str | None, **options: Any) -> int:
    """The status of the answer to a websocket's handshake. url: the host's; port: on 127.0.0.1."""
    try:
        with sync_connect(
            f"{url}/_stcore/stream",
            sock=socket.create_connection(("127.0.0.1", port)),
            origin=origin,  # type: ignore[arg-type]  # a NewType of str
            subprotocols=["streamlit"],  # type: ignore[list-item]
            open_timeout=90,
            **options,
        ):
            return 101
    except InvalidStatus as refused:
        return refused.response.status_code


@dataclass
class Record:
    """What all visitors have seen: seconds from request to answer by page; and what went wrong.

    Requests of the first minute, from a cold start, count separately.
    """

    began: float = field(default_factory=time.monotonic)
    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    faults: list[str] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)

    def note(self, page: str, query: str, seconds: float, faults: Sequence[str]) -> None:
        """Note an answer, or what came instead of one."""
        if seconds > MAX_SECONDS:
            faults = [*faults, f"hang: {seconds:.0f} s"]
        self.faults += [f"{page}?{query}: {fault}" for fault in faults]
        early = time.monotonic() - seconds < self.began + FIRST_SECONDS
        self.seconds[f"{page}, first minute" if early else page].append(seconds)


@dataclass
class Client:
    """A visitor: opens pages by their addresses, and changes what they offer."""

    app: App
    record: Record
    draw: random.Random

    async def visit(self, until: float) -> None:
        """Open one address after another until the time has come."""
        while time.monotonic() < until:
            await self._look()
            await self.open(self.draw.choice((*TABS, *[CLOZE] * len(TABS))), until)

    async def open(self, page: str, until: float = 0.0) -> None:
        """Open an address of the page; until the time has come, change something now and then."""
        query = self._cloze_query() if page == CLOZE else self.draw.choice(TABS[page])
        start = time.monotonic()
        try:
            async with connect(
                self.app.url.replace("http", "ws") + "/_stcore/stream",
                origin=self.app.url,  # type: ignore[arg-type]  # a NewType of str
                subprotocols=["streamlit"],  # type: ignore[list-item]
                max_size=None,
                open_timeout=LOST_SECONDS,
                ping_interval=None,  # a browser sends none
            ) as connection:
                drawn = await self._ask(connection, page, query, (), start)
                for _ in range(self.draw.randrange(4)):
                    changes = [one for one in drawn.choices if may_change(page, drawn, one)]
                    if not changes or time.monotonic() > until:
                        break
                    await self._look()
                    name = self.draw.choice(changes)
                    widget, options = drawn.choices[name]
                    value = self.draw.choice(options) if options else self._text()
                    query = urlencode(parse_qs(query) | {name: [value]}, doseq=True)
                    start = time.monotonic()
                    state = WidgetState(id=widget, string_value=value)
                    drawn = await self._ask(connection, page, query, (state,), start)
        except (WebSocketException, OSError) as error:  # TimeoutError is an OSError
            lost = f"lost: {type(error).__name__}: {error}"
            self.record.note(page, query, time.monotonic() - start, [lost])

    async def _ask(
        self,
        connection: ClientConnection,
        page: str,
        query: str,
        states: tuple[WidgetState, ...],
        start: float,
    ) -> Drawn:
        request = BackMsg()
        rerun = request.rerun_script
        rerun.query_string = query
        rerun.page_name = PATHS.get(page, page)
        rerun.context_info.url = f"{self.app.url}/{rerun.page_name}"
        rerun.widget_states.widgets.extend(states)
        drawn = Drawn()
        async with asyncio.timeout(LOST_SECONDS):
            await connection.send(request.SerializeToString())
            while not drawn.finished:
                message = ForwardMsg()
                message.ParseFromString(await connection.recv(decode=False))
                drawn.take(message)
        self.record.note(page, query, time.monotonic() - start, drawn.faults)
        return drawn

    async def _look(self) -> None:
        await asyncio.sleep(self.draw.uniform(0, 2 * LOOK_SECONDS))

    def _text(self) -> str:
        return self.draw.choice(SENTENCES).format(self.draw.choice(PLACES))

    def _cloze_query(self) -> str:
        context = self.draw.choice(({}, {}, {"context": "both"}))
        return urlencode({"text": self._text(), "models": MODELS, **context}, doseq=True)


def may_change(page: str, drawn: Drawn, name: str) -> bool:
    """Whether a visitor of the page changes this: the sentence on Cloze, what to see elsewhere."""
    return name == "text" if page == CLOZE else len(drawn.choices[name][1]) > 1


def visit(app: App, n: int, seconds: float, seed: int = 1) -> Record:
    """`n` visitors at once, for so many seconds and until each has its last answer."""
    record = Record()

    async def watch() -> None:
        while True:
            record.memory.append(app.resident())
            await asyncio.sleep(1)

    async def all_visit() -> None:
        watching = asyncio.create_task(watch())
        until = time.monotonic() + seconds
        clients = [Client(app, record, random.Random(f"{seed} {one}")) for one in range(n)]
        await asyncio.gather(*(client.visit(until) for client in clients))
        watching.cancel()

    asyncio.run(all_visit())
    if app.process.status() == psutil.STATUS_ZOMBIE:
        record.faults.append("the app ended")
    if max(record.memory) > MAX_BYTES:
        record.faults.append(f"memory: {max(record.memory):,} bytes")
    said = app.log.read_text(encoding="utf-8", errors="replace")
    if "Traceback" in said:
        record.faults.append(said[said.index("Traceback") :][:2000])
    return record


def describe_times(seconds: Sequence[float]) -> str:
    """How many requests, and how long until they were answered."""
    half, most = np.percentile(seconds, [50, 95])
    return f"{len(seconds)} asked, p50 {half:.1f} s, p95 {most:.1f} s, slowest {max(seconds):.1f} s"


def main() -> int:
    """Start an app, visit it, and print what came of it; the exit status."""
    parser = argparse.ArgumentParser(description="Put simulated visitors on an app of its own.")
    parser.add_argument("--visitors", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--seed", type=int, default=1, help="Draws the same visits again.")
    parser.add_argument("--bare", action="store_true", help="Visit the smallest such app.")
    given = parser.parse_args()
    root = ROOT / "tests" / "load" / "bare" if given.bare else ROOT
    with (
        tempfile.TemporaryDirectory() as place,
        running_app(Path(place, "home"), root=root, PYTHONPATH=str(ROOT)) as app,
    ):
        record = visit(app, given.visitors, given.seconds, given.seed)
        found = [one.cpu_times() for one in (app.process, *app.process.children())]
    for page, seconds in sorted(record.seconds.items()):
        print(f"{page}: {describe_times(seconds)}")
    print(f"memory: at most {max(record.memory) / 1e6:,.0f} MB, {record.memory[-1] / 1e6:,.0f} MB "
          f"at the end; CPU: {sum(one.user + one.system for one in found):,.0f} s")  # fmt: skip
    print("\n".join(record.faults))
    return bool(record.faults)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main())
