"""The campaign of full and read-only disks: what works without writing, and what says why not.

The homes are file systems of their own, where this process may mount them; where it may not, the
campaign says so, and throws nothing.
"""

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lama_core.paths import ASSETS
from tools.stress.campaign import Fault, Outcome, bundled
from tools.stress.commands import Thrown, Worker, judge

PROBE = "probe --dataset starter --relation P36 --model minilm-mlm"
IMPORT = f"data import {ASSETS / 'datasets' / 'starter'} --name own"
WRITES = (
    f"{PROBE} --relation P19 --limit 40", "prompts select --relation P36 --limit 9",
    "analogy probe --probe type --relation animal_-_young --limit 9", IMPORT, "data get lama",
    "models add owner/name", "models get bert-base-cased",
)  # fmt: skip
KINDS = {"read-only": "ro,size=16m", "full": "size=64k", "no files left": "nr_inodes=4,size=16m"}


def reads() -> tuple[str, ...]:
    """Commands that only read."""
    return (
        "models", "models list --json", "models info minilm-mlm", "models get minilm-mlm",
        "data list", "data list --json", "runs list", "runs list --json",
        "results --by type --json",
        "cloze --model minilm-mlm Rome_is_in_[MASK]_.", "prompts list --relation P36",
        "cloze --model minilm-mlm --relation P36 --subject France --json",
        f"compare {bundled('starter-minilm_mlm-manual')} {bundled('starter-smollm2_135m-manual')}",
        f"prompts analyse {bundled('starter-minilm_mlm-study')}",
        "analogy solve tokyo japan paris ___",
    )  # fmt: skip


def run(n: int, seed: int, folder: Path, tell: Callable[[int], None]) -> Outcome:
    """Throw at most n commands at each kind of disk; the seed draws nothing.

    What reads must work. What writes must end well, or say in one line why it can't.
    """
    outcome = Outcome("disk")
    began = time.monotonic()
    worker = Worker(folder / "worker")
    reading = reads()
    try:
        for kind, options in KINDS.items():
            with mounted(folder / "disk", options) as home:
                if home is None:
                    outcome.figures[kind] = "not tried: this process may not mount file systems"
                    continue
                for words in (*reading, *WRITES)[:n]:
                    thrown = Thrown([word.replace("_", " ") if "[MASK]" in word else
                                     word.replace("_-_", " - ") for word in words.split()],
                                    home=str(home))  # fmt: skip
                    ended = worker.throw(thrown)
                    outcome.count({0: "answered", 2: "refused"}.get(ended.status, "failed"),
                                  ended.seconds, ended.peak)  # fmt: skip
                    given = f"{kind} disk: {words}"
                    outcome.faults += [Fault(fault.what, given, fault.said)
                                       for fault in judge(thrown, ended)]  # fmt: skip
                    if ended.status == 2 and words in reading:
                        outcome.faults.append(Fault("error", given, ended.said[-400:]))
                    tell(outcome.n)
    finally:
        worker.stop()
    outcome.seconds = time.monotonic() - began
    return outcome


@contextmanager
def mounted(place: Path, options: str) -> Iterator[Path | None]:
    """A file system of its own as a home; None where none can be mounted."""
    place.mkdir(exist_ok=True)
    mount = shutil.which("mount")
    command = [mount or "mount", "-t", "tmpfs", "-o", options, "lama-stress", str(place)]
    if mount is None or subprocess.run(command, capture_output=True, check=False).returncode:
        yield None
        return
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)
