"""`bench start`: CPU seconds of the first prediction in a new process.

Ours: the whole command, from the start of Python to its end. Peer: only importing torch; for the
causal model also transformers, which reads most causal models. Commands and imports alternate; the
first round, which compiles modules and stores passed self-checks, isn't counted. One thread,
because idle threads of a busy machine count as CPU time.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from lama_core.models.sources.catalog import find_model
from lama_core.models.sources.locations import locate
from lama_core.paths import IMPORT_ROOT
from tools.bench.measuring import TARGET, BenchRow, medians
from tools.bench.workload import CAUSAL, MASKED

TEXT = "Paris is the capital of ___."
# Model -> the imports that it needs, and the target: command time divided by import time.
IMPORTS = {MASKED: ("import torch", 1.3), CAUSAL: ("import torch, transformers", 1.5)}


def run(*, repetitions: int = 5) -> Iterator[BenchRow]:
    """Measure the first prediction of each installed model in `IMPORTS`."""
    for model, (imports, times) in IMPORTS.items():
        if locate(find_model(model)) is None:
            continue
        bare, ours = first_predictions(model, repetitions)
        what = f"first prediction of {model} in a fresh process"
        target = f"{times:g} times the imports, {TARGET}"
        yield BenchRow(what, "CPU s", ours, bare, imports, times * bare, target)


def first_predictions(
    model: str, repetitions: int, folders: Sequence[Path] = (IMPORT_ROOT,)
) -> list[float]:
    """Return median CPU seconds: of the imports, then of the first prediction in each checkout.

    folders: Checkouts of this project to measure, for example of two commits.
    """
    ways = [partial(run_python, IMPORT_ROOT, "-c", IMPORTS[model][0])]
    command = ("-m", "lama_core", "cloze", TEXT, "--model", model)
    ways += [partial(run_python, folder, *command) for folder in folders]
    return medians(ways, repetitions, seconds_of_children)


def run_python(folder: Path, *arguments: str, **variables: str) -> None:
    """Run Python in a new process.

    folder: working folder, whose modules are imported first. variables: of the environment.
    """
    environment = os.environ | {"PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1"} | variables
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    subprocess.run(
        [sys.executable, *arguments], check=True, cwd=folder, env=environment, capture_output=True
    )


def seconds_of_children() -> float:
    """Return the CPU seconds of all child processes that have ended."""
    used = os.times()
    return used.children_user + used.children_system
