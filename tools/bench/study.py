"""`bench study`: a study of a million facts, listed, opened, filtered, compared and exported.

Workload: two made-up runs of 41 relations with 24,400 facts each. Every step runs in a new process,
which imports the libraries and reads the runs. Limit: this project's target of 3 CPU seconds.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from lama_core.paths import IMPORT_ROOT
from tools.bench.made_up import make_runs
from tools.bench.measuring import TARGET, BenchRow, medians
from tools.bench.start import run_python, seconds_of_children

N_FACTS = 1_000_000
CPU_SECONDS = 3
_JOIN = """
from lama_core.metrics.fact_answers import AnswerFilter, join_answers
from lama_core.reports.table_files import csv_of
from lama_core.runs.find import load_run
joined = join_answers([load_run(name) for name in {names}])
"""


def run(*, n_queries: int = N_FACTS, repetitions: int = 3) -> Iterator[BenchRow]:
    """Measure the CPU seconds of each step, next to the project's target."""
    with tempfile.TemporaryDirectory() as home:
        written = make_runs(Path(home) / "data" / "runs", n_facts=n_queries, n_runs=2)
        names = [one.info.id for one in written]
        one, two = (_JOIN.format(names=chosen) for chosen in (names[:1], names))
        filtered = "joined.select(AnswerFilter(text='bado'))"
        table = "csv_of(joined.table(joined.select(AnswerFilter(counting='all')), {names}))"
        command = ("-m", "lama_core")
        steps: dict[str, tuple[str, ...]] = {
            "runs listed": (*command, "runs"),
            "one run opened": (*command, "results", names[0]),
            "two runs opened": (*command, "results", *names, "--by", "source"),
            "two runs compared": (*command, "compare", *names),
            "two runs compared, as JSON": (*command, "compare", *names, "--json"),
            "two runs joined, filtered by text": ("-c", two + filtered),
            "one run joined, all facts as CSV": ("-c", one + table.format(names=["A"])),
            "two runs joined, all facts as CSV": ("-c", two + table.format(names=["A", "B"])),
        }
        for what, arguments in steps.items():

            def step(arguments: tuple[str, ...] = arguments) -> None:
                run_python(IMPORT_ROOT, *arguments, LAMA_HOME=home)

            (seconds,) = medians([step], repetitions, seconds_of_children)
            yield BenchRow(what, "CPU s", seconds, None, "", CPU_SECONDS, TARGET)
