"""`bench pages`: tables of results, and the computation after a click on Results and Facts.

Workload: made-up runs of LAMA's size, 6 models x 41 relations x 34,000 facts. Drawing in the
browser isn't measured. The command `results --by source` and the first view of the page Results,
in new processes, are measured on `--runs` made-up runs with different candidates and the bundled
runs. Peers: importing the libraries that read the tables; and a page that only reads the same
columns and draws as much (`tests/load/bare/results.py`), with the same test client of Streamlit.
"""

import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median

import pandas as pd

from lama_core import metrics
from lama_core.metrics import BYS, relation_figures, relation_precision, summarise
from lama_core.metrics.confusion import confusion
from lama_core.metrics.fact_answers import AnswerFilter, fallbacks, join_answers
from lama_core.metrics.slices import slice_table
from lama_core.paths import IMPORT_ROOT
from lama_core.runs.info import Run, read_info
from tools.bench.made_up import N_FACTS, SOURCES, make_runs
from tools.bench.measuring import TARGET, BenchRow, Way, medians
from tools.bench.start import run_python, seconds_of_children

CLICK_SECONDS = 0.3
FIRST_SECONDS = 1.5
COMMAND = ("-m", "lama_core", "results", "--by", "source")
IMPORTS = "import pandas, pyarrow.parquet"
# A page is drawn without a browser; the arguments are the script and the runs.
VIEW = """
import sys
from streamlit.testing.v1 import AppTest
page = AppTest.from_file(sys.argv[1], default_timeout=300)
if sys.argv[2:]:
    page.switch_page("pages/results.py").query_params["runs"] = sys.argv[2:]
assert not page.run().exception, page.exception
"""
SMALLEST = IMPORT_ROOT / "tests" / "load" / "bare" / "results.py"


def run(*, n_facts: int = N_FACTS, repetitions: int = 5, n_runs: int = 10) -> Iterator[BenchRow]:
    """Measure the command and the computation after each click, next to the project's target."""
    bare, ours = command_seconds(n_runs, n_facts, repetitions)
    target = 0.75 + 0.075 * n_runs  # 1.5 s for 10
    what = f"results --by source, {n_runs} runs"
    yield BenchRow(what, "CPU s", ours, bare, IMPORTS, target, TARGET)
    bare, ours = view_seconds(n_runs, n_facts, repetitions)
    what = f"first view of Results, {n_runs} runs"
    yield BenchRow(what, "CPU s", ours, bare, "the smallest page", target, TARGET)
    yield from clicks(n_facts, repetitions)


def command_seconds(
    n_runs: int, n_facts: int, repetitions: int, folders: Sequence[Path] = (IMPORT_ROOT,)
) -> list[float]:
    """Return median CPU seconds: of the imports, then of `results --by source` in each folder.

    folders: checkouts of this project, such as those of two commits.
    """
    with tempfile.TemporaryDirectory() as home:
        runs = Path(home) / "data" / "runs"
        make_runs(runs, n_facts=n_facts, sources=SOURCES, n_runs=n_runs, own_candidates=True)
        ways = [partial(run_python, IMPORT_ROOT, "-c", IMPORTS)]
        ways += [partial(run_python, folder, *COMMAND, LAMA_HOME=home) for folder in folders]
        return medians(ways, repetitions, seconds_of_children)


def view_seconds(
    n_runs: int, n_facts: int, repetitions: int, folders: Sequence[Path] = (IMPORT_ROOT,)
) -> list[float]:
    """Return median CPU seconds of processes: of the smallest page, then of Results in each folder.

    folders: checkouts of this project, such as those of two commits.
    """
    with tempfile.TemporaryDirectory() as home:
        runs = Path(home) / "data" / "runs"
        make_runs(runs, n_facts=n_facts, sources=SOURCES, n_runs=n_runs, own_candidates=True)
        names = sorted(run.name for run in runs.iterdir())
        draw = partial(run_python, LAMA_HOME=home)
        ways = [partial(draw, IMPORT_ROOT, "-c", VIEW, str(SMALLEST))]
        ways += [partial(draw, folder, "-c", VIEW, "app.py", *names) for folder in folders]
        return medians(ways, repetitions, seconds_of_children)


def clicks(n_facts: int, repetitions: int) -> list[BenchRow]:
    """Measure the computation after each click, compared with the project's target."""
    with tempfile.TemporaryDirectory() as folder:
        written = make_runs(Path(folder), n_facts=n_facts)
        runs = [Run(read_info(run.info.folder)) for run in written]
        cold = _seconds(lambda: [run.facts for run in runs], 1)
        chosen = [relation.name for relation in runs[0].info.relations][:20]
        answers = join_answers(runs)
        all_facts = answers.select(AnswerFilter())
        figures = [relation_figures(run) for run in runs]
        precisions = [relation_precision(run, 1) for run in runs]

        def tables(precision: Sequence[pd.DataFrame], relations: Sequence[str] = ()) -> None:
            for by in BYS:
                summarise(list(zip(figures, precision, strict=True)), by=by, relations=relations)

        on_click: dict[str, Way] = {
            "Results: tables, another k": lambda: tables([relation_precision(r, 10) for r in runs]),
            "Results: tables, other relations": lambda: tables(precisions, chosen),
            "Results: curves": lambda: metrics.precision_curves(runs),
            "Results: rank histogram": lambda: metrics.rank_histogram(runs),
            "Results: calibration": lambda: [metrics.calibrate(run) for run in runs],
            "Results: two runs compared": lambda: metrics.compare(runs[0], runs[1]),
            "Facts: right in A, wrong in B": lambda: answers.select(
                AnswerFilter(right=(0,), wrong=(1,))
            ),
            "Facts: text": lambda: answers.select(AnswerFilter(text="bado")),
            "Results: slices": lambda: slice_table(answers),
            "Facts: gold answers by answers": lambda: confusion(answers, all_facts),
            "Facts: wrong answers": lambda: fallbacks(answers, all_facts),
        }
        once: dict[str, Way] = {
            "Results: figures that no click changes, once": lambda: [
                relation_figures(run) for run in runs
            ],
            "Facts: runs joined, once": partial(join_answers, runs),
        }
        return [
            BenchRow("runs read from disk", "s", cold, limit=FIRST_SECONDS, limit_name=TARGET),
            *(BenchRow(what, "s", _seconds(way, 3)) for what, way in once.items()),
            *(
                BenchRow(what, "s", _seconds(click, repetitions), None, "", CLICK_SECONDS, TARGET)
                for what, click in on_click.items()
            ),
        ]


def _seconds(way: Way, repetitions: int) -> float:
    """Return the median seconds of the calls, including the first one, with cold caches."""
    seconds = []
    for _ in range(repetitions):
        start = time.perf_counter()
        way()
        seconds.append(time.perf_counter() - start)
    return median(seconds)
