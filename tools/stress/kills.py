"""The campaign of kills: commands killed at random moments, and what the next command finds.

After a kill the lists work, the same command again ends well with the same result byte for byte
(times apart) as one that was never disturbed, and nothing half made stays.
"""

import hashlib
import random
import re
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lama_core.paths import ASSETS
from tools.stress.campaign import Fault, Outcome
from tools.stress.commands import Ended, Thrown, Worker, judge

LISTS = ("runs list --json", "data list --json", "models list --json", "results --json")
TIMES = re.compile(rb'"[a-z_]*(created|made|fetched|installed|seconds|changed|at)": *[^,}\n]*')
PROBE = "probe --dataset starter --relation P36 --model minilm-mlm"
IMPORT = f"data import {ASSETS / 'datasets' / 'starter'} --name own"


@dataclass(frozen=True, slots=True)
class Killed:
    """A command that is killed. before: what it stands on.

    once: done, it can't be done again: the same command is then refused.
    """

    words: str
    before: str = ""
    once: bool = False


KILLED = (
    Killed(f"{PROBE} --relation P19 --limit 60"),
    Killed("prompts select --relation P36 --limit 20 --train-limit 20"),
    Killed("analogy probe --probe type --relation animal_-_young --limit 40"),
    Killed(IMPORT, once=True),
    Killed(f"{IMPORT} --replace", IMPORT),
    Killed("data rename own ours", IMPORT, once=True),
    Killed("data delete own --yes", IMPORT, once=True),
    Killed("runs rename RUN first", f"{PROBE} --limit 3"),
    Killed("runs delete RUN --yes", f"{PROBE} --limit 3", once=True),
)


@dataclass(frozen=True, slots=True)
class Whole:
    """A command undisturbed: the home it began in, what came of it, and how long it took."""

    base: Path
    contents: dict[str, str]
    seconds: float


def run(n: int, seed: int, folder: Path, tell: Callable[[int], None]) -> Outcome:
    """Kill n commands; a fault is whatever a kill spoiled.

    Some end before they are killed: of those at most 3n are thrown.
    """
    outcome = Outcome("kills")
    began = time.monotonic()
    chance = random.Random(seed)
    worker = Worker(folder / "worker")
    wholes: dict[Killed, Whole] = {}
    home = folder / "home"
    try:
        for number in range(4 * n):
            if outcome.counts.get("killed", 0) == n:
                break
            one = KILLED[number % len(KILLED)]
            if one not in wholes:
                wholes[one] = _undisturbed(one, worker, folder / f"whole-{len(wholes)}")
            whole = wholes[one]
            shutil.copytree(whole.base, home)
            given = _thrown(one.words, home, killed_after=whole.seconds * chance.uniform(0, 1))
            ended = worker.throw(given)
            outcome.count("killed" if ended.status == -9 else "over before", ended.seconds)
            outcome.faults += _spoiled(one, given, home, whole.contents, worker)
            shutil.rmtree(home)
            tell(outcome.counts.get("killed", 0))
    finally:
        worker.stop()
    outcome.seconds = time.monotonic() - began
    return outcome


def contents(home: Path) -> dict[str, str]:
    """What a home holds: the digest of each file by its path, times and locks apart."""
    found = {}
    for path in home.rglob("*"):
        if path.is_file() and path.suffix != ".lock":
            data = path.read_bytes()
            data = TIMES.sub(b"", data) if path.suffix == ".json" else data
            found[str(path.relative_to(home))] = hashlib.sha256(data).hexdigest()
    return found


def is_left(path: str) -> bool:
    """Whether something half made or half removed is at a path, or on the way to it."""
    return any(part.endswith(".part") or part.startswith(".") for part in Path(path).parts)


def _undisturbed(one: Killed, worker: Worker, place: Path) -> Whole:
    base, home = place / "base", place / "home"
    base.mkdir(parents=True)
    if one.before:
        _must(worker.throw(_thrown(one.before, base)), one.before)
    shutil.copytree(base, home)
    ended = worker.throw(_thrown(one.words, home))
    _must(ended, one.words)
    return Whole(base, contents(home), ended.seconds)


def _must(ended: Ended, words: str) -> None:
    if ended.status:
        raise RuntimeError(f"undisturbed, {words} ended with {ended.status}: {ended.said[-1000:]}")


def _spoiled(
    one: Killed, given: Thrown, home: Path, expected: dict[str, str], worker: Worker
) -> list[Fault]:
    """What the kill spoiled: the lists, the same command again, and what is in the home then."""
    faults = []
    for words in LISTS:
        listed = _thrown(words, home)
        ended = worker.throw(listed)
        faults += [Fault(fault.what, given.given(), f"then {words}: {fault.said}")
                   for fault in judge(listed, ended)]  # fmt: skip
        if ended.status == 2:
            faults.append(Fault("error", given.given(), f"then {words}: {ended.said[-400:]}"))
    again = _thrown(one.words, home)
    ended = worker.throw(again)
    faults += [Fault(fault.what, given.given(), f"the same again: {fault.said}")
               for fault in judge(again, ended)]  # fmt: skip
    if ended.status == 2 and not one.once:
        faults.append(Fault("error", given.given(), f"the same again: {ended.said[-400:]}"))
    found = contents(home)
    if left := sorted(filter(is_left, found)):
        faults.append(Fault("left behind", given.given(), ", ".join(left[:5])))
    lost = [path for path in sorted({*expected, *found} - set(left))
            if path.startswith("data/") and expected.get(path) != found.get(path)]  # fmt: skip
    if lost:
        faults.append(Fault("lost", given.given(), f"not as undisturbed: {', '.join(lost[:5])}"))
    return faults


def _thrown(words: str, home: Path, killed_after: float | None = None) -> Thrown:
    """A command in a home. RUN in it stands for the home's only run."""
    given = [word.replace("_-_", " - ") for word in words.split()]
    if "RUN" in given:
        runs = home / "data" / "runs"
        names = [path.name for path in runs.iterdir() if path.is_dir() and path.name[0] != "."]
        given = [names[0] if word == "RUN" and names else word for word in given]
    return Thrown(given, home=str(home), killed_after=killed_after)
