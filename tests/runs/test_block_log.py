"""The log of scored batches survives being cut at any byte."""

from pathlib import Path

import numpy as np
import pytest

from lama_core.errors import UserError
from lama_core.runs.block_log import ROW, Block, BlockLog


def block(number: int, n_rows: int = 3) -> Block:
    rows = np.zeros(n_rows, dtype=ROW)
    rows["query"] = np.arange(n_rows) + 10 * number
    rows["log_prob"] = -number / 7
    return Block(0, number, rows)


def numbers(path: Path) -> list[int]:
    with BlockLog(path, "run") as log:
        return [done.number for done in log.done]


def test_blocks_come_back_as_they_were_written(tmp_path: Path) -> None:
    with BlockLog(tmp_path / "log", "run") as log:
        log.append(block(0))
        log.append(block(1, 2))
    with BlockLog(tmp_path / "log", "run") as log:
        assert [done.number for done in log.done] == [0, 1]
        assert log.done[1].rows.tobytes() == block(1, 2).rows.tobytes()


def test_a_log_cut_anywhere_loses_only_the_record_that_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "log"
    ends = []
    with BlockLog(path, "run") as log:
        for number in range(3):
            ends.append(path.stat().st_size)
            log.append(block(number))
    whole = path.read_bytes()
    for length in range(len(whole) + 1):
        path.write_bytes(whole[:length])
        n_whole = sum(length >= end for end in [*ends[1:], len(whole)])
        assert numbers(path) == list(range(n_whole))
        with BlockLog(path, "run") as log:
            log.append(block(9))
        assert numbers(path) == [*range(n_whole), 9]


def test_a_flipped_bit_ends_the_log_before_it(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with BlockLog(path, "run") as log:
        log.append(block(0))
        middle = path.stat().st_size + 40
        log.append(block(1))
    data = bytearray(path.read_bytes())
    data[middle] ^= 1
    path.write_bytes(data)
    assert numbers(path) == [0]


def test_the_log_of_another_run_is_refused(tmp_path: Path) -> None:
    BlockLog(tmp_path / "log", "one").close()
    with pytest.raises(UserError, match="belongs to another run"):
        BlockLog(tmp_path / "log", "two")


def test_a_full_disk_is_said_and_keeps_what_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log"
    with BlockLog(path, "run") as log:
        log.append(block(0))

        def full(descriptor: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("os.fsync", full)
        with pytest.raises(UserError, match="the disk is full"):
            log.append(block(1))
        monkeypatch.undo()
    assert 0 in numbers(path)
