"""Runs of made-up checkpoints: the later a step, the more of the facts the model knows."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from probe_fakes import CITIES, HashFiller, random_scores, write_dataset

from lama_core.models.sources.checkpoints import checkpoint_of
from lama_core.probes.cloze.request import ProbeRequest
from lama_core.probes.cloze.spec import ClozeSpec
from lama_core.probes.plan import plan
from lama_core.runs.execute import execute
from lama_core.runs.info import Run

STEPS = (0, 1, 4, 16)


class StepFiller(HashFiller):
    """Gives random scores that depend on the step, and a bonus to a fact's word from some step."""

    def scores(self, text: str) -> NDArray[np.float64]:
        place = checkpoint_of(self.name)
        step = place.step if place else 0
        scores = random_scores(f"{text}{step}", self.vocabulary.size)
        number = int("".join(char for char in text if char.isdigit()) or 0)
        if text.startswith("Person") and number <= step:
            scores[number * 7 % 40] += 9.0
        return scores - np.log(np.exp(scores).sum())


def load_step(reference: str, *, precision: str = "fp32", on_progress: object = None) -> StepFiller:
    return StepFiller(CITIES, name=reference)


def plan_series(data: Path, steps: Sequence[int] = STEPS) -> list[ClozeSpec]:
    if not data.is_dir():
        write_dataset(data, n_facts=20)
    request = ProbeRequest(
        str(data), ("lab/tiny",), candidates="full", revisions=[f"step{step}" for step in steps]
    )
    return [replace(spec, batch_rows=4) for spec in plan(request, load=load_step)]


def make_series(folder: Path, data: Path, steps: Sequence[int] = STEPS) -> tuple[Run, ...]:
    specs = plan_series(data, steps)
    return tuple(execute(spec, folder=folder, load=load_step) for spec in specs)
