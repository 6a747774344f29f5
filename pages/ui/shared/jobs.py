"""Jobs: long commands in background processes, with their progress and cancellation.

All sessions see the same jobs, but only the visitor who started a job and the local user can cancel
it. In public mode each session sees only its own jobs, and jobs run one at a time. A job's process
runs the same command as a terminal. Cancelling ends the process, which leaves no half-made files.
The process reports progress, results and errors as lines of JSON (`lama_core.progress`).
"""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil
import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.runtime.scriptrunner import get_script_run_ctx

from lama_core.errors import UserError, reason_of
from lama_core.models.sources.catalog import known_models
from lama_core.paths import IMPORT_ROOT
from lama_core.progress import Pace, Progress, Result, ResultKind, describe
from lama_core.requests import Request, arguments
from pages.ui.shared import visitors
from pages.ui.shared.text import plain


@dataclass
class Job:
    """A queued, running or finished command.

    Attributes:
        name: The job's name.
        process: The running command; None while the job is queued.
        request: The command's request.
        folder: The folder that relative paths in the request refer to.
        scratch: A temporary folder of this command, removed when it ends.
        owner: The session that started the job.
        title: The kind of work, in one word.
        about: What is worked on, such as models and data; may be empty.
        begin: Starts a queued command.
        step: The latest progress.
        pace: Estimates the remaining time.
        error: The error message; empty unless the command failed.
        ending: Whether Cancel was pressed.
        results: The results reported so far.
        notes: The notes reported so far.
        other_lines: Lines of the command's output that aren't reports.
        over: Set when the command has ended and its output is read.
        began: When the command began, on the clock of `time.monotonic`.
        seconds: How long the command took; 0 until it has ended.
    """

    name: str
    process: subprocess.Popen[str] | None
    scratch: Path | None = None
    request: Request | None = None
    folder: Path = IMPORT_ROOT
    owner: str = ""
    title: str = "Run"
    about: str = ""
    begin: Callable[[], "subprocess.Popen[str]"] | None = None
    step: Progress = field(default_factory=lambda: Progress("Starting"))
    pace: Pace = field(default_factory=Pace)
    error: str = ""
    ending: bool = False
    results: list[Result] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    other_lines: list[str] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)
    began: float = field(default_factory=time.monotonic)
    seconds: float = 0.0

    @property
    def running(self) -> bool:
        """Whether the command is queued or running, or its last output isn't read yet."""
        return not self.over.is_set()

    @property
    def cancelled(self) -> bool:
        """Whether the job was cancelled and ended before it was finished."""
        return (
            self.ending and not self.running and not (self.process and self.process.returncode == 0)
        )

    @property
    def share(self) -> float | None:
        """The finished share, from 0 to 1; None if it isn't known."""
        return min(1.0, self.step.done / self.step.total) if self.step.total else None

    def names(self, what: ResultKind) -> tuple[str, ...]:
        """The names of the results of one kind, without duplicates."""
        return tuple(dict.fromkeys(one.name for one in self.results if one.what == what))

    def words(self, message: str) -> str:
        """Return a message of the command with the models' titles."""
        titles, own = _titles(), getattr(self.request, "models", ())
        names = sorted(titles.keys() & set(own), key=len, reverse=True)
        either = "|".join(map(re.escape, names)) or "(?!)"
        return re.sub(rf"(?<![\w/-])({either})(?![\w/-])", lambda one: titles[one[0]], message)

    def cancel(self) -> None:
        """End the command and everything it started."""
        self.ending = True
        if self.running and self.process and self.process.poll() is None:
            with suppress(psutil.NoSuchProcess):  # it has just ended
                first = psutil.Process(self.process.pid)
                for process in (first, *first.children(recursive=True)):
                    with suppress(psutil.NoSuchProcess):
                        process.terminate()

    def follow(self) -> None:
        """Wait in the queue, then read the command's output until it ends; runs in a thread."""
        try:
            with nullcontext() if self.process else _TURN:
                if self.begin and not self.process and not self.ending:
                    self.began = time.monotonic()
                    self.process = self.begin()
                for line in (self.process and self.process.stderr) or ():
                    self.hear(line)
                if self.process and self.process.wait() and not self.ending and not self.error:
                    lines = [line for line in self.other_lines if line]
                    self.error = lines[-1] if lines else "The command failed without a message."
            if self.scratch is not None:
                self.error = self.error.replace(f"{self.scratch}{os.sep}", "")
                shutil.rmtree(self.scratch, ignore_errors=True)
        except OSError as error:
            self.error = f"The command could not be started: {reason_of(error)}."
        except ValueError:  # an argument has a character such as NUL
            self.error = (
                "The command could not be started: an argument has a character that commands can't "
                "contain. Remove it."
            )
        finally:
            self.seconds = time.monotonic() - self.began
            self.over.set()

    def hear(self, line: str) -> None:
        """Store one line of the command's output."""
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
                raise ValueError(kind)
        except (ValueError, TypeError, AttributeError):
            self.other_lines.append(line.strip())


# Not in Streamlit's caches, because any browser could clear them.
_JOBS: dict[str, Job] = {}
_STARTING = threading.Lock()
_TURN = threading.Lock()
# Command -> the right that a visitor needs to start it, and the kind of work in one word. All other
# commands are runs.
KINDS_OF_WORK: dict[tuple[str, ...], tuple[visitors.Right, str]] = {
    ("data", "get"): ("fetch", "Fetch"),
    ("models", "get"): ("fetch", "Fetch"),
    ("data", "import"): ("upload", "Import"),
    ("runs", "import"): ("upload", "Import"),
}
RUN: tuple[visitors.Right, str] = ("run", "Run")


def start(
    name: str,
    request: Request,
    *,
    scratch: Path | None = None,
    folder: Path = IMPORT_ROOT,
    title: str = "",
    about: str = "",
) -> Job:
    """Start the command of a request as a job.

    Args:
        name: The job's name. If a job of this name is running, it is returned instead.
        request: The request.
        scratch: A folder that is removed when the command ends; error messages don't show its name.
        folder: The folder that relative paths in the request refer to.
        title: The kind of work, in one word; by default that of the request.
        about: What is worked on, which is shown next to its progress.

    Raises:
        UserError: If the visitor lacks the right, or if the queue of public mode is full.
    """
    right, kind = KINDS_OF_WORK.get(request.command, RUN)
    visitors.check(right)
    command = [sys.executable, "-m", "lama_core", *arguments(request)]
    environment = {**os.environ, "LAMA_PROGRESS": "json", "PYTHONIOENCODING": "utf-8"}
    if folder != IMPORT_ROOT:  # don't import modules from that folder
        command.insert(1, "-P")
        roots = filter(None, (str(IMPORT_ROOT), os.environ.get("PYTHONPATH")))
        environment["PYTHONPATH"] = os.pathsep.join(roots)

    def begin() -> "subprocess.Popen[str]":
        return subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )

    with _STARTING:
        job = find(name)
        if job is not None and job.running:
            return job
        job = Job(name, None, scratch, request, folder, _session(), title or kind, about, begin)
        if visitors.is_public():
            running = sum(one.running for one in _JOBS.values())
            if running >= visitors.n_public_jobs():
                raise UserError(f"{running} runs are running or queued. Try again later.")
            job.step = Progress("Queued behind other runs")
        else:
            job.process = begin()
        _JOBS[_key(name)] = job
    threading.Thread(target=job.follow, daemon=True).start()
    return job


def restart(job: Job) -> None:
    """Start an ended job's command again; a run resumes.

    Raises:
        UserError: As of `start`.
    """
    assert job.request is not None, "the job wasn't started here"
    again = start(job.name, job.request, folder=job.folder, title=job.title, about=job.about)
    again.step = replace(job.step, stage=again.step.stage)  # until the command reports its own


def _titles() -> dict[str, str]:
    return {entry.name: entry.title for entry in known_models()}


def _session() -> str:
    context = get_script_run_ctx()
    return context.session_id if context else ""


def _key(name: str) -> str:
    return f"{name} of {_session()}" if visitors.is_public() else name


def find(name: str) -> Job | None:
    """The job of that name, queued, running or finished; None if there is none."""
    return _JOBS.get(_key(name))


def running() -> list[Job]:
    """The queued and running jobs, oldest first; in public mode only this session's."""
    return [job for job in _visible() if job.running]


def ended_runs() -> list[Job]:
    """The ended jobs that made runs; in public mode only this session's."""
    return [job for job in _visible() if not job.running and job.title == RUN[1]]


def _visible() -> list[Job]:
    own = _session() if visitors.is_public() else None
    return [job for job in list(_JOBS.values()) if own is None or job.owner == own]


def forget(name: str) -> None:
    """Drop a finished job, so that its message is shown once."""
    _JOBS.pop(_key(name), None)


def is_own(job: Job) -> bool:
    """Whether this session started the job."""
    return job.owner == _session()


def may_cancel(job: Job) -> bool:
    """Whether this visitor started the job or is the local user, and so may cancel it."""
    return is_own(job) or visitors.may("manage")


@st.fragment(run_every=0.5)
def draw_progress(name: str, is_here: Callable[[], bool] = lambda: False) -> None:
    """Draw a running job's progress bar and Cancel; redraw the page when the job ends.

    Args:
        name: The job's name.
        is_here: Whether the job's result is installed; then the ended job is forgotten.
    """
    job = find(name)
    if job is None or not job.running:
        if job is not None and is_here():
            forget(name)
        st.rerun()
        return
    stage = job.step.stage  # of a run a model
    step = replace(job.step, stage=_titles().get(stage, stage))
    with draw_row(job.about, job.share, "Cancelling" if job.ending else describe(step, job.pace)):
        if not may_cancel(job):
            st.caption("Started by another visitor, who can cancel it, as can the local user.")
            return
        st.button(
            "Cancel",
            key=f"cancel {name}",
            icon=":material/close:",
            disabled=job.ending,
            on_click=job.cancel,
        )


def draw_row(about: str, share: float | None, text: str) -> DeltaGenerator:
    """Draw what is made and its finished share; return the row, for buttons at its end."""
    row = st.container(horizontal=True, vertical_alignment="center")
    if about:
        row.markdown(plain(about))
    row.progress(share or 0.0, text=plain(text))
    return row
