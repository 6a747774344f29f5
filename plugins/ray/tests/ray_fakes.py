"""Models for the workers of a Ray cluster, which import this module by its name."""

import json
import os
import time
from pathlib import Path
from typing import Any

import ray
from probe_fakes import CITIES, HashFiller, hash_model

from lama_core.errors import UserError


def _opened(reference: str) -> None:
    """Leave a line for the test: which worker, of which node, has opened what."""
    if "RAY_TEST_OPENED" not in os.environ:  # the driver
        return
    node = ray.get_runtime_context().get_node_id()
    file = Path(os.environ["RAY_TEST_OPENED"]) / f"{node}-{os.getpid()}"
    with file.open("a") as lines:
        lines.write(json.dumps([node, os.getpid(), reference]) + "\n")


def opened(folder: Path) -> list[tuple[str, int, str]]:
    return [
        tuple(json.loads(line))
        for file in sorted(folder.iterdir())
        for line in file.read_text().splitlines()
    ]


def load_slow(reference: str, *, precision: str) -> Any:
    _opened(reference)
    return HashFiller(CITIES, name=reference, pause=0.02)


def load_second(reference: str, *, precision: str) -> Any:
    """As `load_slow`, when a second worker opens one, too: on a busy machine they begin apart."""
    return _load_beside(1, reference, precision)


def load_fourth(reference: str, *, precision: str) -> Any:
    return _load_beside(3, reference, precision)


def _load_beside(n_others: int, reference: str, precision: str) -> Any:
    model = load_slow(reference, precision=precision)
    folder = Path(os.environ.get("RAY_TEST_OPENED", ""))
    while "RAY_TEST_OPENED" in os.environ and len(list(folder.iterdir())) <= n_others:
        time.sleep(0.05)
    return model


def load_broken(reference: str, *, precision: str) -> Any:
    """A model that gives NaN for one relation's texts."""
    return HashFiller(CITIES, name=reference, broken="Question")


def load_nowhere(reference: str, *, precision: str) -> Any:
    """What the driver has and a worker's node hasn't."""
    if "RAY_TEST_OPENED" in os.environ:
        raise UserError(f"There is no model {reference!r} here.")
    return hash_model(reference)


class _Deadly(HashFiller):
    def blank_log_probs(self, *_: Any) -> Any:
        os._exit(1)


def load_deadly(reference: str, *, precision: str) -> Any:
    return _Deadly(CITIES, name=reference)
