"""`bench data`: reading a dataset of T-REx's size.

Workload: 34,039 facts with ten evidence sentences each, in 41 relations. Ours: the whole reader
(validation, ids, reports, digest). Peer: `json.loads` for each line, into a list of dictionaries.
Lower bound of the time (the limit): parsing each line with orjson and discarding it. Memory is
measured in a separate process.
"""

import json
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import orjson

from lama_core.datasets import lama
from tools.bench.measuring import BenchRow, called_in_a_fresh_process, medians

N_RELATIONS = 41
N_FACTS = 34_039
N_EVIDENCES = 10


def run(*, n_facts: int = N_FACTS, repetitions: int = 3) -> Iterator[BenchRow]:
    """Measure the seconds and the peak memory of reading the facts."""
    # A local import: the process whose memory is measured imports this module, too.
    from tools.bench.workload import write_lama

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_lama(folder, n_facts, n_relations=N_RELATIONS, n_evidences=N_EVIDENCES)
        ways = [partial(way, folder) for way in (lama.load, read_plainly, parse_only)]
        ours, peer, limit = medians(ways, repetitions)
        _, peak = called_in_a_fresh_process(read_once, name)
    what = f"reading {n_facts:,} facts with {N_EVIDENCES} evidences each"
    yield BenchRow(what, "s", ours, peer, "json.loads into dictionaries", limit, "orjson alone")
    yield BenchRow(f"{what}: peak memory of the process", "MB", peak / 1e6)


def read_once(folder: str) -> None:
    """Read the files with this library's reader."""
    lama.load(Path(folder))


def read_plainly(folder: Path) -> list[dict[str, object]]:
    """Return each line as a dictionary, as simple scripts read LAMA."""
    rows = []
    for path in sorted((folder / "TREx").glob("*.jsonl")):
        with path.open(encoding="utf-8") as file:
            rows += [json.loads(line) for line in file]
    return rows


def parse_only(folder: Path) -> None:
    """Parse each line and discard it."""
    for path in sorted((folder / "TREx").glob("*.jsonl")):
        with path.open("rb") as file:
            for line in file:
                orjson.loads(line)
