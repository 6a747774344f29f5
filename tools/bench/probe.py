"""`bench probe`: speed, memory and saving of a whole probing run.

- Speed: `runs.execute` on facts like T-REx's, from the dataset's files to the saved run, with a
  random model of BERT-base size. Lower bound of the time (the limit): the encoder alone, on the
  same batches.
- Steps: preparing, ranking and writing, with a model that costs nothing.
- Memory: a run of as many facts as T-REx has, in its own process. To save time, one of every
  `EVERY` batches goes through the model; the others get random scores of the same shape.
- Saving: finished parts, one file each. Peer: a log to which each batch is appended with a
  checksum. Lower bound of the time (the limit): one file written once. All are flushed to the disk.
"""

import os
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from lama_core.candidates.columns import Columns
from lama_core.datasets import load_dataset
from lama_core.models.protocols import Encoded, Scores
from lama_core.paths import cache_dir
from lama_core.probes.cloze.request import ProbeRequest
from lama_core.probes.cloze.spec import BATCHES, ClozeSpec
from lama_core.probes.plan import plan
from lama_core.progress import ignore
from lama_core.runs.execute import execute
from lama_core.runs.making import save_files, uncollected
from lama_core.runs.parts import Folder, Parts
from lama_core.scoring.batches import MAX_ROWS
from lama_core.scoring.preparation import prepare
from lama_core.scoring.queries import gather_knowledge, make_questions
from lama_core.scoring.top_answers import ROW, to_table
from tools.bench.measuring import TARGET, BenchRow, called_in_a_fresh_process, rates
from tools.bench.passes import bare_passes, planned
from tools.bench.workload import Costless, base_sized_model, write_lama

N_MEMORY_FACTS = 34_000
EVERY = 40  # when memory is measured, one of this many batches goes through the model
GIGABYTES = 2.5
WITHOUT_COSTS = 8_000.0  # queries per CPU second


def one_spec(model: Any, data: Path) -> ClozeSpec:
    """Return the specification of a run over all facts of a folder, with the default settings."""
    return plan(ProbeRequest(str(data), (model.name,)), load=lambda *_, **__: model)[0]


def throughput(n_facts: int, repetitions: int) -> list[BenchRow]:
    """Measure a whole run, compared with the encoder alone on the same batches."""
    model = base_sized_model()
    with tempfile.TemporaryDirectory() as folder:
        data = write_lama(Path(folder) / "data", n_facts)
        spec = one_spec(model, data)
        queries = [query for segment in encode_facts(spec, model) for query in segment]
        number = count()

        def whole_run() -> None:
            # A run that exists would only be loaded: a higher limit makes a new run of all facts.
            request = replace(spec.request, limit=n_facts + next(number))
            fresh = replace(spec, request=request)
            execute(fresh, folder=Path(folder) / "runs", load=lambda *_, **__: model)

        limit, ours = rates(n_facts, [bare_passes(model, planned(queries)), whole_run], repetitions)
    what = f"a run of {n_facts:,} facts, a BERT-base-sized model, fp32"
    return [BenchRow(what, "facts/s", ours, None, "", limit, "encoder only, the same batches")]


def steps(n_facts: int) -> list[BenchRow]:
    """Measure the steps of a run in one process, with a model that costs nothing."""
    model: Any = Costless(base_sized_model())
    with tempfile.TemporaryDirectory() as folder:
        spec = one_spec(model, write_lama(Path(folder) / "data", n_facts))
        seconds = {}
        clock = time.process_time()
        with uncollected():
            job = spec.prepare(model, ignore)
        numbers = range(len(job.work.parts))
        seconds["preparing queries"] = -clock + (clock := time.process_time())
        tables = [job.work.score(model, number, ignore) for number in numbers]
        seconds["ranking the candidates"] = -clock + (clock := time.process_time())
        finished = job.finish(tables)
        seconds["making the rows"] = -clock + (clock := time.process_time())
        save_files(spec, finished, Path(folder), 0.0, "cpu")
        seconds["writing the rows"] = -clock + time.process_time()
    rows = [
        BenchRow(f"{step}, {n_facts:,} facts", "queries/CPU s", n_facts / took)
        for step, took in seconds.items()
    ]
    whole = n_facts / sum(seconds.values())
    what = f"prepares, ranks and writes {n_facts:,} facts, a model without costs"
    return [*rows, BenchRow(what, "queries/CPU s", whole, None, "", WITHOUT_COSTS, TARGET)]


def encode_facts(spec: ClozeSpec, model: Any) -> list[tuple[Encoded, ...]]:
    """Return the encoded queries of a run, by segment."""
    dataset = load_dataset(spec.request.dataset)
    questions = make_questions(dataset, spec.relations, spec.prompts, spec.limit)
    knowledge = gather_knowledge(dataset, spec.relations)
    prepared = prepare(questions, knowledge, spec.candidates, model, spec.context)
    return [segment.encoded for segment in prepared.segments]


class Shortened:
    """A model that computes one of every `every` batches; the others get random scores."""

    def __init__(self, model: Any, every: int) -> None:
        self._model = model
        self._every = every
        self._n_batches = 0
        self._draw = np.random.default_rng(0)

    def __getattr__(self, name: str) -> Any:
        """Return any other attribute of the model."""
        return getattr(self._model, name)

    def blank_log_probs(self, batch: Sequence[Encoded], columns: Columns) -> Scores:
        """Return the model's scores, or random ones of the same shape."""
        self._n_batches += 1
        if self._n_batches % self._every == 1:
            scores: Scores = self._model.blank_log_probs(batch, columns)
            return scores
        shape = (len(batch), len(columns.words))
        return Scores(-self._draw.standard_exponential(shape, dtype=np.float32))


def run_once(n_facts: int) -> None:
    """Make a run of `n_facts` facts with the shortened model."""
    model: Any = Shortened(base_sized_model(), EVERY)
    with tempfile.TemporaryDirectory() as folder:
        spec = one_spec(model, write_lama(Path(folder) / "data", n_facts))
        execute(spec, folder=Path(folder) / "runs", load=lambda *_, **__: model)


def memory(n_facts: int) -> list[BenchRow]:
    """Measure the peak memory of a run in its own process."""
    _, peak = called_in_a_fresh_process(run_once, n_facts)
    what = f"peak memory, a run of {n_facts:,} facts, a BERT-base-sized model"
    return [BenchRow(what, "GB", peak / 1e9, None, "", GIGABYTES, TARGET)]


def saving(n_facts: int, repetitions: int) -> list[BenchRow]:
    """Measure how many scored queries are saved per second; scoring isn't included."""
    rows = np.zeros(n_facts, dtype=ROW)
    rows["query"] = np.arange(n_facts)
    part_size = BATCHES * MAX_ROWS
    cache_dir().mkdir(parents=True, exist_ok=True)  # on a disk; /tmp may be in memory
    with tempfile.TemporaryDirectory(dir=cache_dir()) as folder:
        number = count()

        def parts() -> None:
            saved = Parts(Folder(Path(folder) / str(next(number))), "run")
            for first in range(0, n_facts, part_size):
                table = to_table(rows[first : first + part_size])
                saved.write(f"{first:06}", table, 0.0)

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

        ours, peer, limit = rates(n_facts, [parts, log, once], repetitions)
    what = f"{n_facts:,} scored queries saved, {part_size} per part"
    peer_name = f"a log, flushed after every {MAX_ROWS}"
    return [BenchRow(what, "queries/s", ours, peer, peer_name, limit, "one file, written once")]


def run(
    *, n_queries: int = 512, memory_facts: int = N_MEMORY_FACTS, repetitions: int = 3
) -> Iterator[BenchRow]:
    """Measure speed, saving and memory.

    Args:
        n_queries: Number of facts of the run whose speed is measured.
        memory_facts: Number of facts whose memory and saving are measured.
        repetitions: Number of measurements.

    Raises:
        UserError: If the embedded model, whose tokenizer is used, is missing.
    """
    yield from throughput(n_queries, repetitions)
    yield from steps(memory_facts)
    yield from saving(memory_facts, repetitions)
    yield from memory(memory_facts)
