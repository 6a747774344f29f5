"""The runs on disk, whole and unfinished, and what their owner does with them: name, remove.

A name for people stands in `title.txt` beside `run.json`: it is no part of the run's identity.
"""

import datetime
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from lama_core.errors import UserError, did_you_mean
from lama_core.files import folder_bytes, remove_folder, write_text_atomically
from lama_core.requests import Request
from lama_core.runs.find import bundled_dir, run_folders, runs_dir
from lama_core.runs.info import MAX_TITLE, TITLE_FILE, RunInfo, read_info
from lama_core.runs.locks import is_locked, locked
from lama_core.runs.parts import PART, PARTS

State = Literal["whole", "unfinished", "being made", "can't be read"]


@dataclass(frozen=True)
class RunsRequest(Request):
    """All runs on this machine: `runs list`."""

    command: ClassVar[tuple[str, ...]] = ("runs", "list")
    python: ClassVar[str] = "list_runs"


@dataclass(frozen=True, slots=True)
class KeptRun:
    """A run's folder. name: the folder's, by which the run is removed.

    info: None unless it is whole. n_parts: finished parts of one that isn't. n_bytes: on disk.
    changed: when it was made or last written, ISO date, UTC. bundled: it came with the project.
    """

    name: str
    folder: Path
    state: State
    info: RunInfo | None
    n_parts: int
    n_bytes: int
    changed: str
    bundled: bool

    def record(self) -> dict[str, str | int | None]:
        """The row as plain values, as lists of runs show it."""
        described = (
            "kind",
            "model",
            "dataset",
            "prompts",
            "precision",
            "device",
            "n",
            "n_excluded",
        )
        return {
            "run": self.name,
            "called": self.info.title if self.info else "",
            **{name: getattr(self.info, name, None) for name in described},
            "state": self.state,
            "n_parts": self.n_parts,
            "changed": self.changed,
            "n_bytes": self.n_bytes,
            "place": "bundled" if self.bundled else "own",
        }


def list_kept() -> tuple[KeptRun, ...]:
    """Every run on disk, of every kind: bundled ones, then the user's own, the newest first."""
    bundled = map(_look, run_folders(bundled_dir()))
    try:
        folders = run_folders(runs_dir())
    except UserError:
        return (*bundled, KeptRun("runs", runs_dir(), "can't be read", None, 0, 0, "", False))
    return (*bundled, *sorted(map(_look, folders), key=lambda one: one.changed, reverse=True))


def own_folder(name: str) -> Path:
    """The folder of the user's run of that name: one of those that there are, never a path.

    Raises UserError, with the nearest name, if there is none, or for a bundled run.
    """
    known = {folder.name: folder for folder in run_folders(runs_dir())}
    if name in known:
        return known[name]
    if name in {folder.name for folder in run_folders(bundled_dir())}:
        raise UserError(f"The run {name} came with the project: it stays as it is.")
    raise UserError(f"There is no run {name!r} of your own{did_you_mean(name, known)}.")


def rename_run(name: str, title: str) -> RunInfo:
    """Give a run of the user's own a name for people; an empty one takes it away again.

    Raises UserError for a run that isn't the user's, isn't whole, or is being made, and for a name
    of several lines or more than 80 characters.
    """
    folder, title = own_folder(name), title.strip()
    if name.endswith(PART):
        raise UserError(f"The run {name} is unfinished: it can be named when it is whole.")
    if len(title) > MAX_TITLE or not title.isprintable():
        raise UserError(f"A run's name is one line of at most {MAX_TITLE} characters.")
    with locked([name], runs_dir()):
        if title:
            write_text_atomically(folder / TITLE_FILE, title + "\n")
        else:
            (folder / TITLE_FILE).unlink(missing_ok=True)
    return read_info(folder)


def delete_run(name: str) -> int:
    """Remove a run of the user's own, whole or unfinished; the bytes that it took.

    name: of its folder, whole: `ID` or `ID.part`.
    Raises UserError for a run that isn't the user's, or is being made.
    """
    folder = own_folder(name)
    with locked([name.removesuffix(PART)], runs_dir()):
        n_bytes = folder_bytes(folder)
        remove_folder(folder)
    return n_bytes


def _look(folder: Path) -> KeptRun:
    info, n_parts = None, 0
    state: State = "whole"
    changed = _date(folder)
    if folder.name.endswith(PART):
        parts = sorted((folder / PARTS).glob("*.parquet"))
        n_parts = len(parts)
        changed = max([changed, *map(_date, parts)])
        making = is_locked(folder.name.removesuffix(PART), folder.parent)
        state = "being made" if making else "unfinished"
    else:
        try:
            info = read_info(folder)
            changed = info.made
        except UserError:
            state = "can't be read"
    bundled = folder.parent == bundled_dir()
    return KeptRun(
        folder.name, folder, state, info, n_parts, folder_bytes(folder), changed, bundled
    )


def _date(path: Path) -> str:
    try:
        seconds = path.stat().st_mtime
    except FileNotFoundError:  # it has just become whole, or gone
        seconds = 0.0
    changed = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return changed.strftime("%Y-%m-%dT%H:%M:%SZ")
