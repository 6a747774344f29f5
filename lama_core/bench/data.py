"""`bench data`: reading LAMA at its full size beside plain JSON reading and the bare parser.

34,039 facts in 41 relations with ten evidences each are written to a temporary folder. `ours` is
the whole reader (validation, ids, reports, digest), `peer` is what scripts do (`json.loads` a line
into a list of dictionaries), `limit` is the parser alone. Memory is that of a process of its own.
"""

import json
import tempfile
from functools import partial
from pathlib import Path

import orjson

from lama_core.bench import BenchRow, called_in_a_fresh_process, medians
from lama_core.datasets import lama

N_RELATIONS = 41
N_FACTS = 34_039
N_EVIDENCES = 10


def run(*, repetitions: int = 3) -> list[BenchRow]:
    """Seconds to read 34,039 facts, and the megabytes that the process takes."""
    # Not above: the process whose memory is measured imports this module, and nothing but a reader.
    from lama_core.bench.workload import write_lama

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_lama(folder, N_FACTS, n_relations=N_RELATIONS, n_evidences=N_EVIDENCES)
        ways = [partial(way, folder) for way in (lama.load, read_plainly, parse_only)]
        ours, peer, limit = medians(ways, repetitions)
        _, peak = called_in_a_fresh_process(read_once, name)
    what = f"reading {N_FACTS:,} facts with {N_EVIDENCES} evidences each"
    return [
        BenchRow(what, "s", ours, peer, "json.loads into dictionaries", limit, "orjson alone"),
        BenchRow(f"{what}: peak memory of the process", "MB", peak / 1e6),
    ]


def read_once(folder: str) -> None:
    """Read the files with the whole reader."""
    lama.load(Path(folder))


def read_plainly(folder: Path) -> list[dict[str, object]]:
    """Every line as a dictionary, as scripts read LAMA."""
    rows = []
    for path in sorted((folder / "TREx").glob("*.jsonl")):
        with path.open(encoding="utf-8") as file:
            rows += [json.loads(line) for line in file]
    return rows


def parse_only(folder: Path) -> None:
    """Every line parsed and let go."""
    for path in sorted((folder / "TREx").glob("*.jsonl")):
        with path.open("rb") as file:
            for line in file:
                orjson.loads(line)
