"""Locks, so that only one process at a time writes or deletes a run."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from lama_core.errors import UserError, reason_of
from lama_core.files import clear_leftovers, hold_lock
from lama_core.paths import data_dir


@contextmanager
def locked(run_ids: Sequence[str], folder: Path) -> Iterator[None]:
    """Hold the lock of each run, or raise UserError if another process holds one."""
    with ExitStack() as held:
        for run_id in run_ids:
            lock = _lock_file(run_id, folder)
            try:
                folder.mkdir(parents=True, exist_ok=True)
                held.enter_context(hold_lock(lock, f"is writing the run {run_id}", seconds=0))
            except OSError as error:
                raise UserError(
                    f"{folder}: runs can't be written here: {reason_of(error)}."
                ) from error
            # Delete the file before releasing the lock, so that no process locks a deleted file.
            held.callback(lock.unlink, missing_ok=True)
        yield


def is_locked(run_id: str, folder: Path) -> bool:
    """Whether a process is writing the run; removes a lock left by a killed process."""
    lock = _lock_file(run_id, folder)
    if not lock.exists():
        return False
    try:
        with FileLock(lock).acquire(timeout=0):
            lock.unlink(missing_ok=True)
    except Timeout:
        return True
    except OSError:
        pass  # no process can write a run in a read-only folder
    return False


def clear_killed() -> None:
    """Remove incomplete files and locks that killed processes left among datasets and runs.

    Keeps unfinished runs, because they can be resumed.
    """
    runs = data_dir() / "runs"
    for place in (data_dir() / "datasets", runs):
        clear_leftovers(place)
    for lock in runs.glob(".*.lock"):
        is_locked(lock.name[1 : -len(".lock")], runs)  # removes an abandoned lock


def _lock_file(run_id: str, folder: Path) -> Path:
    return folder / f".{run_id}.lock"
