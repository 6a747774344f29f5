"""`bench probe`: a whole probing run beside the bare forward passes, and the memory it takes.

Speed: facts of T-REx's form go through `runs.execute`, from the dataset's files to the saved
run, with a random model of BERT base's size; the limit is the encoder alone on the same batches of
the same tokens. Memory: as many facts as T-REx has, in a process of its own; to save time only
every so many batches go through the model, the others get random scores of the same shape.
Keeping: a run's finished parts, each a file of its own, beside a log to which each batch is
appended with a checksum, and beside one file written once; all of them down to the disk.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from lama_core.asking.answers import ROW, to_table
from lama_core.asking.scoring import MAX_ROWS, plan_batches
from lama_core.candidates.columns import Columns
from lama_core.models.base import Encoded, Scores
from lama_core.probes.cloze.runs import BATCHES, ClozeSpec
from lama_core.probes.probing import ProbeRequest, plan
from lama_core.runs.execute import execute
from lama_core.runs.parts import Parts
from tools.bench import BenchRow
from tools.bench.cloze import BOUND, ROOT, SUBJECTS, TEMPLATES, base_sized_model, medians

N_FACTS = 512
N_MEMORY_FACTS = 34_000
REPETITIONS = 3
EVERY = 40  # of so many batches, one goes through the model when memory is measured
GIGABYTES = 2.5
OBJECTS = ("paris", "london", "french", "english", "actor", "germany", "italy", "japan")


def write_facts_like_trex(folder: Path, n_facts: int) -> Path:
    """A dataset in LAMA's layout: the templates as relations, the subjects in many spellings."""
    (folder / "TREx").mkdir(parents=True)
    per_relation = -(-n_facts // len(TEMPLATES))
    names = [f"{first} {second}" for first, second in product(SUBJECTS, SUBJECTS)]
    names = [*SUBJECTS, *names, *(f"{name} {n}" for n in range(3) for name in names)]
    relations, left = [], n_facts
    for number, template in enumerate(TEMPLATES):
        name = f"P{number + 1}"
        relations.append({"relation": name, "template": template, "label": name, "type": "N-1"})
        rows = [
            {
                "uuid": str(at),
                "sub_label": names[at],
                "obj_label": OBJECTS[at % len(OBJECTS)],
                "predicate_id": name,
            }
            for at in range(min(per_relation, left))
        ]
        left -= len(rows)
        _write(folder / "TREx" / f"{name}.jsonl", rows)
    _write(folder / "relations.jsonl", relations)
    return folder


def _write(path: Path, rows: Sequence[dict[str, str]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def one_spec(model: Any, data: Path) -> ClozeSpec:
    """The run of one model over all facts of a folder, common vocabulary, both sides."""
    planned = plan(ProbeRequest(str(data), (model.name,)), load=lambda *_, **__: model)
    return planned.specs[0]


def throughput(n_facts: int, repetitions: int) -> list[BenchRow]:
    """A whole run beside the encoder alone on the same batches."""
    import torch

    model = base_sized_model()
    with tempfile.TemporaryDirectory() as folder:
        data = write_facts_like_trex(Path(folder) / "data", n_facts)
        spec = one_spec(model, data)
        queries = [query for segment in encode_facts(spec, model) for query in segment]
        batches = []
        for batch in plan_batches(queries):
            rows = [queries[number].token_ids for number in batch]
            width = max(map(len, rows))
            ids = torch.tensor([[*row, *[0] * (width - len(row))] for row in rows])
            mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows])
            batches.append((ids, mask))

        def bare() -> None:
            with torch.inference_mode():
                for ids, mask in batches:
                    model.model.base_model(input_ids=ids, attention_mask=mask)

        number = iter(range(1000))

        def whole() -> None:
            # A run that is there is only loaded; another limit is another run with the same work.
            fresh = replace(spec, limit=n_facts + next(number))
            execute(fresh, folder=Path(folder) / "runs", load=lambda *_, **__: model)

        limit, ours = (n_facts / taken for taken in medians([bare, whole], repetitions))
    what = f"a run of {n_facts:,} facts, a BERT-base-sized model, fp32"
    return [BenchRow(what, "facts/s", ours, None, "", limit, "encoder only, the same batches")]


def encode_facts(spec: ClozeSpec, model: Any) -> list[tuple[Encoded, ...]]:
    """The run's queries as tokens."""
    from lama_core.asking.preparation import prepare
    from lama_core.asking.questions import gather_knowledge, make_questions
    from lama_core.datasets import load_dataset

    dataset = load_dataset(spec.dataset)
    questions = make_questions(dataset, spec.relations, spec.prompts, spec.limit)
    knowledge = gather_knowledge(dataset, spec.relations)
    prepared = prepare(questions, knowledge, spec.candidates, model, spec.context)
    return [segment.encoded for segment in prepared.segments]


class Shortened:
    """A model of which only every so many batches are computed; the others get random scores."""

    def __init__(self, model: Any, every: int) -> None:
        self._model = model
        self._every = every
        self._n_batches = 0
        self._draw = np.random.default_rng(0)

    def __getattr__(self, name: str) -> Any:
        """Everything else is the model's."""
        return getattr(self._model, name)

    def blank_log_probs(self, batch: Sequence[Encoded], columns: Columns) -> Scores:
        """Scores of the right shape."""
        self._n_batches += 1
        if self._n_batches % self._every == 1:
            scores: Scores = self._model.blank_log_probs(batch, columns)
            return scores
        shape = (len(batch), len(columns.words))
        return Scores(-self._draw.standard_exponential(shape, dtype=np.float32))


def peak_gigabytes(n_facts: int) -> float:
    """The most memory that this process has held once a run of so many facts is saved."""
    model: Any = Shortened(base_sized_model(), EVERY)
    with tempfile.TemporaryDirectory() as folder:
        data = write_facts_like_trex(Path(folder) / "data", n_facts)
        spec = one_spec(model, data)
        execute(spec, folder=Path(folder) / "runs", load=lambda *_, **__: model)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak * (1 if sys.platform == "darwin" else 1024) / 1e9


def memory(n_facts: int) -> list[BenchRow]:
    """The memory of a run, in a process of its own."""
    code = f"from tools.bench.probe import peak_gigabytes; print(peak_gigabytes({n_facts}))"
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, cwd=ROOT, capture_output=True, text=True
    )
    what = f"peak memory, a run of {n_facts:,} facts, a BERT-base-sized model"
    ours = float(done.stdout.strip().splitlines()[-1])
    return [BenchRow(what, "GB", ours, None, "", GIGABYTES, BOUND)]


def keeping(n_facts: int, repetitions: int) -> list[BenchRow]:
    """What it costs to keep what is scored, apart from the scoring."""
    rows = np.zeros(n_facts, dtype=ROW)
    rows["query"] = np.arange(n_facts)
    a_part = BATCHES * MAX_ROWS
    with tempfile.TemporaryDirectory(dir=ROOT) as folder:
        number = iter(range(1000))

        def parts() -> None:
            kept = Parts(Path(folder) / str(next(number)), "run")
            for first in range(0, n_facts, a_part):
                kept.write(f"{first:06}", to_table(rows[first : first + a_part]), 0.0)

        def log() -> None:
            with open(Path(folder) / str(next(number)), "ab", buffering=0) as file:
                for first in range(0, n_facts, MAX_ROWS):
                    batch = rows[first : first + MAX_ROWS].tobytes()
                    file.write(zlib.crc32(batch).to_bytes(4) + batch)
                    os.fsync(file)

        def once() -> None:
            with open(Path(folder) / str(next(number)), "wb") as file:
                file.write(rows.tobytes())
                file.flush()
                os.fsync(file)

        ours, peer, limit = (n_facts / t for t in medians([parts, log, once], repetitions))
    what = f"{n_facts:,} scored queries kept, {a_part} a part"
    peer_name = f"a log, flushed after every {MAX_ROWS}"
    return [BenchRow(what, "queries/s", ours, peer, peer_name, limit, "one file, written once")]


def run(
    *,
    n_queries: int = N_FACTS,
    memory_facts: int = N_MEMORY_FACTS,
    repetitions: int = REPETITIONS,
) -> list[BenchRow]:
    """All rows. n_queries: facts of the run whose speed is measured.

    Raises UserError if the embedded model, whose tokenizer is used, is not here.
    """
    measured = [*throughput(n_queries, repetitions), *keeping(memory_facts, repetitions)]
    return [*measured, *memory(memory_facts)]
