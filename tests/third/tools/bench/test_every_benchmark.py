"""Every benchmark runs to its end with a small workload."""

from functools import partial

import pytest
from transformers import BertConfig

from lama_core.models.sources.catalog import find_model
from lama_core.models.sources.locations import locate
from tools.bench import cloze, cluster, gpu, report, statements, trace
from tools.bench.measuring import BenchRow
from tools.bench.workload import MASKED

# Arguments of the benchmarks' `run`; each benchmark takes those that it has.
SMALLEST = dict.fromkeys(("n_queries", "n_facts", "n_runs", "repetitions"), 1)


@pytest.mark.parametrize("name", report.BENCHMARKS)
def test_every_benchmark_runs_to_its_end(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cloze, "N_BOTH", 20)
    monkeypatch.setattr(cluster, "WORKERS", (2,))
    monkeypatch.setattr(statements, "MODELS", (MASKED,))  # SmolLM2 takes minutes
    monkeypatch.setattr(trace, "CAUSAL", MASKED)
    monkeypatch.setattr(gpu, "RUN", (*gpu.RUN[:-2], "1", "--out"))
    monkeypatch.setattr("transformers.BertConfig", partial(BertConfig, num_hidden_layers=1))
    if name == "generation" and locate(find_model("smollm2-135m")) is None:
        pytest.skip("SmolLM2 isn't installed")
    rows = list(report.measure(name, **SMALLEST))
    assert rows and all(isinstance(row, BenchRow) for row in rows)
