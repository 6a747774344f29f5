"""Long work beside the pages, in a process of its own, watched and cancelled.

All sessions see the same jobs, and only who started one, or the operator, cancels it; in public
every session has its own, one is at work at a time, and the others wait. The process is the command
line's own command, so that the page and the terminal do the same; cancelling it ends the process
and keeps nothing half-made. It says how far it is, what came out and what went wrong as lines of
JSON (`lama_core.progress`).
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from lama_core.datasets.library.download import GetRequest, ImportRequest
from lama_core.errors import UserError
from lama_core.models.sources.catalog import ModelRequest
from lama_core.paths import IMPORT_ROOT
from lama_core.progress import Pace, Progress, Result, What, describe
from lama_core.requests import Request, arguments
from pages.ui.shared import visitors
from pages.ui.shared.text import plain


@dataclass
class Job:
    """A waiting, running or finished command. error: empty until it failed.

    process: None while it waits for others; then `begin` starts it. scratch: a folder that is there
    for this command alone, removed when it ends. owner: the session that started it. title: what
    kind of work it is, in a word.
    ending: it was told to end. results: what came out so far. said: lines that are no reports.
    """

    name: str
    process: subprocess.Popen[str] | None
    scratch: Path | None = None
    owner: str = ""
    title: str = "Run"
    begin: Callable[[], "subprocess.Popen[str]"] | None = None
    step: Progress = field(default_factory=lambda: Progress("Starting"))
    pace: Pace = field(default_factory=Pace)
    error: str = ""
    ending: bool = False
    results: list[Result] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def running(self) -> bool:
        """Whether the command waits or is at work, or what it said at its end isn't read yet."""
        return not self.over.is_set()

    @property
    def cancelled(self) -> bool:
        """Whether it was told to end and did, before it was through."""
        code = self.process.returncode if self.process else None
        return self.ending and not self.running and code != 0

    @property
    def share(self) -> float | None:
        """How much is done, between 0 and 1; None where it isn't known."""
        return min(1.0, self.step.done / self.step.total) if self.step.total else None

    def names(self, what: What) -> tuple[str, ...]:
        """The names of what came out, of one sort, each once."""
        return tuple(dict.fromkeys(one.name for one in self.results if one.what == what))

    def cancel(self) -> None:
        """End the command and everything it started."""
        self.ending = True
        if self.running and self.process:
            with suppress(ProcessLookupError):  # it has just ended by itself
                os.killpg(self.process.pid, signal.SIGTERM)

    def follow(self) -> None:
        """Wait for the turn, then read what the command says until it ends; runs in a thread."""
        try:
            if self.process is None and self.begin is not None:
                with _TURN:
                    if not self.ending:
                        self.process = self.begin()
                        self._read(self.process)
            elif self.process is not None:
                self._read(self.process)
            if self.scratch is not None:
                self.error = self.error.replace(f"{self.scratch}{os.sep}", "")
                shutil.rmtree(self.scratch, ignore_errors=True)
        except OSError as error:
            self.error = f"The command could not be started: {error.strerror}."
        except ValueError:  # what was typed holds a character that no command can
            self.error = "The command could not be started: a word of it can't be written."
        finally:
            self.over.set()

    def _read(self, process: "subprocess.Popen[str]") -> None:
        for line in process.stderr or ():
            self.hear(line)
        if process.wait() and not self.ending and not self.error:
            said = [line for line in self.said if line] or ["It ended without a word."]
            self.error = said[-1]

    def hear(self, line: str) -> None:
        """Take note of one line that the command said."""
        try:
            ((kind, value),) = json.loads(line).items()
            if kind == "progress":
                self.step = Progress(**value)
                self.pace.see(self.step)
            elif kind == "result":
                self.results.append(Result(**value))
            elif kind == "note":
                self.notes.append(str(value))
            elif kind == "error":
                self.error = str(value)
            else:
                self.said.append(line.strip())
        except (ValueError, TypeError, AttributeError):
            self.said.append(line.strip())


# Not in Streamlit's caches, which any visitor may clear.
_JOBS: dict[str, Job] = {}
_STARTING = threading.Lock()
_TURN = threading.Lock()
# What it takes to start a command; for all others it is `run`.
RIGHTS: dict[type, visitors.Right] = {
    GetRequest: "fetch",
    ModelRequest: "fetch",
    ImportRequest: "upload",
}
# What a command is called, in a word; all others are a run.
TITLES: dict[type, str] = {GetRequest: "Fetch", ModelRequest: "Fetch", ImportRequest: "Import"}


def start(
    name: str, request: Request, *, scratch: Path | None = None, folder: Path = IMPORT_ROOT
) -> Job:
    """Start the command that answers a request, or give the job of that name that is running.

    scratch: see `Job`; what the command says doesn't show this folder's name. folder: from which
    relative paths in the request count.
    Raises UserError if the visitor may not, or if in public too many wait already.
    """
    visitors.check(RIGHTS.get(type(request), "run"))
    command = [sys.executable, "-m", "lama_core", *arguments(request)]
    environment = {**os.environ, "LAMA_PROGRESS": "json"}
    if folder != IMPORT_ROOT:  # no module of that folder is taken for one of ours
        command.insert(1, "-P")
        found = filter(None, (str(IMPORT_ROOT), os.environ.get("PYTHONPATH")))
        environment["PYTHONPATH"] = os.pathsep.join(found)
    title = TITLES.get(type(request), "Run")

    def begin() -> "subprocess.Popen[str]":
        return subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )

    with _STARTING:
        job = find(name)
        if job is not None and job.running:
            return job
        if visitors.is_public():
            running = sum(one.running for one in _JOBS.values())
            if running >= visitors.n_public_jobs():
                raise UserError(f"{running} runs are at work or waiting: start yours later.")
            job = Job(name, None, scratch, _session(), title, begin)
            job.step = Progress("Waiting for other runs")
        else:
            job = Job(name, begin(), scratch, _session(), title)
        _JOBS[_key(name)] = job
    threading.Thread(target=job.follow, daemon=True).start()
    return job


def _session() -> str:
    context = get_script_run_ctx()
    return context.session_id if context else ""


def _key(name: str) -> str:
    return f"{name} of {_session()}" if visitors.is_public() else name


def find(name: str) -> Job | None:
    """The job of that name, waiting, running or finished; None if there was none."""
    return _JOBS.get(_key(name))


def running() -> list[Job]:
    """The jobs that wait or run, the first begun first: in public the session's own, else all."""
    return [job for job in _visible() if job.running]


def ended(prefix: str) -> list[Job]:
    """The jobs that have ended whose names begin so, as `running`."""
    return [job for job in _visible() if not job.running and job.name.startswith(prefix)]


def _visible() -> list[Job]:
    own = _session() if visitors.is_public() else None
    return [job for job in list(_JOBS.values()) if own is None or job.owner == own]


def forget(name: str) -> None:
    """Drop a finished job, so that its message is shown once."""
    _JOBS.pop(_key(name), None)


def may_cancel(job: Job) -> bool:
    """Whether this visitor may end the job: who started it, and the operator."""
    return job.owner == _session() or visitors.may("manage")


@st.fragment(run_every=0.5)
def draw_progress(name: str, is_here: Callable[[], bool] = lambda: False) -> None:
    """A running job's bar and a button that cancels it; at its end the page is drawn again.

    is_here: whether what the job was to bring has come, so that nothing need be said of it.
    """
    job = find(name)
    if job is None or not job.running:
        if job is not None and is_here():
            forget(name)
        st.rerun()
        return
    text = "Cancelling" if job.ending else describe(job.step, job.pace)
    st.progress(job.share or 0.0, text=plain(text))
    if not may_cancel(job):
        st.caption("Another visitor started this and can cancel it.")
        return
    st.button(
        "Cancel",
        key=f"cancel {name}",
        icon=":material/close:",
        disabled=job.ending,
        on_click=job.cancel,
    )
