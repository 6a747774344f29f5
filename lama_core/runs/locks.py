"""One process at a time works on a run, or removes it."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from lama_core.errors import UserError
from lama_core.files import clear_leftovers
from lama_core.paths import data_dir


@contextmanager
def locked(run_ids: Sequence[str], folder: Path) -> Iterator[None]:
    """Hold the lock of each run. Raises UserError if another process has one."""
    with ExitStack() as held:
        for run_id in run_ids:
            lock = FileLock(_lock_file(run_id, folder))
            try:
                folder.mkdir(parents=True, exist_ok=True)
                held.enter_context(lock.acquire(timeout=0))
            except Timeout as error:
                raise UserError(
                    f"Another process is writing the run {run_id}: wait for it, or stop it."
                ) from error
            except OSError as error:
                raise UserError(
                    f"{folder}: runs can't be written here: {error.strerror}."
                ) from error
            # Unlinked while it is held, so that nobody else can lock the file that goes.
            held.callback(Path(lock.lock_file).unlink, missing_ok=True)
        yield


def is_locked(run_id: str, folder: Path) -> bool:
    """Whether a process works on the run now; a lock that a killed one left doesn't count."""
    lock = _lock_file(run_id, folder)
    if not lock.exists():
        return False
    try:
        with FileLock(lock).acquire(timeout=0):
            lock.unlink(missing_ok=True)
    except Timeout:
        return True
    except OSError:
        return False  # nobody works where nothing can be written
    return False


def clear_killed() -> None:
    """Remove what killed processes left half-made in the library and among the runs.

    An unfinished run is no such thing: it is gone on with.
    """
    runs = data_dir() / "runs"
    for place in (data_dir() / "datasets", runs):
        clear_leftovers(place)
    for lock in runs.glob(".*.lock"):
        is_locked(lock.name[1 : -len(".lock")], runs)  # unlinks what nobody holds


def _lock_file(run_id: str, folder: Path) -> Path:
    return folder / f".{run_id}.lock"
