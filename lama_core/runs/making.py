"""Make runs: prepare queries, score, rank and write, in this process or in a worker's.

    RunSpec --open, prepare--> ScoringJob of a range --score--> rows of each part, on disk
    rows of all parts --finish--> facts.parquet

A part is stored as soon as it is scored (see `parts`), so an interruption loses at most one part.
A worker that finds a part already made reports it and leaves it, so a part can be given to two
workers. A run of several ranges keeps one table of rows for each finished range.
"""

import datetime
import gc
import importlib.metadata
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from lama_core.errors import UserError, reason_of
from lama_core.models.devices import PassSettings, keep_pass_settings, pass_settings
from lama_core.models.sources.checkpoints import checkpoint_of
from lama_core.runs.facts_table import write_candidates, write_facts
from lama_core.runs.info import (
    CANDIDATES_FILE,
    FACTS_FILE,
    RelationInfo,
    Run,
    RunInfo,
    read_info,
    write_details,
    write_info,
)
from lama_core.runs.parts import PART, PARTS, Parts, StartedRun, StoredPart, place_of
from lama_core.runs.spec import Finished, Load, RunSpec, ScoringJob
from lama_core.scoring.executors import Opened, RunShare, Saved, Tick, Wrote
from lama_core.scoring.preparation import NoFactCounts

PACKAGES = ("torch", "transformers", "tokenizers", "numpy", "scikit-learn", "pyarrow")
# Fields of `RunInfo` that are copied from the specification.
COPIED = (
    *("kind", "version", "digest", "data_digest", "model_identity", "model_kind", "precision"),
    *("context", "ranking", "limit", "imported"),
)
_FINISHED = b"lama_finished"
ROWS = "rows"  # the part with the rows of a whole run


class RunMaker:
    """Makes shares of some runs; keeps models and prepared queries.

    Args:
        specs: The runs.
        folder: Where runs are stored.
        address: Where parts are stored; "" is in the folder of the runs. Else a finished run is
            stored there, too, as its part `ROWS`, for the process that started the runs.
        load: Loads a model by reference.
        keeps_all: Whether to keep all models loaded; else a model is released before the next one
            is loaded.
    """

    def __init__(
        self,
        specs: Sequence[RunSpec],
        folder: Path,
        address: str,
        load: Load,
        *,
        keeps_all: bool,
    ) -> None:
        self._specs = specs
        self._folder = folder
        self._is_away = bool(address)
        self._load = load
        self._keeps_all = keeps_all
        self._parts = [
            Parts(
                place_of(one.run_id, folder, address),
                one.digest,
                StartedRun(
                    **asdict(one.stored_request),
                    kind=one.kind,
                    model=one.model_name,
                    dataset=one.dataset_name,
                    prompts=one.prompt_name(),
                ),
            )
            for one in specs
        ]
        self._scorers: dict[Any, Any] = {}
        self._ranges: dict[int, Callable[[int], ScoringJob]] = {}  # run -> prepares a range
        self._jobs: dict[int, tuple[int, ScoringJob]] = {}  # run -> its last range, prepared
        self._notes: list[str] = []

    def open(self, run: int) -> None:
        """Load a run's model, unless it is loaded.

        Raises:
            UserError: If it can't be loaded, or another process began the run in a folder that
                this node doesn't have.
        """
        place = self._folder / (self._specs[run].run_id + PART)
        if not self._keeps_all and not self._is_away and not place.is_dir():
            raise UserError(f"The folder {place} is missing: workers write the runs there.")
        self._scorer(run)

    def make(self, share: RunShare, tick: Tick) -> Iterator[Opened | Wrote]:
        """Make the missing parts of a share; yield once when it is prepared, and for each part.

        Raises:
            UserError: If the data or the model has changed since planning, the disk is full, or
                the model returns values that aren't numbers.
        """
        several = self._specs[share.run].n_ranges > 1
        kept = several and self._load_part(share.run, _rows_name(share.range))
        if kept:
            size = sum(one.n for one in _unpack(kept.table).relations)
            yield Opened(share, size, "queries", self._said())
            yield self._wrote(share.run, _rows_name(share.range), size, is_kept=True)
            return
        work = self._job(share.run, share.range).work
        n_parts = (len(work.parts) + several) * self._specs[share.run].n_ranges  # and their rows
        parts = self._parts[share.run]
        parts.started = parts.started and replace(parts.started, n_parts=n_parts)
        yield Opened(share, sum(part.size for part in work.parts), work.unit, self._said())
        missing: list[int] = []
        settings: set[PassSettings | None] = set()
        for number in range(share.first, len(work.parts), share.step):
            name, size = self._name(share, number), work.parts[number].size
            kept = self._load_part(share.run, name)
            if kept:
                settings.add(kept.settings)
                yield self._wrote(share.run, name, size, is_kept=True)
            else:
                missing.append(number)
        agreed = self._agreed(share.run, settings)
        tick(0)
        for number in missing:
            self._score(share, number, agreed, tick)
            yield self._wrote(share.run, self._name(share, number), work.parts[number].size)
        if several:
            self._finish_range(share.run, share.range)

    def finish(self, run: int) -> Saved:
        """Save a run whose parts are all there, and free its rows.

        If a server refused all texts, the parts are deleted: another window would accept these
        texts.
        """
        spec = self._specs[run]
        try:
            if spec.n_ranges == 1:
                finished, of_parts = self._finish_range(run, 0)
            else:
                ranges = [self._range_rows(run, number) for number in range(spec.n_ranges)]
                finished = spec.join([_unpack(one.table) for one in ranges])
                of_parts = ranges
        except NoFactCounts:
            self._parts[run].delete()
            raise
        devices = {name for one in of_parts for name in one.device.split(" and ") if name}
        seconds = sum(one.seconds for one in of_parts)
        device = " and ".join(sorted(devices)) or self._scorer(run).device
        if self._is_away:
            self._parts[run].write(ROWS, _pack(finished), seconds, device)
        else:
            save_files(spec, finished, self._folder, seconds, device)
        self._ranges.pop(run, None)
        self._jobs.pop(run, None)
        return Saved(run, self._said())

    def _finish_range(self, run: int, number: int) -> tuple[Finished, list[StoredPart]]:
        """Return a range's content and its parts; in a run of several ranges, store its rows."""
        job, share = self._job(run, number), RunShare(run, number)
        stored = [
            self._load_part(run, self._name(share, part))
            or self._score(share, part, None, lambda _: None)  # it was damaged
            for part in range(len(job.work.parts))
        ]
        finished = job.finish([one.table for one in stored])
        if self._specs[run].n_ranges > 1:
            devices = sorted({one.device for one in stored})
            seconds = sum(one.seconds for one in stored)
            self._parts[run].write(
                _rows_name(number), _pack(finished), seconds, " and ".join(devices)
            )
        return finished, stored

    def _range_rows(self, run: int, number: int) -> StoredPart:
        """Return the stored rows of a range; make them again if they are damaged."""
        kept = self._load_part(run, _rows_name(number))
        while kept is None:
            self._finish_range(run, number)
            kept = self._load_part(run, _rows_name(number))
        return kept

    def _score(
        self, share: RunShare, number: int, settings: PassSettings | None, tick: Tick
    ) -> StoredPart:
        """Score a part and write its rows."""
        scorer = self._scorer(share.run)
        start = time.perf_counter()
        with keep_pass_settings(settings):
            table = self._job(share.run, share.range).work.score(scorer, number, tick)
            used = pass_settings(scorer.device)
        seconds = time.perf_counter() - start
        name = self._name(share, number)
        return self._parts[share.run].write(name, table, seconds, scorer.device, used)

    def _agreed(self, run: int, found: Collection[PassSettings | None]) -> PassSettings | None:
        """Return the finished parts' settings, with which the missing parts are to be scored, too.

        None if these settings are unknown, or if the finished parts have different settings.
        """
        if len({*found} - {None}) != 1:
            return None
        (kept,) = {*found} - {None}
        if pass_settings(self._scorer(run).device) not in (kept, None):
            self._notes.append(f"Resuming with {kept}, as in the finished parts.")
        return kept

    def _scorer(self, run: int) -> Any:
        """Return the model or baseline of a run, loaded."""
        key = self._specs[run].scorer_key()
        if key not in self._scorers:
            if not self._keeps_all:  # frees its memory before the next model is loaded
                self._scorers.clear()
                self._ranges.clear()
                self._jobs.clear()
            self._scorers[key] = self._specs[run].open(self._load)
        return self._scorers[key]

    def _job(self, run: int, number: int) -> ScoringJob:
        """Return a prepared range of a run."""
        scorer = self._scorer(run)
        if run not in self._ranges:
            with uncollected():
                self._ranges[run] = self._specs[run].ranges(
                    scorer,
                    self._notes.append,
                    lambda number: _unpack(self._range_rows(run, number).table),
                )
        if self._jobs.get(run, (-1, None))[0] != number:
            self._jobs.pop(run, None)
            with uncollected():
                self._jobs[run] = number, self._ranges[run](number)
        return self._jobs[run][1]

    def _name(self, share: RunShare, number: int) -> str:
        """Return the name of a part; with several ranges, that of the range comes first."""
        name = self._job(share.run, share.range).work.parts[number].name
        return name if self._specs[share.run].n_ranges == 1 else f"{share.range:05}-{name}"

    def _load_part(self, run: int, name: str) -> StoredPart | None:
        return self._parts[run].load(name, self._notes.append)

    def _wrote(self, run: int, name: str, size: int, *, is_kept: bool = False) -> Wrote:
        return Wrote(run, name, size, is_kept, self._said())

    def _said(self) -> tuple[str, ...]:
        """Return the sentences for the user since the last call."""
        notes, self._notes[:] = tuple(self._notes), []
        return notes


@contextmanager
def uncollected() -> Iterator[None]:
    """Pause the garbage collector while facts and queries are made, none of which is in a cycle.

    It would search all of them again and again, which takes a third of the time of preparing.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def fetch_run(spec: RunSpec, folder: Path, address: str) -> None:
    """Save a run that workers stored at an address in the folder of the runs.

    Raises:
        UserError: If it is damaged there.
    """
    parts = Parts(place_of(spec.run_id, folder, address), spec.digest)
    notes: list[str] = []
    kept = parts.load(ROWS, notes.append)
    if kept is None:
        raise UserError(f"{address}: {spec.run_id} is not there. Run the same command again.")
    save_files(spec, _unpack(kept.table), folder, kept.seconds, kept.device)
    parts.delete()


def _rows_name(number: int) -> str:
    """Return the name of the rows of a range, in a run of several ranges."""
    return f"{number:05}-rows"


def _pack(finished: Finished) -> pa.Table:
    """Return the rows of a range, with the rest of its content in their metadata."""
    about = {name: value for name, value in vars(finished).items() if name != "rows"}
    return finished.rows.replace_schema_metadata({_FINISHED: msgspec.json.encode(about)})


def _unpack(table: pa.Table) -> Finished:
    """Return what `_pack` packed."""
    about = msgspec.json.decode(table.schema.metadata[_FINISHED])
    about["relations"] = msgspec.convert(about["relations"], tuple[RelationInfo, ...])
    return Finished(table.replace_schema_metadata(None), **about)


def save_files(spec: RunSpec, finished: Finished, folder: Path, seconds: float, device: str) -> Run:
    """Write all files into the `.part` folder, then rename it to the run's name."""
    part, whole = folder / (spec.run_id + PART), folder / spec.run_id
    candidates, digest, fold_case = spec.candidate_list()
    info = RunInfo(
        id=spec.run_id,
        folder=whole,
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
        versions=tuple((name, importlib.metadata.version(name)) for name in PACKAGES),
        device=device,
        checkpoint=checkpoint_of(spec.model_name),
        request=spec.stored_request,
        **{name: getattr(spec, name) for name in COPIED},
    )
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
