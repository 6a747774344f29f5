"""A run that is killed again and again ends with the bytes of an unbroken one."""

from pathlib import Path

from every_kind import plan_runs
from killing import files_of, kill_often
from written_statements import hashed, write_many

from lama_core.probes.statements.request import StatementsRequest
from lama_core.runs.execute import execute_all


def test_a_run_that_is_killed_ends_as_an_unbroken_one(tmp_path: Path) -> None:
    """Of cloze probes: tests/first/runs/test_execute.py."""
    data = str(write_many(tmp_path / "many"))
    (spec,) = plan_runs(StatementsRequest(data, ("slow",)), hashed)
    (whole,) = execute_all([spec], folder=tmp_path / "whole", load=hashed)
    out = tmp_path / "killed"
    parts = out / f"{spec.run_id}.part" / "parts"
    killed = kill_often(lambda: execute_all([spec], folder=out, load=hashed), parts, times=4)
    assert killed == sorted(killed)
    (resumed,) = execute_all([spec], folder=out, load=hashed)
    assert files_of(resumed.info.folder) == files_of(whole.info.folder)
