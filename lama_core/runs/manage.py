"""Runs on disk, finished and unfinished: list, load, rename and delete them.

A run's title is stored in `title.txt` next to `run.json`; it isn't part of the run's identity.
"""

import datetime
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from lama_core.errors import UserError, did_you_mean
from lama_core.files import folder_bytes, remove_folder, write_text_atomically
from lama_core.requests import Function, Request, option
from lama_core.runs import find
from lama_core.runs.find import bundled_dir, run_folders, runs_dir
from lama_core.runs.info import MAX_TITLE, TITLE_FILE, Run, RunInfo, read_info, title_text
from lama_core.runs.locks import is_locked, locked
from lama_core.runs.parts import PART, PARTS, StartedRun, read_started
from lama_core.tables import frame_of

if TYPE_CHECKING:
    import pandas as pd

RunState = Literal["whole", "unfinished", "being made", "damaged", "can't be read"]


@dataclass(frozen=True)
class ListRunsRequest(Request, command="runs list", python="list_runs"):
    """All runs on this machine: `runs list`."""

    verify: Annotated[
        bool, option("Verify the digests of all files of finished runs; name each damaged run.")
    ] = False


@dataclass(frozen=True, slots=True)
class KeptRun:
    """A run on disk.

    name: name of its folder. info: None unless the run is finished. n_parts: finished parts of an
    unfinished run. n_bytes: size on disk. changed: when the run was made or last written, ISO date,
    UTC. bundled: whether the run came with the project. problem: what is wrong with it and what to
    do; "" if nothing is known. started: how an unfinished run was started; None if unknown.
    """

    name: str
    folder: Path
    state: RunState
    info: RunInfo | None
    n_parts: int
    n_bytes: int
    changed: str
    bundled: bool
    problem: str = ""
    started: StartedRun | None = None

    @property
    def share(self) -> float | None:
        """The finished share of an unfinished run, from 0 to 1; None if it isn't known."""
        total = self.started.n_parts if self.started else 0
        return min(1.0, self.n_parts / total) if total else None

    def record(self) -> dict[str, str | float | None]:
        """Return the run as a row of plain values for lists of runs."""
        fields = ["kind", "model", "dataset", "prompts", "precision", "device", "n", "n_excluded"]
        imported = self.info.imported if self.info else None
        return {
            "run": self.name,
            "called": self.info.title if self.info else "",
            **{name: getattr(self.info or self.started, name, None) for name in fields},
            "imported_from": imported.source if imported else None,
            "state": self.state,
            "n_parts": self.n_parts,
            "share_done": self.share if self.info is None else 1.0,
            "changed": self.changed,
            "n_bytes": self.n_bytes,
            "place": "bundled" if self.bundled else "own",
        }


def list_kept(*, verify: bool = False) -> tuple[KeptRun, ...]:
    """Return every run on disk, of every kind: bundled ones, then the user's, newest first.

    verify: read all files of finished runs, and give damaged ones the state `damaged`.
    """
    describe = partial(_describe, verify=verify)
    bundled = map(describe, run_folders(bundled_dir()))
    try:
        folders = run_folders(runs_dir())
    except UserError as error:
        lost = KeptRun("runs", runs_dir(), "can't be read", None, 0, 0, "", False, str(error))
        return (*bundled, lost)
    return (*bundled, *sorted(map(describe, folders), key=lambda run: run.changed, reverse=True))


def own_folder(name: str) -> Path:
    """Return the folder of the user's run of that name; `name` can't be a path.

    Raises:
        UserError: If the run is bundled or doesn't exist; suggests the most similar name.
    """
    known = {folder.name: folder for folder in run_folders(runs_dir())}
    if name in known:
        return known[name]
    if name in {folder.name for folder in run_folders(bundled_dir())}:
        raise UserError(f"The run {name} came with the project and can't be changed.")
    raise UserError(f"Your runs folder has no run {name!r}{did_you_mean(name, known)}.")


def rename_run(name: str, title: str) -> RunInfo:
    """Give one of the user's runs a title; an empty one removes the title.

    Raises:
        UserError: If the run isn't the user's, is unfinished or is being written, or if the title
            has several lines or more than 80 characters.
    """
    folder, title = own_folder(name), title.strip()
    if name.endswith(PART):
        raise UserError(f"The run {name} is unfinished. Finish it before you name it.")
    if len(title) > MAX_TITLE or not title.isprintable():
        raise UserError(f"A run's name must be one line of at most {MAX_TITLE} characters.")
    with locked([name], runs_dir()):
        if title:
            write_text_atomically(folder / TITLE_FILE, title_text(title))
        else:
            (folder / TITLE_FILE).unlink(missing_ok=True)
    return read_info(folder)


def delete_run(name: str) -> int:
    """Delete one of the user's runs, finished or unfinished, and return its size in bytes.

    Args:
        name: Full name of its folder: `ID` or `ID.part`.

    Raises:
        UserError: If the run isn't the user's, or is being written.
    """
    folder = own_folder(name)
    with locked([name.removesuffix(PART)], runs_dir()):
        n_bytes = folder_bytes(folder)
        remove_folder(folder)
    return n_bytes


def _describe(folder: Path, *, verify: bool) -> KeptRun:
    info, started, n_parts, problem = None, None, 0, ""
    state: RunState = "whole"
    changed = _date(folder)
    if folder.name.endswith(PART):
        parts = sorted((folder / PARTS).glob("*.parquet"))
        n_parts = len(parts)
        changed = max([changed, *map(_date, parts)])
        making = is_locked(folder.name.removesuffix(PART), folder.parent)
        state = "being made" if making else "unfinished"
        with suppress(UserError):  # resuming the run says why
            started = read_started(folder)
    else:
        try:
            info = read_info(folder)
            changed = info.made
            if verify:
                Run(info).check()
        except UserError as error:
            state, problem = "can't be read" if info is None else "damaged", str(error)
    bundled = folder.parent == bundled_dir()
    size = folder_bytes(folder)
    return KeptRun(
        folder.name, folder, state, info, n_parts, size, changed, bundled, problem, started
    )


def _date(path: Path) -> str:
    try:
        seconds = path.stat().st_mtime
    except FileNotFoundError:  # the run was just finished or deleted
        seconds = 0.0
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def records(runs: Iterable[KeptRun]) -> list[dict[str, Any]]:
    """Return what `runs list --json` prints."""
    return [run.record() for run in runs]


def _list_runs(request: ListRunsRequest) -> tuple[KeptRun, ...]:
    runs = list_kept(verify=request.verify)
    for run in runs:
        if run.problem:
            request.on_note(run.problem)
    return runs


list_runs = Function(
    ListRunsRequest,
    _list_runs,
    lambda runs: frame_of(records(runs)),
    """List every run on this machine with its kind, state and size on disk.

    Returns:
        A DataFrame with a row for each run.
    """,
)


def load_run(name: str | Path) -> "pd.DataFrame":
    """Return a finished run's rows, one for each fact (or pair).

    Args:
        name: The run's name, its beginning (of several runs, the only bundled one), or its folder.

    Returns:
        A DataFrame. `excluded` is the reason of an excluded row, whose ranks are missing; ranks
        start at 1. For a generated answer, rank 1 means that the text is right, and 2147483647 that
        it isn't, so that only P@1 can be computed from these ranks.

    Raises:
        UserError: If there is no such run, or several names begin like this.

    >>> import lama_core as lama
    >>> run = lama.load_run("starter-minilm_mlm-manual")
    >>> bool((run["rank_filtered"] <= run["rank_raw"])[run["excluded"].isna()].all())
    True
    """
    return find.load_run(name).facts
