"""`bench data`: reading LAMA at its full size beside plain JSON reading and the bare parser.

34,039 facts in 41 relations with ten evidences each are written to a temporary folder. `ours` is
the whole reader (validation, ids, reports, digest), `peer` is what scripts do (`json.loads` a line
into a list of dictionaries), `limit` is the parser alone. Memory is that of a process of its own.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import orjson

from lama_core.datasets import lama
from tools.bench import BenchRow

N_RELATIONS = 41
N_FACTS = 34_039
N_EVIDENCES = 10
REPETITIONS = 3

# The kernel's own peak of the process: ru_maxrss would count what its parent held before.
_MEMORY_SCRIPT = """
import re, resource, sys
from pathlib import Path
from lama_core.datasets import lama
lama.load(Path(sys.argv[1]))
status = Path("/proc/self/status")
peak = re.search(r"VmHWM:\\s*(\\d+) kB", status.read_text()) if status.is_file() else None
unit = 1 if sys.platform == "darwin" else 1024
maxrss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
print(int(peak[1]) * 1024 if peak else maxrss)
"""


def run(*, repetitions: int = REPETITIONS) -> list[BenchRow]:
    """Seconds to read 34,039 facts, and the megabytes that the process takes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_lama(folder)
        ways: tuple[Callable[[Path], object], ...] = (lama.load, read_plainly, parse_only)
        seconds: list[list[float]] = [[] for _ in ways]
        for _ in range(repetitions):
            # In turn, so that what else the machine does hits all of them alike.
            for at, way in enumerate(ways):
                start = time.perf_counter()
                way(folder)
                seconds[at].append(time.perf_counter() - start)
        ours, peer, limit = (statistics.median(taken) for taken in seconds)
        memory = subprocess.run(
            [sys.executable, "-c", _MEMORY_SCRIPT, str(folder)],
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(__file__).resolve().parents[2],
        )
    what = f"reading {N_FACTS:,} facts with {N_EVIDENCES} evidences each"
    megabytes = int(memory.stdout) / 1e6
    return [
        BenchRow(what, "s", ours, peer, "json.loads into dictionaries", limit, "orjson alone"),
        BenchRow(f"{what}: peak memory of the process", "MB", megabytes),
    ]


def write_lama(folder: Path) -> None:
    """Write T-REx files of LAMA's size and shape, with made-up names."""
    (folder / "TREx").mkdir()
    relations = []
    for number in range(N_RELATIONS):
        name = f"P{number + 1}"
        relations.append({"relation": name, "template": "[X] is in [Y] .", "type": "N-1"})
        n_facts = N_FACTS // N_RELATIONS + (number < N_FACTS % N_RELATIONS)
        lines = (_line(name, at) for at in range(n_facts))
        (folder / "TREx" / f"{name}.jsonl").write_bytes(b"".join(lines))
    rows = "".join(json.dumps(row) + "\n" for row in relations)
    (folder / "relations.jsonl").write_text(rows, "utf-8")


def _line(relation: str, at: int) -> bytes:
    subject = f"Subject {at} of {relation}"
    evidences = [
        {
            "sub_surface": subject,
            "obj_surface": "Paris",
            "masked_sentence": f"{subject} stands, as sentence {i} of a long text says in passing "
            "and with many words more than are needed, in [MASK], where it has always stood .",
        }
        for i in range(N_EVIDENCES)
    ]
    row = {
        "uuid": f"{relation}-{at}",
        "sub_uri": f"Q{at}",
        "obj_uri": "Q90",
        "sub_label": subject,
        "obj_label": "Paris",
        "predicate_id": relation,
        "evidences": evidences,
    }
    return orjson.dumps(row) + b"\n"


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
