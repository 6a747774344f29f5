"""List finished runs of every kind of probe, and find them by name."""

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lama_core.errors import UserError, did_you_mean
from lama_core.files import folders_in
from lama_core.paths import ASSETS, data_dir
from lama_core.rounding import counted
from lama_core.runs.info import FACTS_FILE, RUN_FILE, Run, RunInfo, read_info
from lama_core.runs.parts import PART, PARTS

# A folder with one of these files is the folder of a run, which may be damaged.
FILES = (RUN_FILE, FACTS_FILE)


@dataclass(frozen=True, slots=True)
class RunListing:
    """Finished runs, bundled ones first, then by date. problems: why other runs can't be read."""

    runs: tuple[RunInfo, ...]
    problems: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[RunInfo]:
        """The runs in order."""
        return iter(self.runs)

    def __len__(self) -> int:
        """How many runs there are."""
        return len(self.runs)

    def intact(self, unless: Callable[[RunInfo], bool] = lambda _: False) -> "RunListing":
        """Return the runs whose files are intact, and add the others' damage to `problems`.

        unless: whether a run stays in the list without being checked; the first check takes as long
            as reading its files.
        """
        intact, problems = [], list(self.problems)
        for info in self.runs:
            try:
                if not unless(info):
                    Run(info).check()
                intact.append(info)
            except UserError as error:
                problems.append(str(error))
        return RunListing(tuple(intact), tuple(problems))


def runs_dir() -> Path:
    """Return the folder of the user's runs, which may not exist yet."""
    return data_dir() / "runs"


def bundled_dir() -> Path:
    """Return the folder of the runs bundled with the project."""
    return ASSETS / "results"


def list_runs(folders: Sequence[Path] | None = None, *, kinds: Sequence[str] = ()) -> RunListing:
    """Return all finished runs in `folders`; by default the bundled and the user's runs.

    Args:
        folders: Folders that contain runs' folders.
        kinds: Kinds of probe to include; () is all.

    Returns:
        The runs; `problems` names each run whose run.json can't be read.
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
    chosen = [info for info in found if not kinds or info.kind in kinds]
    chosen.sort(key=lambda info: (not info.bundled, info.made, info.id))
    return RunListing(tuple(chosen), tuple(problems))


def run_folders(place: Path) -> list[Path]:
    """Return the folders of finished and unfinished runs in a folder, by name, without links.

    Raises:
        UserError: If the folder can't be read.
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
    remedy: str = "`runs` lists the finished runs",
) -> Run:
    """Load a run by its name, by the beginning of its name, or from the folder `name`.

    Of several runs with this beginning, the only bundled one is loaded, so that a user's runs on
    some of the facts don't change what a document's command shows.

    Args:
        name: Name or folder.
        kinds: Kinds of probe that are accepted; () is all.
        what: Word for such a run in error messages.
        remedy: Advice in the error message if there is no such run.

    Raises:
        UserError: If no run or several runs match; suggests the most similar name.
    """
    if isinstance(name, Path) or os.path.isfile(os.path.join(name, RUN_FILE)):
        found = [read_info(Path(name))]
    else:
        listing = list_runs()
        found = [info for info in listing if info.id == name]
        found = found or [info for info in listing if info.id.startswith(name)]
        broken = [] if found else [path for path in run_folders(runs_dir()) if path.name == name]
        found += [read_info(path) for path in broken if path.suffix != PART]  # raises the reason
    matches = [info for info in found if not kinds or info.kind in kinds]
    for only in (matches, [info for info in matches if info.bundled]):
        if len(only) == 1:
            return Run(only[0])
    if matches:
        names = ", ".join(
            f"{info.id} ({counted(info.n, 'row')}{', bundled' * info.bundled})" for info in matches
        )
        raise UserError(
            f"{counted(len(matches), what)} begin with {name!r}; give more of the name: {names}."
        )
    if found:
        raise UserError(f"{found[0].id} isn't a {what}: it is a run of kind {found[0].kind!r}.")
    hint = did_you_mean(str(name), [info.id for info in list_runs(kinds=kinds)])
    raise UserError(f"There is no {what} {str(name)!r}{hint}: {remedy}.")


def find_finished(run_id: str, folder: Path) -> Run | None:
    """Return the finished run of that name from `folder` or the bundled runs; None if missing."""
    for place in (folder, bundled_dir()):
        if (place / run_id / RUN_FILE).is_file():
            # Left by a process that was killed after renaming the run, before removing its parts.
            shutil.rmtree(place / run_id / PARTS, ignore_errors=True)
            return Run(read_info(place / run_id))
    return None
