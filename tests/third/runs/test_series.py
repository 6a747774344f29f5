"""Series of checkpoints that are killed within and between checkpoints, and resumed."""

import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import pytest
from forked import forked
from series_fakes import STEPS, load_step, plan_series

from lama_core.probes.cloze.spec import ClozeSpec
from lama_core.progress import Progress
from lama_core.runs.execute import execute
from lama_core.runs.facts_table import read_columns
from lama_core.runs.find import list_runs
from lama_core.runs.info import FACTS_FILE
from lama_core.runs.series import find_series


def killed(specs: Sequence[ClozeSpec], out: Path, where: str) -> NoReturn:
    """Make the runs of a series one after another, as `probe` does, and die on the way."""

    def end(_: Progress) -> None:
        parts = (out / f"{spec.run_id}.part" / "parts").glob("*.parquet")
        finished = any(path.name[0] != "." for path in parts)
        if where == "within" and finished and spec.model_name.endswith("step1"):
            os.kill(os.getpid(), signal.SIGKILL)

    for spec in specs:
        if where == "between" and spec.model_name.endswith("step4"):
            os.kill(os.getpid(), signal.SIGKILL)
        execute(spec, folder=out, load=load_step, on_progress=end)
    pytest.fail("it was not killed")


def rows_of(spec: ClozeSpec, folder: Path) -> object:
    return read_columns(folder / spec.run_id / FACTS_FILE).to_pylist()


@pytest.mark.parametrize(("where", "n_finished"), (("within", 1), ("between", 2)))
def test_a_killed_series_resumes_at_its_checkpoint(
    where: str, n_finished: int, tmp_path: Path
) -> None:
    data, out = tmp_path / "toy", tmp_path / "runs"
    specs = plan_series(data)
    whole = [execute(spec, folder=tmp_path / "whole", load=load_step) for spec in specs]
    assert forked(lambda: killed(specs, out, where)).status == -signal.SIGKILL
    left = {run.id: run.made for run in list_runs([out])}
    assert [*left] == [spec.run_id for spec in specs[:n_finished]]
    parts = {path.parents[1].name for path in out.glob("*.part/parts/*.parquet")}
    assert parts == ({f"{specs[1].run_id}.part"} if where == "within" else set())

    opened: list[str] = []

    def load(reference: str, *, precision: str) -> object:
        opened.append(reference)
        return load_step(reference, precision=precision)

    resumed = []
    for spec in specs:
        seen: list[Progress] = []
        execute(spec, folder=out, load=load, on_progress=seen.append)
        resumed.append(seen[0].resumed if seen else None)
    assert opened == [spec.model_name for spec in specs[n_finished:]]
    assert [*map(bool, resumed[n_finished:])] == [where == "within"] + [False] * (3 - n_finished)
    runs = list_runs([out])
    assert {run.id: run.made for run in runs if run.id in left} == left
    for spec in specs:
        assert rows_of(spec, out) == rows_of(spec, tmp_path / "whole")
    (series,) = find_series(runs)
    assert (series.steps, len(whole)) == (STEPS, 4)
