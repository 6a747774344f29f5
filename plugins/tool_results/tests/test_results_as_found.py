"""Tables of results as people have them: other writers, several columns of ranks."""

import math
from pathlib import Path

from data_files import write_lines
from imported_runs import imported

from lama_tool_results.importing import ImportRunRequest, open_results

FACTS = [{"subject": f"s{at}", "relation": "r", "object": f"o{at}"} for at in range(3)]


def test_an_infinite_log_probability_is_none_and_the_rank_counts(tmp_path: Path) -> None:
    numbers = (-1.0, -math.inf)
    rows = [{**FACTS[at], "rank": 1, "log_prob": one} for at, one in enumerate(numbers)]
    path = write_lines(tmp_path / "table.jsonl", rows)
    (one,) = open_results(ImportRunRequest(str(path), model="toy"))
    assert one.finished.rows["log_prob"].to_pylist() == [-1.0, None]
    assert one.precision == (1, 1)


def test_two_columns_of_a_file_are_two_runs_and_a_file_twice_is_one(
    home: Path, tmp_path: Path
) -> None:
    rows = [{**one, "first": at + 1, "second": 3 - at} for at, one in enumerate(FACTS)]
    path = write_lines(tmp_path / "table.jsonl", rows)
    one = imported(path, column=["rank=first"])
    other = imported(path, column=["rank=second"])
    again = imported(path, column=["rank=first"])
    assert one.info.id == again.info.id != other.info.id
    assert one.column("rank_raw").tolist() == again.column("rank_raw").tolist() == [1, 2, 3]
    assert other.column("rank_raw").tolist() == [3, 2, 1]
