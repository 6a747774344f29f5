"""Garbage is collected now and then, but not the libraries' objects."""

import subprocess
import sys

CODE = """
import gc
from pages.ui.shared import garbage_collection as rarely
from streamlit.runtime.scriptrunner import script_runner

class Ring:
    def __init__(self):
        self.ring = self

rarely.collect_rarely()
assert gc.get_threshold()[0] == rarely.N_NEW
collect = script_runner.gc.collect
assert collect(2) == 0 and gc.get_freeze_count() > 10_000
Ring()
assert collect(2) == 0, "too early"
rarely._last -= rarely.SECONDS
assert collect(2) >= 1, "the ring"
"""


def test_libraries_are_excluded_and_garbage_is_found_after_a_while() -> None:
    # In a process of its own: what is excluded stays excluded.
    subprocess.run([sys.executable, "-c", CODE], check=True)
