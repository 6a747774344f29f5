"""`bench probe`: speed of a whole probing run.

- Speed: `runs.execute` on facts like T-REx's, from the dataset's files to the saved run, with a
  random model of BERT-base size. Lower bound of the time (the limit): the encoder alone, on the
  same batches.
- Steps: preparing, ranking and writing, with a model that costs nothing.
"""

import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

from lama_core.datasets import load_dataset
from lama_core.models.protocols import Encoded
from lama_core.probes.cloze.request import ProbeRequest
from lama_core.probes.cloze.spec import ClozeSpec
from lama_core.probes.plan import plan
from lama_core.progress import ignore
from lama_core.runs.execute import execute
from lama_core.runs.making import save_files, uncollected
from lama_core.scoring.preparation import prepare
from lama_core.scoring.queries import gather_knowledge, make_questions
from tools.bench.measuring import TARGET, BenchRow, rates
from tools.bench.passes import bare_passes, planned
from tools.bench.workload import Costless, base_sized_model, write_lama

N_FACTS = 34_000
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


def run(
    *, n_queries: int = 512, n_facts: int = N_FACTS, repetitions: int = 3
) -> Iterator[BenchRow]:
    """Measure a whole run of `n_queries` facts, and the steps of a run of `n_facts` facts.

    Raises:
        UserError: If the embedded model, whose tokenizer is used, is missing.
    """
    yield from throughput(n_queries, repetitions)
    yield from steps(n_facts)
