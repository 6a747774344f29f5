"""`bench cluster`: what the process that starts a run costs, while a Ray cluster makes it.

The cluster is simulated on this machine, with workers of one CPU each, and the model costs nothing:
it has MiniLM-MLM's tokens and returns stored scores. The measured value is the number of queries
for each CPU second of the process that starts the run, which hands out the work; its limit is this
project's target. The workers' rate depends on the machine's CPUs, which they share.

Needs the extra `ray`.
"""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lama_core.models.cache import load_model
from lama_core.probes.cloze.request import ProbeRequest
from lama_core.probes.plan import plan
from lama_core.runs.execute import execute
from tools.bench.measuring import TARGET, BenchRow
from tools.bench.workload import Costless, write_lama

MODEL = "minilm-mlm"
N_QUERIES = 40_000
WORKERS = (2, 4, 8)
QUERIES_PER_CPU_SECOND = 100_000.0


def load_costless(reference: str, *, precision: Any) -> Costless:
    """Load a model whose passes cost nothing; workers import this function."""
    return Costless(load_model(reference, precision=precision))


def run(*, n_queries: int = N_QUERIES) -> Iterator[BenchRow]:
    """Measure the driver of runs on 2, 4 and 8 workers."""
    import ray
    from ray.cluster_utils import Cluster

    from lama_core.scoring.executors import make_executor

    with tempfile.TemporaryDirectory() as folder:
        data = write_lama(Path(folder) / "data", n_queries)
        for n_workers in WORKERS:
            cluster = Cluster(True, False, {"num_cpus": 1})
            for _ in range(n_workers - 1):
                cluster.add_node(num_cpus=1)
            ray.init(address=cluster.address, log_to_driver=False)
            (spec,) = plan(ProbeRequest(str(data), (MODEL,)), load=load_costless)
            start, cpu = time.perf_counter(), time.process_time()
            made = execute(
                spec,
                folder=Path(folder) / str(n_workers),
                executor=make_executor("ray"),
                load=load_costless,
            )
            cpu, seconds = time.process_time() - cpu, time.perf_counter() - start
            ray.shutdown()
            cluster.shutdown()
            what = (
                f"the process that starts a run, {n_workers} workers of one CPU, "
                f"{made.info.n:,} queries in {seconds:.0f} s"
            )
            rate, target = made.info.n / cpu, QUERIES_PER_CPU_SECOND
            yield BenchRow(what, "queries/CPU s", rate, None, "", target, TARGET)
