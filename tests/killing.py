"""Processes that make runs, killed at random moments."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path

import numpy as np


def kill_often(code: str, parts: Path, *, first: str, times: int = 10) -> list[int]:
    """Start the same Python code again and again and kill it; how many parts each left.

    parts: folder of the run's parts; each process is killed a moment after it has written one more.
    first: the line that the code prints when it has begun. While the first process is halted in the
    middle of the run, another one is refused in a sentence.
    """
    draw = np.random.default_rng(20)
    left: list[int] = []
    for _ in range(times):
        before = _count(parts)
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None and process.stdout.readline().strip() == first
        while process.poll() is None and _count(parts) <= before:
            time.sleep(0.002)
        time.sleep(float(draw.uniform(0, 0.05)))
        if not left:
            process.send_signal(signal.SIGSTOP)
            again = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
            assert "UserError: Another process is writing the run" in again.stderr
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        assert parts.is_dir(), f"the run ended before it was killed {times} times"
        left.append(_count(parts))
    return left


def kill_forks(run: Callable[[], object], parts: Path, *, times: int = 10) -> list[int]:
    """Fork this process again and again to do the run, and kill the fork as `kill_often` does."""
    draw = np.random.default_rng(20)
    left: list[int] = []
    for _ in range(times):
        before = _count(parts)
        process = get_context("fork").Process(target=run)
        process.start()
        while process.is_alive() and _count(parts) <= before:
            time.sleep(0.002)
        time.sleep(float(draw.uniform(0, 0.05)))
        process.kill()
        process.join()
        assert parts.is_dir(), f"the run ended before it was killed {times} times"
        left.append(_count(parts))
    return left


def files_of(folder: Path) -> dict[str, bytes]:
    """A run's files except the one that contains its times."""
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.name != "run.json"}


def _count(parts: Path) -> int:
    """Whole parts; what is being written has a name that begins with a dot."""
    return len([path for path in parts.glob("*.parquet") if path.name[0] != "."])
