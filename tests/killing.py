"""Processes that make runs, killed at random moments."""

import os
import signal
import time
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from forked import forked


def kill_often(run: Callable[[], object], parts: Path, *, times: int = 10) -> list[int]:
    """Fork this process again and again to make a run, and kill the fork; how many parts each left.

    parts: folder of the run's parts; each process is killed a moment after it has written one more.
    While the first is halted in the middle of the run, another one is refused in a sentence.
    """
    draw = np.random.default_rng(20)
    left: list[int] = []
    for _ in range(times):
        before = _count(parts)
        process = get_context("fork").Process(target=run)
        process.start()
        while process.is_alive() and _count(parts) <= before:
            time.sleep(0.002)
        time.sleep(float(draw.uniform(0, 0.05)))
        if not left and process.pid:
            os.kill(process.pid, signal.SIGSTOP)
            again = forked(run)
            assert again.status == 2
            assert f"Another process ({process.pid}: " in again.said
            assert ", stopped) is writing the run" in again.said
        process.kill()
        process.join()
        assert parts.is_dir(), f"the run ended before it was killed {times} times"
        left.append(_count(parts))
    return left


def files_of(folder: Path) -> dict[str, bytes]:
    """A run's files except the one that contains its times."""
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.name != "run.json"}


def _count(parts: Path) -> int:
    return len([path for path in parts.glob("*.parquet") if path.name[0] != "."])
