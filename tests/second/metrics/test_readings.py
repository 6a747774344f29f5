"""P@k by how often a pair was read: counted by hand, and its file."""

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lama_core.errors import UserError
from lama_core.metrics.readings import (
    Readings,
    load_readings,
    precision_by_readings,
)
from lama_core.metrics.training import Training

READINGS = Readings(
    (0, 8), {("Rome", "Italy"): (0, 3), ("Oslo", "Norway"): (0, 2), ("Lima", "Peru"): (0, 0)}
)


def training() -> Training:
    subjects, golds = ("Rome", "Oslo", "Lima", "Bern"), ("Italy", "Norway", "Peru", "Switzerland")
    facts = pd.DataFrame({"subject": subjects, "object": golds, "relation": "P36"})
    ranks = np.array([[9, 1], [1, 4], [2, 1], [1, 1]], dtype=float)
    return Training((0, 8), facts, {}, ranks, -ranks, 0)


def test_shares_are_counted_for_each_step_and_group() -> None:
    table = precision_by_readings(training(), READINGS)
    rows = table[["step", "readings", "n", "n_right", "p_at_k"]].to_numpy().tolist()
    # Bern isn't counted. At step 8, Rome was read 3 times and is right; Oslo twice, and is wrong.
    assert rows == [
        [0, "never", 3, 1, 1 / 3],
        [8, "never", 1, 1, 1.0],
        [8, "2 to 3 times", 2, 1, 0.5],
    ]
    only = Readings((8,), {pair: counts[1:] for pair, counts in READINGS.counts.items()})
    assert set(precision_by_readings(training(), only)["step"]) == {8}
    assert ((table["low"] <= table["p_at_k"]) & (table["p_at_k"] <= table["high"])).all()


@pytest.mark.parametrize(
    "text", ["a\tb\t0\n", "subject\tobject\t0\nRome\tItaly\n", "subject\tobject\t0\nR\tI\tx\n"]
)
def test_another_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "readings.tsv.gz"
    path.write_bytes(gzip.compress(text.encode()))
    with pytest.raises(UserError, match="isn't a file of readings"):
        load_readings(path)
