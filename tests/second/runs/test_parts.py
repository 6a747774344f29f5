"""A part of a run counts when it is whole; what is damaged is scored again, and said."""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lama_core.errors import UserError
from lama_core.models.devices import PassSettings
from lama_core.progress import ignore
from lama_core.runs.parts import Folder, Parts, place_of
from lama_core.scoring.top_answers import ROW, from_table, to_table


def rows(number: int, n_rows: int = 3) -> pa.Table:
    found = np.zeros(n_rows, dtype=ROW)
    found["query"] = np.arange(n_rows) + 10 * number
    found["log_prob"] = -number / 7
    found["top"] = number
    return to_table(found)


@pytest.mark.parametrize("address", ("", "memory://parts"))
def test_parts_come_back_as_they_were_written(tmp_path: Path, address: str) -> None:
    place = place_of("run", tmp_path, address)
    parts = Parts(place, "run")
    parts.write("00000", rows(0), 1.5)
    settings = PassSettings(threads=2, batch_tokens=512)
    parts.write("00001", rows(1, 2), 0.25, "cpu", settings)
    again = Parts(place, "run")
    first, found = (again.load(name, ignore) for name in ("00000", "00001"))
    assert first is not None and found is not None
    assert (first.seconds, first.settings) == (1.5, None)
    assert (found.seconds, found.device, found.settings) == (0.25, "cpu", settings)
    assert from_table(found.table).tobytes() == from_table(rows(1, 2)).tobytes()
    assert again.load("00002", ignore) is None
    place.write("00001.parquet", b"cut")
    assert again.load("00001", ignore) is None
    place.delete()
    assert again.load("00000", ignore) is None


def test_the_part_of_another_run_is_refused(tmp_path: Path) -> None:
    Parts(Folder(tmp_path), "one").write("00000", rows(0), 1.0)
    with pytest.raises(UserError, match="belongs to another run"):
        Parts(Folder(tmp_path), "two").load("00000", ignore)


def test_a_full_disk_is_said_and_keeps_what_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = Parts(Folder(tmp_path), "run")
    parts.write("00000", rows(0), 1.0)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(UserError, match="the disk is full"):
        parts.write("00001", rows(1), 1.0)
    monkeypatch.undo()
    assert parts.load("00000", ignore) is not None and parts.load("00001", ignore) is None
    assert len(os.listdir(tmp_path / "parts")) == 1, "nothing half-written is left"
