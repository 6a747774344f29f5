"""The scoring process: a separate process for models and queries.

In one process, a forward pass would wait for Python's interpreter after each of its thousands of
operations while another thread draws a page. So the app's server starts a second process, which
has a thread for each query. They exchange pickled objects over a socket that only this user can
open and that asks for a key. Without `start`, queries run in the calling thread.
"""

import gc
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib import import_module
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Listener
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from lama_core import plugins
from lama_core.errors import UserError
from lama_core.paths import IMPORT_ROOT
from lama_core.queue import LOOK_SECONDS, nothing

if TYPE_CHECKING:
    from multiprocessing.connection import Connection, PipeConnection

    from lama_core.service.queries import Visitor

    AnyConnection = Connection[Any, Any] | PipeConnection[Any, Any]

Answer = TypeVar("Answer")
P = ParamSpec("P")
MAX_FOLDER = 60  # characters; the path of a socket may have about 100
# Modules that the first query needs, imported at the start.
IMPORTED = (
    "lama_core.service.queries",
    "lama_core.models.hf.causal",
    "lama_core.models.hf.bert",
    "lama_core.models.hf.llama",
)
ENDED = (
    "The process that computes the answers ended unexpectedly, perhaps because memory ran out. It "
    "starts again with the next query: reload the page."
)
NOT_STARTED = "The process that computes the answers can't start. The app's log has the reason."


@contextmanager
def _ended_unexpectedly() -> Iterator[None]:
    """Raise UserError if the connection to the process is lost."""
    try:
        yield
    except (OSError, EOFError, AuthenticationError) as error:
        raise UserError(ENDED) from error


class ScoringProcess:
    """A process that answers queries; started again by the next query after it has ended."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        short = len(tempfile.gettempdir()) <= MAX_FOLDER or sys.platform == "win32"
        parent = None if short else "/tmp"
        self._folder = tempfile.TemporaryDirectory(prefix="lama-explorer-", dir=parent)  # of socket
        self._lock = threading.Lock()
        self._child: subprocess.Popen[str] | None = None
        self._address: str | tuple[str, int] = ""

    def launch(self) -> None:
        """Start the process if it isn't running; raise UserError if it can't start."""
        with self._lock:
            if self._child is not None and self._child.poll() is None:
                return
            found = filter(None, (str(IMPORT_ROOT), os.environ.get("PYTHONPATH")))
            # By default, glibc keeps freed memory for each thread: 0.5 GB with eight queries.
            environment = {"MALLOC_ARENA_MAX": "2"} | os.environ | {"PYTHONIOENCODING": "utf-8"}
            self._child = subprocess.Popen(
                [sys.executable, "-P", "-m", "lama_core.service"],
                env=environment | {"PYTHONPATH": os.pathsep.join(found)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                encoding="utf-8",
            )
            into, out = cast(Any, self._child.stdin), cast(Any, self._child.stdout)
            try:
                into.write(f"{self._key.hex()}\n{self._folder.name}\n")
                into.flush()
            except BrokenPipeError:  # it ended before it had read its key
                raise UserError(NOT_STARTED) from None
            address = out.readline().strip()
            if not address:
                raise UserError(NOT_STARTED)
            place = json.loads(address)  # a name, or a host and port
            self._address = place if isinstance(place, str) else tuple(place)

    def stop(self) -> None:
        """End the process; the next query starts another."""
        with self._lock:
            if self._child is not None:
                self._child.kill()
                self._child.wait()

    def run(
        self,
        visitor: "Visitor",
        query: Callable[..., Answer],
        arguments: tuple[Any, ...],
        options: dict[str, Any],
    ) -> Answer:
        """Return `query(*arguments, **options)`, computed by the process.

        Functions among the options are called here. If one or `visitor.check` raises, the query
        ends at its next call or forward pass.

        Raises:
            UserError: If the query raises it, or if the process ends.
        """
        functions = {name: value for name, value in options.items() if callable(value)}
        values = {name: value for name, value in options.items() if name not in functions}
        message: Any = (replace(visitor, check=nothing), query, arguments, values, tuple(functions))
        with _ended_unexpectedly():
            self.launch()
            try:
                connection = Client(self._address, authkey=self._key)
            except (FileNotFoundError, ConnectionRefusedError):  # the socket's file was deleted
                self.stop()
                raise
        with connection:  # closing it ends the query
            while True:
                with _ended_unexpectedly():
                    connection.send(message)
                while True:
                    with _ended_unexpectedly():
                        if connection.poll(LOOK_SECONDS):
                            what, value = connection.recv()
                            break
                    visitor.check()
                if what != "call":
                    break
                name, shown = value
                functions[name](*shown)
                message = None
        if what == "error":
            raise value
        return cast(Answer, value)


_process: ScoringProcess | None = None


def start() -> None:
    """Answer all further queries of this process in a scoring process."""
    global _process
    _process = ScoringProcess()
    _process.launch()


def run_query(
    visitor: "Visitor", query: Callable[P, Answer], *arguments: P.args, **options: P.kwargs
) -> Answer:
    """Return `query(*arguments, **options)`, computed in the scoring process if there is one."""
    from lama_core.service.queries import answer_query

    run = _process.run if _process else answer_query
    return run(visitor, query, arguments, options)


class _CallerLeft(BaseException):
    """Ends a query whose caller closed the connection."""


def _answer_query(connection: "AnyConnection") -> None:
    """Answer a connection's query; runs in a thread of the scoring process."""
    with connection, suppress(_CallerLeft, OSError, EOFError):
        reply = _answer(connection, *connection.recv())
        try:
            content = ForkingPickler.dumps(reply)
        except Exception as error:  # noqa: BLE001 - the result can't be sent
            content = ForkingPickler.dumps(("error", _as_text(error)))
        connection.send_bytes(content)


def _answer(
    connection: "AnyConnection",
    visitor: "Visitor",
    query: Callable[..., Any],
    arguments: tuple[Any, ...],
    values: dict[str, Any],
    functions: tuple[str, ...],
) -> tuple[str, Any]:
    """Return what a query returns or raises; `functions`: options that the caller provides."""
    from lama_core.service.queries import answer_query

    def check() -> None:
        if connection.poll():  # the caller sends nothing now: it closed the connection
            raise _CallerLeft

    def calling(name: str) -> Callable[..., None]:
        def call(*shown: Any) -> None:
            try:
                connection.send(("call", (name, shown)))
                connection.recv()
            except (OSError, EOFError) as error:
                raise _CallerLeft from error

        return call

    try:
        options = values | {name: calling(name) for name in functions}
        return "answer", answer_query(replace(visitor, check=check), query, arguments, options)
    except Exception as error:  # noqa: BLE001 - the caller's thread raises it
        if isinstance(error, UserError):
            return "error", error
        traceback.print_exc()
        if whose := plugins.blame(error):
            return "error", UserError(whose)
        return "error", error if type(error).__module__ == "builtins" else _as_text(error)


def _as_text(error: Exception) -> RuntimeError:
    """Return an error of the same text, for errors that may not be unpickled by the caller."""
    return RuntimeError(f"{type(error).__name__}: {error}")


def serve() -> None:
    """Answer the queries of the process that started this one, until that process ends."""
    for name in ("SIGINT", "SIGHUP"):  # they end the other process, which ends this one
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    key, folder = bytes.fromhex(sys.stdin.readline()), sys.stdin.readline().strip()
    # Windows has no such sockets; `Listener` chooses a pipe there.
    place = str(Path(folder) / f"queries-{os.getpid()}") if hasattr(socket, "AF_UNIX") else None
    with Listener(place, backlog=128, authkey=key) as listener:
        print(json.dumps(listener.address), flush=True)
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # the output of libraries isn't read

        def wait_for_end() -> None:
            sys.stdin.read()  # returns when the other process has ended
            shutil.rmtree(folder, ignore_errors=True)  # a process that was killed left it
            os._exit(0)

        threading.Thread(target=wait_for_end, daemon=True).start()
        for module in IMPORTED:
            import_module(module)
        gc.freeze()
        while True:
            try:
                connection = listener.accept()
            except (OSError, EOFError, AuthenticationError):  # such as too many open files
                time.sleep(0.1)
                continue
            threading.Thread(target=_answer_query, args=(connection,), daemon=True).start()
