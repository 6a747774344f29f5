"""Runs of made-up checkpoints: the later a step, the more of the facts the model knows."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from probe_fakes import CITIES, HashFiller, write_dataset

from lama_core.candidates.columns import Columns
from lama_core.candidates.spelling import AFTER_SPACE
from lama_core.models.protocols import Encoded, Scores
from lama_core.models.sources.checkpoints import checkpoint_of
from lama_core.probes.cloze.request import ProbeRequest
from lama_core.probes.cloze.spec import ClozeSpec
from lama_core.probes.plan import plan
from lama_core.runs.execute import execute
from lama_core.runs.info import Run

STEPS = (0, 1, 4, 16)


class StepFiller(HashFiller):
    """Gives random scores that depend on the step, and a bonus to a fact's word from some step."""

    def blank_log_probs(self, batch: Sequence[Encoded], columns: Columns) -> Scores:
        place = checkpoint_of(self.name)
        step = place.step if place else 0
        rows = []
        for query in batch:
            text = bytes(query.token_ids)
            digest = hashlib.sha256(text + str(step).encode()).digest()
            scores = np.random.default_rng(digest[0]).normal(size=self.vocabulary.size)
            name = text.decode()
            number = int("".join(char for char in name if char.isdigit()) or 0)
            if name.startswith("Person") and number <= step:
                scores[number * 7 % 40] += 9.0
            rows.append(scores - np.log(np.exp(scores).sum()))
        table = np.array(rows, dtype=np.float32)
        return Scores(table[:, columns.table(AFTER_SPACE).ids[:, 0]])


def load_step(reference: str, *, precision: str = "fp32", on_progress: object = None) -> StepFiller:
    return StepFiller(CITIES, name=reference)


def plan_series(data: Path, steps: Sequence[int] = STEPS) -> list[ClozeSpec]:
    """The runs of the checkpoints lab/tiny@stepN on a small dataset, in a dozen parts each."""
    if not data.is_dir():
        write_dataset(data, n_facts=20)
    request = ProbeRequest(
        str(data), ("lab/tiny",), candidates="full", revisions=[f"step{step}" for step in steps]
    )
    return [replace(spec, batch_rows=4) for spec in plan(request, load=load_step)]


def make_series(folder: Path, data: Path, steps: Sequence[int] = STEPS) -> tuple[Run, ...]:
    """Finished runs of the checkpoints lab/tiny@stepN on a small dataset."""
    specs = plan_series(data, steps)
    return tuple(execute(spec, folder=folder, load=load_step) for spec in specs)
