"""A run divided over a Ray cluster of four nodes equals the local run, whatever dies on the way."""

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from probe_fakes import hash_model, write_dataset

from lama_core.errors import UserError
from lama_core.probes.cloze.request import ProbeRequest
from lama_core.probes.cloze.spec import ClozeSpec
from lama_core.probes.plan import plan
from lama_core.progress import Progress
from lama_core.runs.execute import RunStopped, execute, execute_all

ray: Any = pytest.importorskip("ray", reason="ray, an optional extra, is not installed")
import ray_fakes  # noqa: E402
from ray.cluster_utils import Cluster  # noqa: E402

from lama_ray import cluster as executors  # noqa: E402
from lama_ray.cluster import RayExecutor  # noqa: E402

# Nodes are missed after a second instead of a quarter of a minute.
SOON = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 300,
        "health_check_failure_threshold": 3}  # fmt: skip


@pytest.fixture(scope="module")
def nodes() -> Iterator[tuple[Cluster, list[Any]]]:
    """A cluster on this machine, and its three nodes beside the head."""
    cluster = Cluster(True, False, {"num_cpus": 1, "_system_config": SOON})
    yield cluster, [cluster.add_node(num_cpus=1, wait=False) for _ in range(3)]
    cluster.shutdown()


@pytest.fixture
def opened(nodes: tuple[Cluster, list[Any]], tmp_path: Path) -> Iterator[Path]:
    """Joined to the four nodes; where workers leave a line for each model that they open."""
    cluster, _ = nodes
    folder = tmp_path / "opened"
    folder.mkdir()
    places = [Path(__file__).parent, Path(__file__).parents[3] / "tests"]
    variables = {"RAY_TEST_OPENED": str(folder), "PYTHONPATH": os.pathsep.join(map(str, places))}
    cluster.wait_for_nodes()
    ray.init(address=cluster.address, log_to_driver=False, runtime_env={"env_vars": variables})
    yield folder
    ray.shutdown()


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("data") / "toy", n_facts=60)


def make_specs(data: Path, *models: str) -> list[ClozeSpec]:
    """Runs of 130 queries in some twenty parts each."""
    request = ProbeRequest(str(data), models, candidates="relation")
    return [replace(one, batch_rows=2) for one in plan(request, load=hash_model)]


@pytest.fixture(scope="module")
def unbroken(data: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[ClozeSpec, Path]:
    """A run whose model is slow, and the folder in which this process has made it."""
    (spec,), folder = make_specs(data, "slow"), tmp_path_factory.mktemp("local")
    execute(spec, folder=folder, load=hash_model)
    return spec, folder


def files_of(folder: Path, spec: ClozeSpec) -> dict[str, Any]:
    """A run's files, byte for byte; of its description all but when it was made."""
    found: dict[str, Any] = {
        file.name: file.read_bytes() for file in (folder / spec.run_id).iterdir()
    }
    about = json.loads(found.pop("run.json"))
    differ = ("made", "seconds", "checksum")
    return found | {name: value for name, value in about.items() if name not in differ}


def test_a_node_that_is_killed_changes_no_byte_of_the_run(
    nodes: tuple[Cluster, list[Any]], opened: Path, unbroken: tuple[ClozeSpec, Path], tmp_path: Path
) -> None:
    cluster, beside = nodes
    spec, local = unbroken
    killed: list[str] = []

    def kill_once(progress: Progress) -> None:
        if progress.done > 30 and not killed:
            at_work = {node for node, _, _ in ray_fakes.opened(opened)}
            chosen = next(node for node in beside if node.node_id in at_work)
            killed.append(chosen.node_id)
            cluster.remove_node(chosen, allow_graceful=False)
            beside.remove(chosen)

    execute(spec, folder=tmp_path / "ray", executor=RayExecutor(), load=ray_fakes.load_fourth,
            on_progress=kill_once)  # fmt: skip
    beside.append(cluster.add_node(num_cpus=1))
    at_work = {node for node, _, _ in ray_fakes.opened(opened)}
    assert killed and killed[0] in at_work and len(at_work) == 4
    assert files_of(tmp_path / "ray", spec) == files_of(local, spec)


def test_workers_that_share_no_folder_store_parts_at_an_address(
    opened: Path, unbroken: tuple[ClozeSpec, Path], tmp_path: Path
) -> None:
    spec, local = unbroken
    execute(spec, folder=tmp_path / "ray", executor=RayExecutor(), load=ray_fakes.load_second,
            address=f"file://{tmp_path}/away")  # fmt: skip
    assert len({node for node, _, _ in ray_fakes.opened(opened)}) > 1
    assert [path.name for path in (tmp_path / "ray").iterdir()] == [spec.run_id]
    assert files_of(tmp_path / "ray", spec) == files_of(local, spec)


def test_several_models_are_the_same_on_the_cluster_and_loaded_seldom(
    opened: Path, data: Path, tmp_path: Path
) -> None:
    specs = make_specs(data, "first", "second", "third", "fourth")
    execute_all(specs, folder=tmp_path / "local", load=hash_model)
    execute_all(specs, folder=tmp_path / "ray", executor=RayExecutor(), load=ray_fakes.load_second)
    for spec in specs:
        assert files_of(tmp_path / "ray", spec) == files_of(tmp_path / "local", spec)
    loads = [(process, name) for _, process, name in ray_fakes.opened(opened)]
    assert {name for _, name in loads} == {"first", "second", "third", "fourth"}
    assert len(loads) - len(set(loads)) <= len(specs), "twice only by who saves the run"


def test_a_stopped_run_goes_on_in_this_process_and_ends_the_same(
    opened: Path, unbroken: tuple[ClozeSpec, Path], tmp_path: Path
) -> None:
    spec, local = unbroken
    seen: list[Progress] = []
    with pytest.raises(RunStopped, match="are kept"):
        execute(spec, folder=tmp_path / "ray", executor=RayExecutor(), load=ray_fakes.load_slow,
                on_progress=seen.append, stopped=lambda: seen[-1].done > 40)  # fmt: skip
    execute(spec, folder=tmp_path / "ray", load=hash_model, on_progress=seen.append)
    assert seen[-1].resumed > 40
    assert files_of(tmp_path / "ray", spec) == files_of(local, spec)


def test_a_workers_failure_is_one_sentence(opened: Path, data: Path, tmp_path: Path) -> None:
    (spec,) = make_specs(data, "slow")
    with pytest.raises(UserError, match=r"^slow returned NaN for 'Question"):
        execute(spec, folder=tmp_path, executor=RayExecutor(), load=ray_fakes.load_broken)


def test_a_node_without_the_weights_is_named(opened: Path, data: Path, tmp_path: Path) -> None:
    (spec,) = make_specs(data, "slow")
    wanted = r"^On the node [\d.]+: There is no model 'slow' here\. Every node needs the weights"
    with pytest.raises(UserError, match=wanted):
        execute(spec, folder=tmp_path, executor=RayExecutor(), load=ray_fakes.load_nowhere)


def test_a_part_that_kills_its_workers_is_given_up(
    opened: Path, data: Path, tmp_path: Path
) -> None:
    (spec,) = make_specs(data, "slow")
    with pytest.raises(UserError, match=r"^3 workers of the Ray cluster died during the same work"):
        execute(spec, folder=tmp_path, executor=RayExecutor(), load=ray_fakes.load_deadly)


def test_a_cluster_without_room_is_said_to_have_none(
    opened: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executors, "MAX_IDLE_SECONDS", 1.0)
    monkeypatch.setattr(executors, "POLL_SECONDS", 0.2)
    blocks = [ray.util.placement_group([{"CPU": 1}]) for _ in range(4)]
    ray.get([block.ready() for block in blocks])
    (spec,) = make_specs(data, "slow")
    try:
        with pytest.raises(
            UserError, match=r"no resources for a worker for 1 seconds .* needs 1 CPU\)"
        ):
            execute(spec, folder=tmp_path, executor=RayExecutor(), load=hash_model)
    finally:
        for block in blocks:
            ray.util.remove_placement_group(block)


def test_no_cluster_at_the_address_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with pytest.raises(UserError, match=r"^No Ray cluster answers at RAY_ADDRESS='127.0.0.1:1'"):
        next(RayExecutor().events(list, [], lambda _: None))  # type: ignore[arg-type]
