"""A command that is killed at any moment spoils nothing.

The lists work, the same command again ends well, and the home then holds what it does where nothing
was ever killed (times apart), with nothing half made.
"""

import hashlib
import re
import shutil
from pathlib import Path

import pytest
from forked import Ended, check
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sandbox import Sandbox

from lama_core.paths import ASSETS

LISTS = ("runs list --json", "data list --json", "models list --json", "results --json")
# A description's checksum depends on its times.
TIMES = re.compile(
    rb'"[a-z_]*(created|made|fetched|installed|seconds|changed|at|checksum)": *[^,}\n]*'
)
PROBE = "probe --dataset starter --relation P36 --model minilm-mlm"
IMPORT = f"data import {ASSETS / 'datasets' / 'starter'} --name own"
# Command, what it needs first, and whether it can be done only once.
KILLED = (
    (f"{PROBE} --relation P19 --limit 24", "", False),
    ("prompts select --relation P36 --limit 8 --train-limit 8", "", False),
    ("analogy probe --probe type --relation 'animal - young' --limit 12", "", False),
    (IMPORT, "", True),
    (f"{IMPORT} --replace", IMPORT, False),
    ("data rename own ours", IMPORT, True),
    ("data delete own --yes", IMPORT, True),
    ("runs rename RUN first", f"{PROBE} --limit 3", False),
    ("runs delete RUN --yes", f"{PROBE} --limit 3", True),
)


def contents(home: Path) -> dict[str, str]:
    """The digest of each file of a home by its path, times and locks apart."""
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


def run(sandbox: Sandbox, words: str, home: Path, **around: float) -> Ended:
    if "RUN" in words:
        runs = [one.name for one in (home / "data" / "runs").iterdir() if one.is_dir()]
        words = words.replace("RUN", next((one for one in runs if one[0] != "."), "RUN"))
    return sandbox.run(words, home=str(home), **around)


@pytest.mark.parametrize(("killed", "before", "once"), KILLED)
def test_a_killed_command_ends_as_if_it_never_was(
    killed: str, before: str, once: bool, sandbox: Sandbox, tmp_path: Path
) -> None:
    base, home = tmp_path / "base", tmp_path / "home"
    base.mkdir()
    if before:
        check(run(sandbox, before, base), before)
    shutil.copytree(base, home)
    whole = run(sandbox, killed, home)
    assert whole.status == 0, whole.said
    expected = contents(home)

    @settings(
        max_examples=3,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.generate],
    )
    @given(share=st.floats(0.1, 1))
    def holds(share: float) -> None:
        shutil.rmtree(home)
        shutil.copytree(base, home)
        ended = run(sandbox, killed, home, killed_after=whole.seconds * share)
        assert ended.status in (-9, 0), ended.said
        for words in LISTS:
            listed = run(sandbox, words, home)
            check(listed, words)
            assert listed.status == 0, listed.said
        again = run(sandbox, killed, home)
        check(again, killed)
        assert again.status == 0 or once, again.said
        found = contents(home)
        assert not [path for path in found if is_left(path)]
        data = {path for path in {*expected, *found} if path.startswith("data/")}
        assert not [path for path in data if expected.get(path) != found.get(path)]

    holds()
