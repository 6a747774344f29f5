"""P@k by how often a model has read a fact's subject and object together so far.

This is known for a series of checkpoints if the model's folder has the file READINGS_FILE: gzipped
tab-separated text with the head `subject`, `object` and the training steps. A row has a pair and,
for each step, the number of passages with both names that the model read before this step.
"""

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from lama_core.datasets.dataset import Pair
from lama_core.errors import UserError
from lama_core.files import read_gzip_lines, write_gzip_lines
from lama_core.metrics.intervals import share_intervals
from lama_core.metrics.training import Training
from lama_core.metrics.training_texts import read_text_file

READINGS_FILE = "pair_readings.tsv.gz"
HEAD = ("subject", "object")
# The least number of readings in each group; a group ends where the next one begins.
GROUPS = (0, 1, 2, 4, 8, 16, 32, 64)


@dataclass(frozen=True)
class Readings:
    """How often a model has read the subject and object of a pair together.

    Attributes:
        steps: Training steps.
        counts: (subject, object) -> number of passages with both that were read before each step.
    """

    steps: tuple[int, ...]
    counts: Mapping[Pair, tuple[int, ...]]

    def before(self, step: int, pairs: Iterable[Pair]) -> NDArray[np.float64]:
        """Return the readings of each pair before a step; NaN for pairs that weren't counted."""
        at = self.steps.index(step)
        found = (self.counts.get(pair) for pair in pairs)
        return np.array([np.nan if one is None else one[at] for one in found], dtype=np.float64)


def save_readings(readings: Readings, path: Path) -> None:
    """Write a file of readings; equal readings give equal bytes."""
    rows = [(*HEAD, *map(str, readings.steps))]
    rows += [(*pair, *map(str, readings.counts[pair])) for pair in sorted(readings.counts)]
    write_gzip_lines(path, map("\t".join, rows))


def load_readings(path: Path) -> Readings:
    """Return the readings in a file; raise UserError for another kind of file."""
    counts: dict[Pair, tuple[int, ...]] = {}
    try:
        head, *rows = (line.split("\t") for line in read_gzip_lines(path))
        if tuple(head[:2]) != HEAD:
            raise ValueError(head)
        for subject, gold, *values in rows:
            if len(values) != len(head) - 2:
                raise ValueError(values)
            counts[subject, gold] = tuple(map(int, values))
        return Readings(tuple(map(int, head[2:])), counts)
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise UserError(f"{path} isn't a file of readings.") from error


def readings_of(series: str) -> Readings | None:
    """Return the readings of the model that a series is named after; None if there are none."""
    return read_text_file(series, READINGS_FILE, load_readings)


def group_name(number: int) -> str:
    """Return the name of a group: `never`, `once`, `2 to 3 times`, ..., `64 times or more`."""
    least = GROUPS[number]
    if number + 1 == len(GROUPS):
        return f"{least} times or more"
    last = GROUPS[number + 1] - 1
    return {0: "never", 1: "once"}.get(least) or f"{least} to {last} times"


def precision_by_readings(training: Training, readings: Readings) -> pd.DataFrame:
    """Return P@k by the number of readings, at each step of a series.

    Args:
        training: The answers of the series.
        readings: The readings of the series; facts without readings are excluded.

    Returns:
        A row for each step and group with facts: step, group (from `GROUPS`), readings (the
        group's name), n, n_right, p_at_k, low, high.
    """
    pairs = list(zip(training.facts["subject"], training.facts["object"], strict=True))
    lines: list[dict[str, object]] = []
    for column, step in enumerate(training.steps):
        if step not in readings.steps:
            continue
        counts = readings.before(step, pairs)
        known = ~np.isnan(counts)
        group = np.searchsorted(GROUPS, counts[known], side="right") - 1
        n = np.bincount(group, minlength=len(GROUPS))
        right = np.bincount(group, training.right[known, column], minlength=len(GROUPS))
        ends = share_intervals(right.astype(np.int64), np.maximum(n, 1))
        lines += [
            {
                "step": step,
                "group": GROUPS[number],
                "readings": group_name(int(number)),
                "n": int(n[number]),
                "n_right": int(right[number]),
                "p_at_k": right[number] / n[number],
                "low": float(ends.low[number]),
                "high": float(ends.high[number]),
            }
            for number in np.flatnonzero(n)
        ]
    columns = ["step", "group", "readings", "n", "n_right", "p_at_k", "low", "high"]
    return pd.DataFrame(lines, columns=columns)
