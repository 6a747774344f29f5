"""`bench rows`: writing, size and reading of a run's Parquet file.

Workload: six made-up runs (see `bench pages`), one file each.

- Writing: `facts_table.write_facts`. Peer: pyarrow's defaults. Lower bound of the time (the limit):
  writing the columns' bytes as they are in memory. All are flushed to the disk.
- Reading: the column for P@1, file by file as a page does. Peer: pyarrow's scan over all files.
  Lower bound of the time (the limit): reading the same numbers from one plain file.
"""

import os
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.dataset import dataset, field

from lama_core.files import atomic_file
from lama_core.runs.facts_table import read_columns, write_facts
from lama_core.runs.info import FACTS_FILE
from tools.bench.made_up import make_runs
from tools.bench.measuring import BenchRow, Way, rates

COLUMN = "rank_filtered"


def run(*, n_queries: int = 200_000, repetitions: int = 3) -> Iterator[BenchRow]:
    """Measure writing and reading of runs with `n_queries` rows each."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        runs = make_runs(folder / "runs", n_facts=n_queries)
        files = [run.info.folder / FACTS_FILE for run in runs]
        yield from writing(files[0], folder, repetitions)
        yield from reading(files, folder, repetitions)


def writing(file: Path, folder: Path, repetitions: int) -> list[BenchRow]:
    """Measure rows written per second, and bytes per row."""
    table = pq.read_table(file)
    n_rows = table.num_rows
    buffers = [
        buffer
        for column in table.columns
        for chunk in column.chunks
        for buffer in chunk.buffers()
        if buffer is not None
    ]
    ours_file, plain_file, bare_file = (folder / name for name in ("ours", "plain", "bare"))

    def by_default() -> None:
        with atomic_file(plain_file) as part:
            pq.write_table(table, part)

    def bare() -> None:
        with bare_file.open("wb") as out:
            for buffer in buffers:
                out.write(buffer)
            out.flush()
            os.fsync(out.fileno())

    ways: tuple[Way, ...] = (partial(write_facts, table, ours_file), by_default, bare)
    ours, peer, limit = rates(n_rows, ways, repetitions)
    sizes = [path.stat().st_size / n_rows for path in (ours_file, plain_file, bare_file)]
    what = f"{n_rows:,} rows of a run written"
    plain, columns = "pyarrow's defaults", "the columns' bytes, as in memory"
    return [
        BenchRow(what, "rows/s", ours, peer, plain, limit, columns),
        BenchRow(f"{what}: size", "bytes per row", sizes[0], sizes[1], plain, sizes[2], columns),
    ]


def reading(files: Sequence[Path], folder: Path, repetitions: int) -> list[BenchRow]:
    """Measure the rows read per second to compute P@1 of each run."""
    numbers = folder / "numbers"
    with numbers.open("wb") as out:
        for file in files:
            out.write(_numbers(read_columns(file, [COLUMN])).tobytes())
    n_rows = numbers.stat().st_size // 4

    def by_column() -> list[int]:
        return [_count(_numbers(read_columns(file, [COLUMN]))) for file in files]

    def scan() -> int:
        return dataset(files).count_rows(filter=field(COLUMN) == 1)

    def bare() -> int:
        return _count(np.fromfile(numbers, np.int32))

    assert sum(by_column()) == scan() == bare()
    ours, peer, limit = rates(n_rows, (by_column, scan, bare), repetitions)
    what = f"P@1 of {len(files)} runs, {n_rows:,} rows, from their files"
    return [BenchRow(what, "rows/s", ours, peer, "one scan", limit, "the numbers as a plain file")]


def _numbers(table: pa.Table) -> np.ndarray:
    """Return the ranks, int32 [row]; 0 for excluded rows."""
    return table[COLUMN].fill_null(0).to_numpy().astype(np.int32)


def _count(ranks: np.ndarray) -> int:
    return int((ranks == 1).sum())
