"""Finished runs, of every kind of probe: listed, found by name, told from what can't be read."""

import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lama_core.errors import UserError, did_you_mean
from lama_core.files import folders_in
from lama_core.paths import ASSETS, data_dir
from lama_core.runs.info import FACTS_FILE, RUN_FILE, Run, RunInfo, read_info
from lama_core.runs.parts import PART, PARTS

# Any of them tells a run's folder, be it damaged.
FILES = (RUN_FILE, FACTS_FILE)
# Where version 0.1 kept the other kinds of run, by the file that each had.
_EARLIER = (("runs/analogy", "probe.json"), ("prompt-studies", "study.json"))


@dataclass(frozen=True, slots=True)
class RunListing:
    """The finished runs, bundled ones first, then by date; and what could not be read, and why."""

    runs: tuple[RunInfo, ...]
    problems: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[RunInfo]:
        """The runs in order."""
        return iter(self.runs)

    def __len__(self) -> int:
        """How many runs there are."""
        return len(self.runs)


def runs_dir() -> Path:
    """Folder of the user's own runs; not created here."""
    return data_dir() / "runs"


def bundled_dir() -> Path:
    """Folder of the runs that came with the project."""
    return ASSETS / "results"


def list_runs(folders: Sequence[Path] | None = None, *, kinds: Sequence[str] = ()) -> RunListing:
    """All finished runs under `folders`; by default the bundled ones and the user's own.

    kinds: of probe; () is all. A folder whose run.json can't be read is not left out in silence: it
    is named in `problems`, and so are the runs of an earlier version that this one doesn't read.
    """
    found: list[RunInfo] = []
    problems: list[str] = []
    for folder in (bundled_dir(), runs_dir()) if folders is None else folders:
        try:
            runs = [path for path in run_folders(folder) if not path.name.endswith(PART)]
        except UserError as error:
            problems.append(str(error))
            continue
        for path in runs:
            try:
                found.append(read_info(path))
            except UserError as error:
                problems.append(str(error))
    if folders is None:
        problems += _earlier_runs()
    chosen = [info for info in found if not kinds or info.kind in kinds]
    chosen.sort(key=lambda info: (not info.bundled, info.made, info.id))
    return RunListing(tuple(chosen), tuple(problems))


def run_folders(place: Path) -> list[Path]:
    """The runs' folders in a place, whole ones and others, in order of their names; no links.

    Raises UserError if the place can't be read.
    """
    return [
        child
        for child in folders_in(place)
        if not child.name.startswith(".")
        if child.name.endswith(PART) or any(os.path.lexists(child / name) for name in FILES)
    ]


def load_run(
    name: str | Path,
    *,
    kinds: Sequence[str] = (),
    what: str = "run",
    remedy: str = "`results` lists the runs that are here",
) -> Run:
    """The run called `name` (or the beginning of its name, if unique), or in the folder `name`.

    kinds: of probe; () is all. what, remedy: what is looked for, and what to do without it, for
    people. Raises UserError, with the nearest name, if there is none.
    """
    if isinstance(name, Path) or os.path.isfile(os.path.join(name, RUN_FILE)):
        found = [read_info(Path(name))]
    else:
        listing = list_runs()
        found = [info for info in listing if info.id == name]
        found = found or [info for info in listing if info.id.startswith(name)]
        broken = [] if found else [path for path in run_folders(runs_dir()) if path.name == name]
        found += [read_info(path) for path in broken if path.suffix != PART]  # says what is wrong
    matches = [info for info in found if not kinds or info.kind in kinds]
    if len(matches) == 1:
        return Run(matches[0])
    if matches:
        names = ", ".join(info.id for info in matches)
        several = f"{what[:-1]}ies" if what.endswith("y") else f"{what}s"
        raise UserError(f"{len(matches)} {several} begin with {name!r}: {names}.")
    if found:
        raise UserError(f"{found[0].id} is no {what}, but a run of kind {found[0].kind!r}.")
    hint = did_you_mean(str(name), [info.id for info in list_runs(kinds=kinds)])
    raise UserError(f"There is no {what} {str(name)!r}{hint}: {remedy}.")


def find_finished(run_id: str, folder: Path) -> Run | None:
    """The whole run of that name, in `folder` or among the bundled ones; None if there is none."""
    for place in (folder, bundled_dir()):
        if (place / run_id / RUN_FILE).is_file():
            # Of a process that was killed between the run's renaming and the parts' removal.
            shutil.rmtree(place / run_id / PARTS, ignore_errors=True)
            return Run(read_info(place / run_id))
    return None


def _earlier_runs() -> Iterator[str]:
    for place, file in _EARLIER:
        folders = sorted(path.parent for path in (data_dir() / place).glob(f"*/{file}"))
        if folders:
            yield (
                f"{data_dir() / place} holds {len(folders)} run(s) of version 0.1, which are kept "
                "and not read: the same commands make them anew, then the folder can be deleted."
            )
