"""Every benchmark runs to its end with a small workload; its rows come one by one."""

from collections.abc import Iterator

import pytest
from calling import invoke

from lama_core.bench import BenchRow, report
from lama_core.models.sources.catalog import find_model
from lama_core.models.sources.locations import locate

# Arguments of the benchmarks' `run`; each benchmark takes those that it has.
SMALLEST = {
    **dict.fromkeys(("n_queries", "n_facts", "n_runs", "n_prompts", "repetitions"), 1),
    "memory_facts": 2,
    "n_candidates": 60,
}
NEED_SMOLLM2 = ("analogy", "generation", "statements")


@pytest.mark.slow
@pytest.mark.parametrize("name", report.BENCHMARKS)
def test_every_benchmark_runs_to_its_end(name: str) -> None:
    if name in NEED_SMOLLM2 and locate(find_model("smollm2-135m")) is None:
        pytest.skip("SmolLM2 isn't installed")
    rows = list(report.measure(name, **SMALLEST))
    assert rows and all(isinstance(row, BenchRow) for row in rows)


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_rows_that_were_measured_before_a_fault_are_printed(
    form: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> Iterator[BenchRow]:
        yield BenchRow("loading", "s", 2.0, 4.0, "pipeline", 1.0, "target")
        raise RuntimeError("the page is empty")

    monkeypatch.setitem(report.BENCHMARKS, "broken", broken)
    said = invoke(["bench", "broken", *form])
    assert "loading: 2 s; pipeline 4 (0.5x); target 1 (2x)" in said.output
    assert isinstance(said.exception, RuntimeError)
