"""Imports and removals that are killed at any step leave the old or the new."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from first.datasets.test_library import FACTS, leftovers, make_lama

from lama_core.datasets import load_dataset
from lama_core.datasets.library import download, installed
from lama_core.files import clear_leftovers

pytestmark = pytest.mark.usefixtures("home")


CHANGES = ("os.rename", "os.mkdir", "os.rmdir", "os.remove", "os.link", "os.truncate")


def killed_at(step: int, act: Callable[[], object]) -> bool:
    """Whether a process that does this was killed right before its `step`-th change of files."""
    child = os.fork()
    if not child:
        left = step

        def kill(event: str, details: tuple[object, ...]) -> None:
            nonlocal left
            writes = event == "open" and isinstance(details[2], int) and details[2] & os.O_ACCMODE
            left -= event in CHANGES or bool(writes)
            if left < 0:
                os._exit(9)

        try:
            sys.addaudithook(kill)
            act()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


def test_a_replacement_that_is_killed_anywhere_leaves_the_old_or_the_new(tmp_path: Path) -> None:
    old, new = make_lama(tmp_path / "old"), make_lama(tmp_path / "new", FACTS.split("\n")[0])
    seen = []
    for step in range(1_000):
        shutil.rmtree(tmp_path / "home", ignore_errors=True)
        download.import_dataset(old, name="mine")
        if not killed_at(step, lambda: download.import_dataset(new, name="mine", replace=True)):
            break
        assert installed.installed_names() == ("mine",)
        seen.append(len(load_dataset("mine").facts))
        clear_leftovers(installed.datasets_dir())
        assert not [name for name in leftovers() if name.startswith(".work-")]
        download.import_dataset(old, name="mine", replace=True)
        assert len(load_dataset("mine").facts) == 2 and leftovers() == []
    assert set(seen) == {1, 2} and len(seen) > 10
    assert seen == sorted(seen, reverse=True)  # once the new one is there, it stays
