"""Execute run specifications: one code path for every kind of probe, the pages and the CLI.

    RunSpec --executor, RunMaker--> parts on disk --> Run

An executor hands out shares of the runs to makers (see `making`), here or in other processes, and
this process counts what they wrote. Executing the same specification again makes only the missing
parts, and the finished run has the same bytes as an uninterrupted one.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from lama_core.errors import UserError
from lama_core.progress import OnNote, OnProgress, Progress, Unit, ignore
from lama_core.runs.find import find_finished, runs_dir
from lama_core.runs.info import Run, read_info
from lama_core.runs.locks import locked
from lama_core.runs.making import RunMaker, fetch_run, save_files
from lama_core.runs.parts import PART
from lama_core.runs.spec import Finished, Load, RunSpec, load_by_name
from lama_core.scoring.executors import Executor, Opened, Wrote, make_executor


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
    address: str = "",
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
        address: Where parts are stored, as `fsspec` writes it; "" is in the folder of the runs.

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
                found |= _make(left, executor, folder, load, on_progress, on_note, stopped, address)
    return tuple(run for spec in specs if (run := found[spec.run_id]) is not None)


def save(spec: RunSpec, finished: Finished, device: str, folder: Path | None = None) -> Run:
    """Save rows that were already computed on `device` as a run, completely or not at all."""
    folder = runs_dir() if folder is None else folder
    with locked([spec.run_id], folder):
        return find_finished(spec.run_id, folder) or save_files(spec, finished, folder, 0.0, device)


def _make(
    specs: Sequence[RunSpec],
    executor: Executor,
    folder: Path,
    load: Load,
    on_progress: OnProgress,
    on_note: OnNote,
    stopped: Callable[[], bool] | None,
    address: str,
) -> dict[str, Run]:
    """Have the runs made, and return run id -> run."""
    for spec in specs:
        stem = spec.run_id.rsplit("-", 1)[0]
        for other in sorted(folder.glob(f"{stem}-*{PART}")):
            if other.name != spec.run_id + PART:
                on_note(
                    f"{other} is an unfinished run with different data, model or options. Delete "
                    "it if you don't want to resume it."
                )
        if not executor.here and not address:  # workers look for it
            (folder / (spec.run_id + PART)).mkdir(parents=True, exist_ok=True)
    titles = list(dict.fromkeys(spec.title() for spec in specs))
    count = _Count(
        titles[0] if len(titles) == 1 else f"{titles[0]} and {len(titles) - 1} more",
        sum(1 if spec.grows else spec.n_ranges for spec in specs),
        on_progress,
        stopped,
    )
    place = folder if executor.here else folder.absolute()  # workers have another working folder
    open_maker = partial(RunMaker, tuple(specs), place, address, load, keeps_all=executor.here)
    made = {}
    said: set[str] = set()
    for event in executor.events(open_maker, [spec.n_ranges for spec in specs], count.tick):
        for note in event.notes:
            if note not in said:  # several workers say the same
                said.add(note)
                on_note(note)
        if isinstance(event, Opened):
            count.add_range(event)
        elif isinstance(event, Wrote):
            count.add_part(event)
        else:
            run_id = specs[event.run].run_id
            if address:
                fetch_run(specs[event.run], folder, address)
            made[run_id] = Run(read_info(folder / run_id))
    return made


class _Count:
    """Counts what is done of some runs, and reports it.

    n_ranges: The number of ranges of all runs. The total is estimated until all are prepared; of a
        run that grows, it is that of the ranges prepared so far.
    """

    def __init__(
        self,
        stage: str,
        n_ranges: int,
        on_progress: OnProgress,
        stopped: Callable[[], bool] | None,
    ) -> None:
        self._stage = stage
        self._n_ranges = n_ranges
        self._on_progress = on_progress
        self._stopped = stopped
        self._sizes: dict[tuple[int, int], int] = {}
        self._parts: set[tuple[int, str]] = set()
        self._unit: Unit = "queries"
        self._done = self._resumed = 0
        self._inside = 0  # units scored in the unfinished part

    def add_range(self, opened: Opened) -> None:
        """Count the units of a range as to be done; several workers may open the same."""
        self._sizes[opened.share.run, opened.share.range] = opened.size
        self._unit = opened.unit

    def add_part(self, wrote: Wrote) -> None:
        """Count a part as done; a worker that took another's place may report it again."""
        if (wrote.run, wrote.name) not in self._parts:
            self._parts.add((wrote.run, wrote.name))
            self._done += wrote.size
            self._resumed += wrote.size * wrote.kept
        self._inside = 0
        if not wrote.kept:  # else the next report counts it, too
            self.tick(0)

    def tick(self, n_more: int) -> None:
        """Report that further units are scored. Raises RunStopped if the user stops the run."""
        self._inside += n_more
        n_known = len(self._sizes)
        total = round(sum(self._sizes.values()) * max(1.0, self._n_ranges / max(1, n_known)))
        if not total:
            return
        done = min(self._done + self._inside, total)
        self._on_progress(Progress(self._stage, done, total, self._unit, self._resumed))
        if self._stopped is not None and self._done < total and self._stopped():
            raise RunStopped(
                f"Stopped after {self._done:,} of {total:,} {self._unit}, which are kept. Run "
                "again to resume."
            )
