"""Many visitors at once: websocket clients that talk to a running app as browsers do.

A browser opens a websocket and asks for a page by its address (`rerun_script`); the server answers
with what is to be drawn, message by message, and with `script_finished`. A changed widget is the
same question again with the widget's new value. Streamlit's own classes are the messages, so that a
new version of it can't be misread. Not simulated: the files of the page itself, and pages that ask
again by themselves while a job runs.

LAMA_STRESS_SECONDS says for how long the visitors go on.
"""

import asyncio
import os
import random
import socket
import subprocess
import sys
import time
import urllib.request
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlencode

import numpy as np
import psutil
from streamlit.proto.Alert_pb2 import Alert
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from lama_core import paths
from lama_core.files import bytes_text
from lama_core.models.catalog import find_model
from lama_core.models.sources import locate
from tools.stress.campaign import MAX_BYTES, MAX_SECONDS, Fault, Outcome

ROOT = Path(__file__).resolve().parents[2]
SECONDS = float(os.environ.get("LAMA_STRESS_SECONDS", "300"))
# What a visitor looks at an answer for, drawn evenly from none to twice this.
LOOK_SECONDS = 2.0
START_SECONDS = 180.0
# After so long a visitor is taken to have been forgotten; over MAX_SECONDS is a fault already.
LOST_SECONDS = 300.0
# Sessions that are opened and closed before the memory counts, so that what all share is there;
# how many at once; and what each may leave behind, in bytes.
WARM_SESSIONS = 20
LINES = 4
MAX_LEFT = 1 << 20
# Streamlit keeps closed sessions for two minutes, should their browsers come back.
KEPT_SECONDS = 125.0

PLACES = (
    "Paris", "Rome", "Madrid", "Berlin", "Vienna", "Lisbon", "Athens", "Warsaw", "Prague", "Dublin",
    "Oslo", "Stockholm", "Cairo", "Tokyo", "Beijing", "Delhi", "Lima", "Bogota", "Ankara", "Riga",
)  # fmt: skip
SENTENCES = (
    "{} is the capital of ___.", "In {} people speak ___.", "The river in {} is called the ___.",
    "{} lies in the country of ___.", "The mayor of {} was born in ___.",
)  # fmt: skip
MODELS = ("minilm-mlm", "smollm2-135m")
# Half of all pages are Cloze, where the models answer. The rest: the addresses of tabs.
TABS = {
    "results": ("", "tab=Curves", "tab=Ranks", "tab=Calibration", "tab=Compare"),
    "facts": ("", "view=Confusion", "view=Wrong+answers"),
    "prompts": ("", "tab=Ensembles", "tab=One+fact"),
    "analogy": ("", "view=Score", "view=Probes"),
    "data": ("", "tab=Runs"),
    "models": ("",),
}
CLOZE = "cloze"
PAGES = (*TABS, *[CLOZE] * len(TABS))
ROUND = (*TABS, CLOZE)

Tell = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Choice:
    """A widget that a visitor may change, and the values that it offers."""

    id: str
    param: str
    options: tuple[str, ...] = ()


@dataclass
class Drawn:
    """What came of a question: what went wrong, and what can be changed next."""

    faults: list[Fault] = field(default_factory=list)
    choices: dict[str, Choice] = field(default_factory=dict)
    finished: bool = False

    def take(self, message: ForwardMsg, given: str) -> None:
        """Note a message of the server."""
        kind = message.WhichOneof("type")
        if kind == "new_session":
            self.finished, self.choices = False, {}
        elif kind == "script_finished":
            # A run that ends early gives way to one that the script itself asked for.
            self.finished = message.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN
            if message.script_finished == ForwardMsg.FINISHED_WITH_COMPILE_ERROR:
                self.faults.append(Fault("traceback", given, "the script did not compile"))
        elif kind == "delta" and message.delta.WhichOneof("type") == "new_element":
            element = message.delta.new_element
            match element.WhichOneof("type"):
                case "exception":
                    self.faults.append(Fault("traceback", given, element.exception.message))
                case "alert" if element.alert.format == Alert.ERROR:
                    said = element.alert.body.replace("\\", "")
                    if "not here yet" not in said:  # what is to be fetched is offered
                        self.faults.append(Fault("error", given, said))
                case "text_input" if element.text_input.query_param_key == "text":
                    self._offer(Choice(element.text_input.id, "text"))
                case "selectbox" if element.selectbox.query_param_key:
                    box = element.selectbox
                    self._offer(Choice(box.id, box.query_param_key, tuple(box.options)))

    def _offer(self, choice: Choice) -> None:
        self.choices[choice.param] = choice


@dataclass(frozen=True, slots=True)
class App:
    """A running app: its port, its process and what it says."""

    port: int
    process: psutil.Process
    log: Path

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://localhost:{self.port}"

    def resident(self) -> int:
        """Bytes of memory of the app and the processes that it started."""
        found = 0
        for one in (self.process, *self.process.children(recursive=True)):
            try:
                found += one.memory_info().rss
            except psutil.NoSuchProcess:
                continue  # ended between the listing and the look
        return found

    def processor_seconds(self) -> float:
        """Time of processors that the app has used."""
        times = self.process.cpu_times()
        return times.user + times.system + times.children_user + times.children_system


@contextmanager
def running_app(home: Path, **more: str) -> Iterator[App]:
    """An app with that home, made if need be, and the user's weights. more: of its environment.

    Raises RuntimeError if it ends or stays silent.
    """
    home.mkdir(parents=True, exist_ok=True)
    weights = paths.cache_dir()
    weights.mkdir(parents=True, exist_ok=True)
    (home / "cache").symlink_to(weights)
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    log = home.with_suffix(".log")
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.headless", "true"]
    with log.open("wb") as said:
        process = subprocess.Popen(
            [*command, "--server.port", str(port)],
            cwd=ROOT,
            env={**os.environ, "LAMA_HOME": str(home), **more},
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait_for_health(port, process)
        yield App(port, psutil.Process(process.pid), log)
    finally:
        # Killed, not asked to stop: it would first finish what its threads are scoring.
        process.kill()
        process.wait()


def _wait_for_health(port: int, process: "subprocess.Popen[bytes]") -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"the app ended with status {process.returncode}")
        try:
            with urllib.request.urlopen(f"http://localhost:{port}/_stcore/health", timeout=2):
                return
        except OSError:
            time.sleep(0.2)
    raise RuntimeError(f"the app did not answer within {START_SECONDS:.0f} s")


@dataclass
class Record:
    """What all clients have seen: seconds from question to answer, by page; and memory."""

    outcome: Outcome
    tell: Tell
    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    memory: list[int] = field(default_factory=list)

    def note(self, page: str, given: str, seconds: float, faults: list[Fault]) -> None:
        """Note an answer, or what came instead of one."""
        if seconds > MAX_SECONDS:
            faults = [*faults, Fault("hang", given, f"{seconds:.0f} s")]
        self.outcome.count(faults[0].what if faults else "answered", seconds)
        self.outcome.faults += faults
        self.seconds[page].append(seconds)
        self.tell(self.outcome.n)


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
            await self.open(self.draw.choice(PAGES), until)

    async def open(self, page: str, until: float = 0.0) -> None:
        """Open an address of the page; until the time has come, change something now and then."""
        query = self._cloze_query() if page == CLOZE else self.draw.choice(TABS[page])
        start = time.monotonic()
        try:
            async with self._connected() as connection:
                drawn = await self._ask(connection, page, query, (), start)
                for _ in range(self.draw.randrange(4)):
                    choices = [one for one in drawn.choices.values() if may_change(page, one)]
                    if not choices or time.monotonic() > until:
                        break
                    await self._look()
                    choice = self.draw.choice(choices)
                    value = self.draw.choice(choice.options) if choice.options else self._text()
                    query = urlencode(parse_qs(query) | {choice.param: [value]}, doseq=True)
                    start = time.monotonic()
                    state = WidgetState(id=choice.id, string_value=value)
                    drawn = await self._ask(connection, page, query, (state,), start)
        except (WebSocketException, OSError) as error:  # TimeoutError is an OSError
            given = f"{page}?{query}"
            lost = Fault("lost", given, f"{type(error).__name__}: {error}")
            self.record.note(page, given, time.monotonic() - start, [lost])

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[ClientConnection]:
        place = f"localhost:{self.app.port}"
        async with connect(
            f"ws://{place}/_stcore/stream",
            origin=f"http://{place}",  # type: ignore[arg-type]  # a NewType of str
            subprotocols=["streamlit"],  # type: ignore[list-item]
            max_size=None,
            open_timeout=LOST_SECONDS,
            ping_interval=None,  # a browser sends none
        ) as connection:
            yield connection

    async def _ask(
        self,
        connection: ClientConnection,
        page: str,
        query: str,
        states: tuple[WidgetState, ...],
        start: float,
    ) -> Drawn:
        question = BackMsg()
        rerun = question.rerun_script
        rerun.query_string = query
        rerun.page_name = "" if page == CLOZE else page
        rerun.context_info.url = f"http://localhost:{self.app.port}/{rerun.page_name}"
        rerun.widget_states.widgets.extend(states)
        given = f"{page}?{query}"
        drawn = Drawn()
        async with asyncio.timeout(LOST_SECONDS):
            await connection.send(question.SerializeToString())
            while not drawn.finished:
                message = ForwardMsg()
                message.ParseFromString(await connection.recv(decode=False))
                drawn.take(message, given)
        self.record.note(page, given, time.monotonic() - start, drawn.faults)
        return drawn

    async def _look(self) -> None:
        await asyncio.sleep(self.draw.uniform(0, 2 * LOOK_SECONDS))

    def _text(self) -> str:
        return self.draw.choice(SENTENCES).format(self.draw.choice(PLACES))

    def _cloze_query(self) -> str:
        context = self.draw.choice(({}, {}, {"context": "both"}))
        return urlencode({"text": self._text(), "models": MODELS, **context}, doseq=True)


def may_change(page: str, choice: Choice) -> bool:
    """Whether a visitor of the page changes this: the sentence on Cloze, what to see elsewhere."""
    return choice.param == "text" if page == CLOZE else len(choice.options) > 1


def run(n: int, seed: int, folder: Path, tell: Tell, *, seconds: float = SECONDS) -> Outcome:
    """`n` visitors at once, for so many seconds and until each has its last answer."""

    async def visit(app: App, record: Record) -> None:
        until = time.monotonic() + seconds
        clients = [Client(app, record, random.Random(f"{seed} {one}")) for one in range(n)]
        await asyncio.gather(*(client.visit(until) for client in clients))

    return _measure(f"{n} clients", folder, tell, visit)


def run_sessions(n: int, seed: int, folder: Path, tell: Tell) -> Outcome:
    """`n` sessions opened and closed, a few at a time, and what they leave in memory.

    The last is opened when all before it have been given up: only then are they cleared away.
    """

    async def visit(app: App, record: Record) -> None:
        numbers, warm = iter(range(n - 1)), 0

        async def open_and_close(number: int) -> None:
            client = Client(app, record, random.Random(f"{seed} {number}"))
            await client.open(ROUND[number % len(ROUND)])

        async def line() -> None:
            nonlocal warm
            for number in numbers:
                await open_and_close(number)
                if not warm and record.outcome.n >= WARM_SESSIONS:
                    warm = app.resident()

        await asyncio.gather(*(line() for _ in range(LINES)))
        await asyncio.sleep(KEPT_SECONDS)
        await open_and_close(n - 1)
        await asyncio.sleep(1)  # the app notices that it was closed
        if n > WARM_SESSIONS:
            left = (app.resident() - warm) / (n - WARM_SESSIONS)
            record.outcome.figures["left by a session"] = f"{left / 1e3:,.0f} kB"
            if left > MAX_LEFT:
                fault = Fault("memory", f"{n} sessions", f"{left:,.0f} bytes each")
                record.outcome.faults.append(fault)

    return _measure(f"{n} sessions", folder, tell, visit)


def _measure(
    name: str, folder: Path, tell: Tell, visit: Callable[[App, Record], Coroutine[None, None, None]]
) -> Outcome:
    """What came of the visits to an app that is started for them."""
    outcome = Outcome(name)
    record = Record(outcome, tell)

    async def watch(app: App) -> None:
        while True:
            record.memory.append(app.resident())
            await asyncio.sleep(1)

    async def watched(app: App) -> None:
        watching = asyncio.create_task(watch(app))
        await visit(app, record)
        watching.cancel()

    with running_app(folder / "home") as app:
        before, start = app.processor_seconds(), time.monotonic()
        asyncio.run(watched(app))
        outcome.seconds = time.monotonic() - start
        used = app.processor_seconds() - before
        if app.process.status() == psutil.STATUS_ZOMBIE:
            outcome.faults.append(Fault("lost", name, "the app ended"))
    for page, seconds in sorted(record.seconds.items()):
        outcome.figures[page] = describe_times(seconds)
    memory = record.memory
    outcome.peak = max(memory)
    moments = memory[0], memory[len(memory) // 2], memory[-1]
    outcome.figures["memory"] = "{} at first, {} in the middle, {} at the end".format(
        *map(bytes_text, moments)
    )
    outcome.figures["processors"] = f"{used:.0f} s of {outcome.seconds:.0f} s"
    here = [model for model in MODELS if locate(find_model(model))]
    outcome.figures["models that answered"] = ", ".join(here)
    if outcome.peak > MAX_BYTES:
        outcome.faults.append(Fault("memory", name, bytes_text(outcome.peak)))
    said = app.log.read_text(encoding="utf-8", errors="replace")
    if "Traceback" in said:
        outcome.faults.append(Fault("traceback", name, said[said.index("Traceback") :][:2000]))
    return outcome


def describe_times(seconds: Sequence[float]) -> str:
    """How many questions, and how long until they were answered."""
    half, most = np.percentile(seconds, [50, 95])
    return f"{len(seconds)} asked, p50 {half:.1f} s, p95 {most:.1f} s, slowest {max(seconds):.1f} s"
