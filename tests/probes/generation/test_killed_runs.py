"""A run of generated answers that is killed ten times ends with the bytes of an undisturbed run."""

import json
from collections import Counter
from pathlib import Path

import pytest
from completions_server import NAME, Server, serve
from killing import files_of, kill_forks
from probe_fakes import write_dataset
from tiny_models import save_model_folder

from lama_core.models.server.completions import N_THREADS
from lama_core.probes.generation import spec as generation
from lama_core.probes.generation.plan import plan
from lama_core.probes.generation.request import GenerateRequest
from lama_core.runs.execute import execute

N_KILLED = 10
PART = 8  # questions, so that the run has more parts than it is killed

pytestmark = pytest.mark.slow


def killed_and_whole(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """The files of a run that was killed ten times, and of an undisturbed run in another home."""
    monkeypatch.setattr(generation, "PART", PART)
    data = write_dataset(tmp_path / "data")
    (spec,) = plan(GenerateRequest(str(data), (model,), relations=("P19", "P47")))
    out = tmp_path / "killed"
    parts = out / f"{spec.run_id}.part" / "parts"
    left = kill_forks(lambda: execute(spec, folder=out), parts, times=N_KILLED)
    assert left == sorted(left) and len(left) == N_KILLED
    resumed = execute(spec, folder=out)
    monkeypatch.setenv("LAMA_HOME", str(tmp_path / "another home"))
    whole = execute(spec, folder=tmp_path / "whole")
    return files_of(resumed.info.folder), files_of(whole.info.folder)


def test_a_local_models_run(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = save_model_folder("smollm2", tmp_path / "model")
    resumed, whole = killed_and_whole(str(model), tmp_path, monkeypatch)
    assert resumed == whole and "facts.parquet" in whole


def test_a_chat_servers_run(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {f"Person {n}": f"City {n}" for n in range(119, -1, -1)}
    server = Server(chats=answers, seconds=0.005)
    with serve(server):
        model = f"chat:{server.address}#{NAME}"
        resumed, whole = killed_and_whole(model, tmp_path, monkeypatch)
    assert resumed == whole and "facts.parquet" in whole
    asked = Counter(json.dumps(body, sort_keys=True) for body in server.asked)
    # The undisturbed run, in another home, requests each answer once; the killed one requests again
    # at most those that were in flight when it was killed.
    again = sum(n - 2 for n in asked.values())
    assert min(asked.values()) == 2
    assert again <= N_KILLED * N_THREADS
