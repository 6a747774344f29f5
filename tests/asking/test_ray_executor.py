"""A run on a local Ray cluster equals the local run, also when a worker is killed in between."""

import logging
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from probe_fakes import CITIES, HashFiller, hash_model, write_dataset

from lama_core.asking.executors.ray import RayExecutor
from lama_core.errors import UserError
from lama_core.probes.cloze.runs import ClozeSpec
from lama_core.probes.probing import ProbeRequest, plan
from lama_core.progress import Progress
from lama_core.runs.execute import execute

ray: Any = pytest.importorskip("ray", reason="ray, an optional extra, is not installed")


def load_and_note(reference: str, *, precision: str) -> Any:
    """Loads the fake model, and leaves the worker's process id where the test finds it."""
    folder = os.environ.get("PROBE_TEST_WORKERS")
    if folder:
        (Path(folder) / str(os.getpid())).touch()
    return hash_model("slow")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    workers = tmp_path_factory.mktemp("workers")
    environment = {"PROBE_TEST_WORKERS": str(workers), "PYTHONPATH": str(Path(__file__).parents[1])}
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        runtime_env={"env_vars": environment},
    )
    yield workers
    ray.shutdown()


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> ClozeSpec:
    data = write_dataset(tmp_path_factory.mktemp("data") / "toy", n_facts=60)
    request = ProbeRequest(str(data), ("slow",), candidates="relation")
    return replace(plan(request, load=hash_model).specs[0], batch_rows=2)


def load_broken(reference: str, *, precision: str) -> Any:
    """A model that gives NaN for one relation's texts."""
    return HashFiller(CITIES, name="slow", broken="Question")


def test_a_workers_failure_is_one_sentence(cluster: Path, spec: ClozeSpec, tmp_path: Path) -> None:
    executor = RayExecutor(n_workers=1)
    with pytest.raises(UserError, match=r"^slow gave a value that is not a number for 'Question"):
        execute(spec, folder=tmp_path, executor=executor, load=load_broken)


def rows(folder: Path, spec: ClozeSpec) -> bytes:
    return (folder / spec.run_id / "facts.parquet").read_bytes()


def test_a_cluster_gives_the_local_result_though_a_worker_is_killed(
    cluster: Path, spec: ClozeSpec, tmp_path: Path
) -> None:
    execute(spec, folder=tmp_path / "local", load=hash_model)
    killed: list[int] = []

    def kill_once(progress: Progress) -> None:
        if progress.done > 20 and not killed:
            killed.append(int(next(cluster.iterdir()).name))
            os.kill(killed[0], signal.SIGKILL)

    executor = RayExecutor(n_workers=2)
    execute(
        spec,
        folder=tmp_path / "ray",
        executor=executor,
        load=load_and_note,
        on_progress=kill_once,
    )
    assert killed and len(list(cluster.iterdir())) >= 3, "a new worker took the killed one's place"
    assert rows(tmp_path / "ray", spec) == rows(tmp_path / "local", spec)
