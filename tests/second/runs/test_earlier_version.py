"""Runs of the version before workers wrote the parts (422eb727) open, and unfinished ones resume.

They were written by that version's `execute` with the same specification as here: the finished run
whole, the unfinished one stopped after 64 of 130 queries.
"""

import shutil
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from probe_fakes import hash_model, write_dataset

from lama_core.probes.cloze.request import ProbeRequest
from lama_core.probes.cloze.spec import ClozeSpec
from lama_core.probes.plan import plan
from lama_core.progress import Progress
from lama_core.runs.execute import execute
from lama_core.runs.find import list_runs
from lama_core.runs.info import Run

EARLIER = Path(__file__).parent / "earlier_version"


@pytest.fixture
def spec(tmp_path: Path) -> ClozeSpec:
    request = ProbeRequest(
        str(write_dataset(tmp_path / "toy", n_facts=60)), ("hash",), candidates="full"
    )
    return replace(plan(request, load=hash_model)[0], batch_rows=8)


def finished() -> Run:
    (info,) = list_runs([EARLIER / "finished"])
    return Run(info)


def test_a_finished_run_is_that_of_the_same_request(spec: ClozeSpec, tmp_path: Path) -> None:
    shutil.copytree(EARLIER / "finished", tmp_path / "runs")
    seen: list[Progress] = []
    found = execute(spec, folder=tmp_path / "runs", load=hash_model, on_progress=seen.append)
    assert not seen and found.info.digest == spec.digest == finished().info.digest
    assert (len(found.facts), found.info.n, found.info.device) == (130, 130, "cpu")


def test_an_unfinished_run_resumes(spec: ClozeSpec, tmp_path: Path) -> None:
    shutil.copytree(EARLIER / "unfinished", tmp_path / "runs" / f"{spec.run_id}.part")
    seen: list[Progress] = []
    made = execute(spec, folder=tmp_path / "runs", load=hash_model, on_progress=seen.append)
    assert (seen[0].resumed, seen[-1].done, seen[-1].total) == (64, 130, 130)
    pd.testing.assert_frame_equal(made.facts, finished().facts, rtol=1e-5)
