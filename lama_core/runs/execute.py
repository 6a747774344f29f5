"""The one path from a specification to a saved run, for every kind of probe, page and command line.

    RunSpec --open, prepare--> Job of parts --executor--> rows of each part, kept --finish--> Run

The rows of a part are written down as soon as they are there (see `parts`), so that stopping, in
whatever way, loses at most one part; the same specification takes up where it stopped and ends with
the same rows, byte for byte, as an unbroken run. Runs that share whom they ask are made together:
the first part of each, then the second of each, so that what they share is computed once. A run is
saved as soon as its last part is there, and its rows leave the memory.
"""

import datetime
import importlib.metadata
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from lama_core.asking.executors import Executor, Job, Task, make_executor
from lama_core.errors import UserError
from lama_core.progress import OnNote, OnProgress, Progress, silent
from lama_core.runs.find import find_finished, runs_dir
from lama_core.runs.info import (
    CANDIDATES_FILE,
    FACTS_FILE,
    Run,
    RunInfo,
    read_info,
    write_details,
    write_info,
)
from lama_core.runs.locks import locked
from lama_core.runs.parts import PART, PARTS, Parts
from lama_core.runs.spec import Finished, Load, RunSpec, Sitting, load_by_name
from lama_core.runs.table import write_candidates, write_facts

PACKAGES = ("torch", "transformers", "tokenizers", "numpy", "scikit-learn", "pyarrow")


class RunStopped(UserError):
    """The user stopped a run; what was scored is kept."""


def execute(spec: RunSpec, **options: Any) -> Run:
    """The run of this specification; options as `execute_all`."""
    return execute_all([spec], **options)[0]


def execute_all(
    specs: Sequence[RunSpec],
    *,
    folder: Path | None = None,
    executor: Executor | None = None,
    on_progress: OnProgress = silent,
    on_note: OnNote = silent,
    stopped: Callable[[], bool] | None = None,
    load: Load = load_by_name,
) -> tuple[Run, ...]:
    """The runs of these specifications: loaded if whole, taken up if begun, else made together.

    folder: where runs are kept, by default the user's own. executor: by default this process.
    on_note: told in a sentence what a user should know. stopped: asked often; when true, RunStopped
    is raised and the finished parts are kept. load: how to get a model.
    Raises UserError when the data or the model is no longer what a specification names, another
    process writes the same run, the disk is full, or the model gives values that are not numbers.
    """
    folder = runs_dir() if folder is None else folder
    found = {spec.run_id: find_finished(spec.run_id, folder) for spec in specs}
    missing = [spec for spec in specs if found[spec.run_id] is None]
    if missing:
        with locked([spec.run_id for spec in missing], folder):
            found |= {spec.run_id: find_finished(spec.run_id, folder) for spec in missing}
            left = [spec for spec in missing if found[spec.run_id] is None]
            made = _Making(folder, load, on_progress, on_note, stopped)
            found |= made.make(left, executor or make_executor("local")) if left else {}
    return tuple(run for spec in specs if (run := found[spec.run_id]) is not None)


def save(spec: RunSpec, finished: Finished, device: str, folder: Path | None = None) -> Run:
    """A run whose rows are known already, kept as any other; whole, or not at all.

    device: where they were computed.
    """
    folder = runs_dir() if folder is None else folder
    with locked([spec.run_id], folder):
        here = find_finished(spec.run_id, folder)
        return here or _save(spec, finished, folder, 0.0, device)


@dataclass
class _Making:
    """One process's work on some runs, from where the last one stopped."""

    folder: Path
    load: Load
    on_progress: OnProgress
    on_note: OnNote
    stopped: Callable[[], bool] | None

    def make(self, specs: Sequence[RunSpec], executor: Executor) -> dict[str, Run]:
        """Score what isn't scored yet, and save the runs."""
        sittings, jobs, opened = self._open(specs, here=executor.here)
        parts = [Parts(self._part(spec), spec.digest) for spec in specs]
        known: list[dict[int, pa.Table]] = [{} for _ in specs]
        seconds = [0.0] * len(specs)
        devices: list[set[str]] = [set() for _ in specs]
        made: dict[str, Run] = {}
        tasks: list[Task] = []

        def save_if_whole(at: int) -> None:
            if len(known[at]) == len(jobs[at].work.parts):
                tables = [known[at].pop(number) for number in sorted(known[at])]
                finished = sittings[at].finish(tables)
                where = " and ".join(sorted(devices[at])) or opened[at]
                made[specs[at].run_id] = _save(specs[at], finished, self.folder, seconds[at], where)

        for number in range(max(len(job.work.parts) for job in jobs)):
            for at, job in enumerate(jobs):
                if number < len(job.work.parts):
                    tasks.append(Task(at, number))
                    here = parts[at].load(job.work.parts[number].name, self.on_note)
                    if here is not None:
                        known[at][number] = here[0]
                        seconds[at] += here[1]
        sizes = {task: jobs[task.job].work.parts[task.part].size for task in tasks}
        waiting = [task for task in tasks if task.part not in known[task.job]]
        total = sum(sizes.values())
        resumed = total - sum(sizes[task] for task in waiting)
        self._begin(_title(specs), jobs[0], total, resumed)
        for at in range(len(specs)):
            save_if_whole(at)
        last = time.perf_counter()
        for task, table, device in executor.tables(jobs, waiting, self._tick) if waiting else ():
            took, last = time.perf_counter() - last, time.perf_counter()
            parts[task.job].write(jobs[task.job].work.parts[task.part].name, table, took)
            known[task.job][task.part] = table
            devices[task.job].add(device)
            seconds[task.job] += took
            self._done += sizes[task]
            self._tick(0, of_part=False)
            save_if_whole(task.job)
        return made

    def _open(
        self, specs: Sequence[RunSpec], *, here: bool
    ) -> tuple[list[Sitting], list[Job], list[str]]:
        """The runs' work, and the device that who is asked was opened on.

        here: it stays open; else only until its tokens are made.
        """
        scorers: dict[Any, Any] = {}
        sittings, jobs, opened = [], [], []
        for spec in specs:
            _note_stale_parts(spec, self.folder, self.on_note)
            key = spec.scorer_key()
            if key not in scorers:
                if not here:
                    scorers.clear()
                scorers[key] = spec.open(self.load)
            sitting = spec.prepare(scorers[key], self.on_note)
            sittings.append(sitting)
            opened.append(scorers[key].device)
            scorer = scorers[key] if here else None
            jobs.append(Job(sitting.work, key, scorer, partial(spec.open, self.load)))
        return sittings, jobs, opened

    def _begin(self, title: str, job: Job, total: int, resumed: int) -> None:
        self._title, self._unit, self._total = title, job.work.unit, total
        self._resumed = self._done = resumed
        self._inside = 0
        self._report()

    def _tick(self, n_more: int, *, of_part: bool = True) -> None:
        """So many more units are done, of a part that is not finished yet."""
        self._inside = self._inside + n_more if of_part else 0
        self._report()
        if self.stopped is not None and self._done < self._total and self.stopped():
            raise RunStopped(
                f"Stopped after {self._done:,} of {self._total:,} {self._unit}; they are kept, and "
                "the same request goes on from there."
            )

    def _report(self) -> None:
        done = min(self._done + self._inside, self._total)
        step = Progress(self._title, done, self._total, self._unit, self._resumed)
        self.on_progress(step)

    def _part(self, spec: RunSpec) -> Path:
        return self.folder / (spec.run_id + PART)


def _title(specs: Sequence[RunSpec]) -> str:
    """What a progress bar says of some runs."""
    titles = list(dict.fromkeys(spec.title() for spec in specs))
    return titles[0] if len(titles) == 1 else f"{titles[0]} and {len(titles) - 1} more"


def _save(spec: RunSpec, finished: Finished, folder: Path, seconds: float, device: str) -> Run:
    """Write rows, details and description into the part's folder, then give it its name."""
    part, whole = folder / (spec.run_id + PART), folder / spec.run_id
    info = _describe(spec, finished, whole, seconds, device)
    try:
        part.mkdir(parents=True, exist_ok=True)
        write_facts(finished.rows, part / FACTS_FILE)
        write_details(finished.details, part)
        if finished.words:
            write_candidates(finished.words, part / CANDIDATES_FILE)
        write_info(info, part)
        part.replace(whole)
    except OSError as error:
        raise UserError(
            f"{part}: the run can't be saved: {error.strerror}. What was scored is kept; make room "
            "and give the same command again."
        ) from error
    shutil.rmtree(whole / PARTS, ignore_errors=True)
    return Run(read_info(whole))


def _describe(
    spec: RunSpec, finished: Finished, folder: Path, seconds: float, device: str
) -> RunInfo:
    candidates, digest, fold_case = spec.candidate_list()
    return RunInfo(
        id=spec.run_id,
        folder=folder,
        bundled=False,
        kind=spec.kind,
        version=spec.version,
        digest=spec.digest,
        dataset=spec.dataset_name,
        data_digest=spec.data_digest,
        model=spec.model_name,
        model_identity=spec.model_identity,
        model_kind=spec.model_kind,
        precision=spec.precision,
        prompts=spec.prompt_name(),
        prompt_kind=spec.prompt_kind(),
        candidates=candidates,
        candidates_digest=digest,
        n_candidates=finished.n_candidates,
        fold_case=fold_case,
        context=spec.context,
        ranking=spec.ranking,
        limit=spec.limit,
        n=sum(relation.n for relation in finished.relations),
        n_excluded=sum(relation.n_excluded for relation in finished.relations),
        relations=finished.relations,
        seconds=round(seconds, 3),
        made=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        versions=tuple((name, _version(name)) for name in PACKAGES),
        device=device,
    )


def _note_stale_parts(spec: RunSpec, folder: Path, note: OnNote) -> None:
    """Say that a part of the same name was begun on other data or options, and is kept."""
    stem = spec.run_id.rsplit("-", 1)[0]
    for other in sorted(folder.glob(f"{stem}-*{PART}")):
        if other.name != spec.run_id + PART:
            note(
                f"{other} was begun with other data, model or options and is kept; "
                "delete it if you don't want to go on with it."
            )


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
