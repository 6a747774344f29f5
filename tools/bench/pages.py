"""`bench pages`: the command `results --by source` and the first view of the page Results.

Both are measured in new processes, on `--runs` made-up runs of 34,000 facts with different
candidates and the bundled runs. Drawing in the browser isn't measured. Peers: importing the
libraries that read the tables; and a page that only reads the same columns and draws as much
(`tests/load/bare/results.py`), with the same test client of Streamlit.
"""

import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from lama_core.paths import IMPORT_ROOT
from tools.bench.made_up import N_FACTS, SOURCES, make_runs
from tools.bench.measuring import TARGET, BenchRow, medians
from tools.bench.start import run_python, seconds_of_children

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
    """Measure the command and the first view, next to the project's target."""
    bare, ours = command_seconds(n_runs, n_facts, repetitions)
    target = 0.75 + 0.075 * n_runs  # 1.5 s for 10
    what = f"results --by source, {n_runs} runs"
    yield BenchRow(what, "CPU s", ours, bare, IMPORTS, target, TARGET)
    bare, ours = view_seconds(n_runs, n_facts, repetitions)
    what = f"first view of Results, {n_runs} runs"
    yield BenchRow(what, "CPU s", ours, bare, "the smallest page", target, TARGET)


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
