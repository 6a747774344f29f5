"""Execute run specifications: one code path for every kind of probe, the pages and the CLI.

    RunSpec --open, prepare--> Job of parts --executor--> stored rows of each part --finish--> Run

Each part's rows are stored as soon as they are scored (see `parts`), so an interruption loses at
most one part. Executing the same specification again scores only the missing parts, and the
finished run has the same bytes as an uninterrupted one. Runs that share a model are interleaved
(the first part of each, then the second of each), so that shared results are computed once. A run
is saved, and its rows leave memory, as soon as its last part is scored.
"""

import datetime
import importlib.metadata
import shutil
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from lama_core.errors import UserError, reason_of
from lama_core.models.devices import PassSettings, keep_pass_settings, pass_settings
from lama_core.models.sources.checkpoints import checkpoint_of
from lama_core.progress import OnNote, OnProgress, Progress, ignore
from lama_core.runs.facts_table import write_candidates, write_facts
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
from lama_core.runs.spec import Finished, Load, RunSpec, ScoringJob, load_by_name
from lama_core.scoring.executors import Executor, Job, Task, make_executor
from lama_core.scoring.preparation import NoFactCounts

PACKAGES = ("torch", "transformers", "tokenizers", "numpy", "scikit-learn", "pyarrow")

# Fields of `RunInfo` that are copied from the specification.
COPIED = (
    *("kind", "version", "digest", "data_digest", "model_identity", "model_kind", "precision"),
    *("context", "ranking", "limit", "imported"),
)


class RunStopped(UserError):
    """The user stopped a run; its finished parts are kept."""


def execute(spec: RunSpec, **options: Any) -> Run:
    """Return the run of a specification; the options are those of `execute_all`."""
    return execute_all([spec], **options)[0]


def execute_all(
    specs: Sequence[RunSpec],
    *,
    folder: Path | None = None,
    executor: Executor | None = None,
    on_progress: OnProgress = ignore,
    on_note: OnNote = ignore,
    stopped: Callable[[], bool] | None = None,
    load: Load = load_by_name,
    begun: str = "",
) -> tuple[Run, ...]:
    """Return the runs of these specifications: load finished ones, resume or start the others.

    Args:
        specs: The runs to make.
        folder: Where runs are stored; by default the user's runs folder.
        executor: Scores the parts; by default in this process.
        on_progress: Called with the progress.
        on_note: Called with a sentence that the user should read.
        stopped: Polled often; when it returns True, RunStopped is raised.
        load: Loads a model by reference.
        begun: The request as JSON (`unfinished.begun_text`), stored until the runs are finished.

    Raises:
        UserError: If the data or the model has changed since planning, another process writes the
            same run, the disk is full, or the model returns values that aren't numbers.
        RunStopped: If `stopped` returned True. Finished parts are kept.
    """
    folder = runs_dir() if folder is None else folder
    found = {spec.run_id: find_finished(spec.run_id, folder) for spec in specs}
    missing = [spec for spec in specs if found[spec.run_id] is None]
    if missing:
        with locked([spec.run_id for spec in missing], folder):
            found |= {spec.run_id: find_finished(spec.run_id, folder) for spec in missing}
            left = [spec for spec in missing if found[spec.run_id] is None]
            if left:
                executor = executor or make_executor("local")
                found |= _make(left, executor, folder, load, on_progress, on_note, stopped, begun)
    return tuple(run for spec in specs if (run := found[spec.run_id]) is not None)


def save(spec: RunSpec, finished: Finished, device: str, folder: Path | None = None) -> Run:
    """Save rows that were already computed on `device` as a run, completely or not at all."""
    folder = runs_dir() if folder is None else folder
    with locked([spec.run_id], folder):
        here = find_finished(spec.run_id, folder)
        return here or _save(spec, finished, folder, 0.0, device)


@dataclass
class _Making:
    """A run that is being made.

    opened: device of the loaded model. tables: rows of the finished parts, by part number.
    seconds, devices: time and devices used to score these parts.
    """

    spec: RunSpec
    sitting: ScoringJob
    opened: str
    parts: Parts
    tables: dict[int, pa.Table] = field(default_factory=dict)
    seconds: float = 0.0
    devices: set[str] = field(default_factory=set)


def _make(
    specs: Sequence[RunSpec],
    executor: Executor,
    folder: Path,
    load: Load,
    on_progress: OnProgress,
    on_note: OnNote,
    stopped: Callable[[], bool] | None,
    begun: str,
) -> dict[str, Run]:
    """Score the missing parts, save the runs, and return run id -> run."""
    runs, jobs = _open(specs, folder, load, on_note, begun, here=executor.here)
    parts = [job.work.parts for job in jobs]
    most = max(map(len, parts))
    tasks = [Task(at, n) for n in range(most) for at in range(len(runs)) if n < len(parts[at])]
    waiting = []
    known: set[PassSettings] = set()
    for task in tasks:
        run = runs[task.job]
        here = run.parts.load(parts[task.job][task.part].name, on_note)
        if here is None:
            waiting.append(task)
        else:
            run.tables[task.part] = here[0]
            run.seconds += here[1]
            if here[2] is not None:
                known.add(here[2])
    sizes = {task: parts[task.job][task.part].size for task in tasks}
    total = sum(sizes.values())
    done = resumed = total - sum(sizes[task] for task in waiting)
    inside = 0  # queries scored in the unfinished part
    stage, unit = _title(specs), jobs[0].work.unit
    on_progress(Progress(stage, done, total, unit, resumed))

    def tick(n_more: int) -> None:
        nonlocal inside
        inside += n_more
        on_progress(Progress(stage, min(done + inside, total), total, unit, resumed))
        if stopped is not None and done < total and stopped():
            raise RunStopped(
                f"Stopped after {done:,} of {total:,} {unit}, which are kept. Run again to resume."
            )

    made = {run.spec.run_id: _finish(run, folder) for run in runs if _is_whole(run)}
    kept = _earlier_settings(known, runs[0].opened, on_note) if executor.here else None
    last = time.perf_counter()
    with keep_pass_settings(kept):
        for task, table, device in executor.tables(jobs, waiting, tick) if waiting else ():
            took, last = time.perf_counter() - last, time.perf_counter()
            run = runs[task.job]
            settings = pass_settings(device) if executor.here else None
            run.parts.write(parts[task.job][task.part].name, table, took, settings)
            run.tables[task.part] = table
            run.seconds += took
            run.devices.add(device)
            done += sizes[task]
            inside = 0
            tick(0)
            if _is_whole(run):
                made[run.spec.run_id] = _finish(run, folder)
    return made


def _earlier_settings(
    known: Collection[PassSettings], device: str, on_note: OnNote
) -> PassSettings | None:
    """Return the finished parts' settings, with which the missing parts are to be scored, too.

    None if these settings are unknown, or if the finished parts have different settings.
    """
    if len(known) != 1:
        return None
    (kept,) = known
    if pass_settings(device) not in (kept, None):
        on_note(f"Resuming with {kept}, as in the finished parts.")
    return kept


def _is_whole(run: _Making) -> bool:
    return len(run.tables) == len(run.sitting.work.parts)


def _finish(run: _Making, folder: Path) -> Run:
    """Save a run whose parts are all scored, and free its rows.

    If a server refused all texts, the parts are deleted: another window would accept these texts.
    """
    try:
        finished = run.sitting.finish([run.tables.pop(number) for number in sorted(run.tables)])
    except NoFactCounts:
        run.parts.delete()
        raise
    where = " and ".join(sorted(run.devices)) or run.opened
    return _save(run.spec, finished, folder, run.seconds, where)


def _open(
    specs: Sequence[RunSpec], folder: Path, load: Load, on_note: OnNote, begun: str, *, here: bool
) -> tuple[list[_Making], list[Job]]:
    """Prepare the runs' jobs; keep the models loaded if parts are scored in this process (`here`).

    Otherwise each model is released before the next one is loaded.
    """
    scorers: dict[Any, Any] = {}
    runs, jobs = [], []
    for spec in specs:
        _note_stale_parts(spec, folder, on_note)
        key = spec.scorer_key()
        if key not in scorers:
            if not here:
                scorers.clear()
            scorers[key] = spec.open(load)
        sitting = spec.prepare(scorers[key], on_note)
        parts = Parts(folder / (spec.run_id + PART), spec.digest, begun)
        runs.append(_Making(spec, sitting, scorers[key].device, parts))
        jobs.append(
            Job(sitting.work, key, scorers[key] if here else None, partial(spec.open, load))
        )
    return runs, jobs


def _title(specs: Sequence[RunSpec]) -> str:
    """Return the title of the progress bar of some runs."""
    titles = list(dict.fromkeys(spec.title() for spec in specs))
    return titles[0] if len(titles) == 1 else f"{titles[0]} and {len(titles) - 1} more"


def _save(spec: RunSpec, finished: Finished, folder: Path, seconds: float, device: str) -> Run:
    """Write all files into the `.part` folder, then rename it to the run's name."""
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
            f"{part}: the run can't be saved: {reason_of(error)}. The scored parts are kept: free "
            "some disk space and run the same command again."
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
        dataset=spec.dataset_name,
        model=spec.model_name,
        prompts=spec.prompt_name(),
        prompt_kind=spec.prompt_kind(),
        candidates=candidates,
        candidates_digest=digest,
        n_candidates=finished.n_candidates,
        fold_case=fold_case,
        n=sum(relation.n for relation in finished.relations),
        n_excluded=sum(relation.n_excluded for relation in finished.relations),
        relations=finished.relations,
        seconds=round(seconds, 3),
        made=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        versions=tuple((name, _version(name)) for name in PACKAGES),
        device=device,
        checkpoint=checkpoint_of(spec.model_name),
        **{name: getattr(spec, name) for name in COPIED},
    )


def _note_stale_parts(spec: RunSpec, folder: Path, note: OnNote) -> None:
    """Tell the user about unfinished runs of the same name with other data or options."""
    stem = spec.run_id.rsplit("-", 1)[0]
    for other in sorted(folder.glob(f"{stem}-*{PART}")):
        if other.name != spec.run_id + PART:
            note(
                f"{other} is an unfinished run with different data, model or options. Delete it "
                "if you don't want to resume it."
            )


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
