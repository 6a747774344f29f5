"""Long work beside the pages: fetching a model in a process of its own, watched and cancelled.

All sessions see the same jobs. The process is the command line's own `models get`, so that the
page and the terminal do the same; cancelling it ends the process and keeps nothing half-made.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import streamlit as st

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Job:
    """A running or finished command. error: empty while it runs and when it succeeded."""

    name: str
    process: subprocess.Popen[str]
    stage: str = "Starting"
    done: int = 0
    total: int | None = None
    error: str = ""
    cancelled: bool = False
    complaints: list[str] = field(default_factory=list)

    @property
    def running(self) -> bool:
        """Whether the command is still at work."""
        return self.process.poll() is None

    @property
    def share(self) -> float | None:
        """How much is done, between 0 and 1; None where it isn't known."""
        return min(1.0, self.done / self.total) if self.total else None

    def cancel(self) -> None:
        """End the command and everything it started."""
        self.cancelled = True
        if self.running:
            os.killpg(self.process.pid, signal.SIGTERM)

    def follow(self) -> None:
        """Read the command's progress lines until it ends; runs in a thread."""
        for line in self.process.stderr or ():
            try:
                report = json.loads(line)
                self.stage, self.done, self.total = report["progress"]
            except (ValueError, KeyError, TypeError):
                self.complaints.append(line.strip())
        if self.process.wait() and not self.cancelled:
            said = [line for line in self.complaints if line]
            self.error = said[-1].removeprefix("Error: ") if said else "It ended without a word."


@st.cache_resource
def _jobs() -> dict[str, Job]:
    return {}


def start(name: str, arguments: Sequence[str]) -> Job:
    """Start `python -m lama_core ...`, or give the job of that name that is running already.

    The command reports its progress as JSON lines on standard error (`LAMA_PROGRESS=json`).
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
        start_new_session=True,
    )
    job = _jobs()[name] = Job(name, process)
    threading.Thread(target=job.follow, daemon=True).start()
    return job


def find(name: str) -> Job | None:
    """The job of that name, running or finished; None if there was none."""
    return _jobs().get(name)


def forget(name: str) -> None:
    """Drop a finished job, so that its message is shown once."""
    _jobs().pop(name, None)
