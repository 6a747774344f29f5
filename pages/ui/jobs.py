"""Long work beside the pages, in a process of its own, watched and cancelled.

All sessions see the same jobs. The process is the command line's own command, so that the page and
the terminal do the same; cancelling it ends the process and keeps nothing half-made.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import streamlit as st

from pages.ui.messages import plain

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Job:
    """A running or finished command. error: empty while it runs and when it succeeded.

    scratch: a folder that is there for this command alone, removed when it ends.
    ending: it was told to end. since: when the stage began, and how much was done then.
    """

    name: str
    process: subprocess.Popen[str]
    scratch: Path | None = None
    stage: str = "Starting"
    done: int = 0
    total: int | None = None
    error: str = ""
    ending: bool = False
    complaints: list[str] = field(default_factory=list)
    since: tuple[float, int] = (0.0, 0)
    reported: float = 0.0
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def running(self) -> bool:
        """Whether the command is at work, or what it said at its end isn't read yet."""
        return not self.over.is_set()

    @property
    def cancelled(self) -> bool:
        """Whether it was told to end and did, before it was through."""
        return self.ending and not self.running and self.process.returncode != 0

    @property
    def share(self) -> float | None:
        """How much is done, between 0 and 1; None where it isn't known."""
        return min(1.0, self.done / self.total) if self.total else None

    @property
    def rate(self) -> float:
        """Steps a second in this stage up to the last report; 0 before the second."""
        began, before = self.since
        seconds = self.reported - began
        return (self.done - before) / seconds if seconds > 0 else 0.0

    def cancel(self) -> None:
        """End the command and everything it started."""
        self.ending = True
        if self.running:
            with suppress(ProcessLookupError):  # it has just ended by itself
                os.killpg(self.process.pid, signal.SIGTERM)

    def follow(self) -> None:
        """Read what the command says until it ends; runs in a thread."""
        try:
            self._read_reports()
            if self.process.wait() and not self.ending:
                said = [line for line in self.complaints if line] or ["It ended without a word."]
                self.error = said[-1].removeprefix("Error: ")
            if self.scratch is not None:
                self.error = self.error.replace(f"{self.scratch}{os.sep}", "")
                shutil.rmtree(self.scratch, ignore_errors=True)
        finally:
            self.over.set()

    def _read_reports(self) -> None:
        for line in self.process.stderr or ():
            try:
                stage, done, total = json.loads(line)["progress"]
            except (ValueError, KeyError, TypeError):
                self.complaints.append(line.strip())
                continue
            self.reported = time.monotonic()
            if stage != self.stage:
                self.since = (self.reported, done)
            self.stage, self.done, self.total = stage, done, total


@st.cache_resource
def _jobs() -> dict[str, Job]:
    return {}


def start(name: str, arguments: Sequence[str], *, scratch: Path | None = None) -> Job:
    """Start `python -m lama_core ...`, or give the job of that name that is running already.

    The command reports its progress as JSON lines on standard error (`LAMA_PROGRESS=json`).
    scratch: see `Job`; what the command says doesn't show this folder's name.
    """
    job = _jobs().get(name)
    if job is not None and job.running:
        return job
    process = subprocess.Popen(
        [sys.executable, "-m", "lama_core", *arguments],
        cwd=ROOT,
        env={**os.environ, "LAMA_PROGRESS": "json"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    job = _jobs()[name] = Job(name, process, scratch)
    threading.Thread(target=job.follow, daemon=True).start()
    return job


def find(name: str) -> Job | None:
    """The job of that name, running or finished; None if there was none."""
    return _jobs().get(name)


def forget(name: str) -> None:
    """Drop a finished job, so that its message is shown once."""
    _jobs().pop(name, None)


@st.fragment(run_every=0.5)
def draw_progress(
    name: str, describe: Callable[[Job], str], is_here: Callable[[], bool] = lambda: False
) -> None:
    """A running job's bar and a button that cancels it; at its end the page is drawn again.

    is_here: whether what the job was to bring has come, so that nothing need be said of it.
    """
    job = find(name)
    if job is None or not job.running:
        if job is not None and is_here():
            forget(name)
        st.rerun()
        return
    text = "Cancelling" if job.ending else describe(job)
    st.progress(job.share or 0.0, text=plain(text))
    st.button(
        "Cancel", key=f"cancel {name}", icon=":material/close:", disabled=job.ending,
        on_click=job.cancel,
    )  # fmt: skip
