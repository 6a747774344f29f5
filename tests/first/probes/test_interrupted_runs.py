"""A run of any kind that is stopped again and again ends with the bytes of an unbroken one."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from analogy_fakes import Work, dataset, knowing, made_up_specs
from every_kind import plan_runs
from generation.test_generation_runs import MODEL, write_popqa
from killing import files_of
from probe_fakes import hash_model, write_dataset
from written_statements import hashed, write_many

from lama_core.probes.analogy.instances import ProbeOptions
from lama_core.probes.cloze.request import ProbeRequest
from lama_core.probes.generation import spec as generation
from lama_core.probes.generation.request import GenerateRequest
from lama_core.probes.prompts.request import StudyRequest
from lama_core.probes.statements.request import StatementsRequest
from lama_core.probes.tracing.request import TraceRequest
from lama_core.runs.execute import RunStopped, execute_all
from lama_core.runs.info import Run
from lama_core.runs.spec import RunSpec, load_by_name

Load = Callable[..., Any]
Planned = tuple[Sequence[RunSpec], Load]


def planned(request: Any, load: Load) -> Planned:
    return plan_runs(request, load), load


def cloze(folder: Path) -> Planned:
    request = ProbeRequest(str(write_dataset(folder, 30)), ("hash",), candidates="full")
    return [replace(spec, batch_rows=4) for spec in plan_runs(request, hash_model)], hash_model


def analogy(_: Path) -> Planned:
    work = Work(dataset(), probes=("type", "reverse"), options=ProbeOptions(n_seeds=1, hidden=3))
    return made_up_specs(knowing()[1], work), hash_model


def answerer(*_: object, **__: object) -> Any:
    return MODEL


# Each has several parts.
KINDS: dict[str, Callable[[Path], Planned]] = {
    "cloze": cloze,
    "analogy": analogy,
    "study": lambda folder: planned(
        StudyRequest(
            dataset=str(write_dataset(folder, 30)), model="hash", combinations=("manual",)
        ),
        hash_model,
    ),
    "statements": lambda folder: planned(
        StatementsRequest(str(write_many(folder, 100)), ("hashed",)), hashed
    ),
    "generation": lambda folder: planned(
        GenerateRequest(str(write_popqa(folder)), models=["answerer"]), answerer
    ),
    "trace": lambda _: planned(
        TraceRequest("starter", ("minilm-mlm",), ("P36",), limit=5, draws=1), load_by_name
    ),
}


def n_parts(folder: Path) -> int:
    """Whole parts of the runs that are being made."""
    return len([one for one in folder.glob("*.part/parts/*.parquet") if one.name[0] != "."])


def has_parts(folder: Path, n: int) -> bool:
    return n_parts(folder) >= n


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("kind", KINDS)
def test_a_run_that_is_stopped_after_each_part_ends_as_an_unbroken_one(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generation, "PART", 1)
    (tmp_path / "data").mkdir()
    specs, load = KINDS[kind](tmp_path / "data")
    whole = execute_all(specs, folder=tmp_path / "whole", load=load)
    out, n_stops = tmp_path / "stopped", 0
    made: Sequence[Run] = ()
    while not made:
        goal = n_parts(out) + 1
        try:
            made = execute_all(specs, folder=out, load=load, stopped=partial(has_parts, out, goal))
        except RunStopped as stopped:
            assert "kept" in str(stopped) and has_parts(out, goal)
            n_stops += 1
    assert n_stops
    for one, other in zip(made, whole, strict=True):
        assert files_of(one.info.folder) == files_of(other.info.folder)
    assert not list(out.glob("*.part"))

    def refuse(*_: object, **__: object) -> Any:
        raise AssertionError("what is finished is made again")

    again = execute_all(specs, folder=out, load=refuse)
    assert [one.info for one in again] == [one.info for one in made]
