"""The benchmark of rows writes and reads the tables that runs have."""

from tools.bench import rows


def test_what_is_written_is_smaller_and_every_way_of_reading_counts_the_same() -> None:
    written, size, read = rows.run(n_queries=3000, repetitions=1)
    assert (written.unit, size.unit, read.unit) == ("rows/s", "bytes per row", "rows/s")
    assert size.peer is not None and size.limit is not None and size.ours < size.peer < size.limit
    assert read.ours > 0 and read.peer is not None and read.peer > 0
    assert "18,000 rows" in read.what
