"""Finding the folder of a dataset, which archives often nest in other folders."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from lama_core.errors import UserError
from lama_core.files import read_error

MAX_DEPTH = 4
MAX_DEPTH_OF_FILES = 32
MAX_FOLDERS = 10_000
MAX_FILES = 100_000


def find_folder(path: Path, is_wanted: Callable[[Path], bool]) -> Path | None:
    """Return the topmost folder at or under `path` for which `is_wanted` is true, or None.

    The search is breadth-first, in the order of names, down to `MAX_DEPTH` levels below `path`.
    Raises UserError for too many folders, or one that can't be read.
    """
    level = [path] if path.is_dir() else []
    n_seen = 0
    for _ in range(MAX_DEPTH + 1):
        n_seen += len(level)
        if n_seen > MAX_FOLDERS:
            raise _too_many(path, f"{MAX_FOLDERS:,} folders")
        for folder in level:
            if is_wanted(folder):
                return folder
        level = sorted(child for folder in level for child in subfolders(folder))
    return None


def subfolders(folder: Path) -> Iterator[Path]:
    """Return the folders directly in `folder`, without hidden ones and macOS's `__MACOSX`."""
    try:
        children = [child for child in sorted(folder.iterdir()) if child.is_dir()]
    except OSError as error:
        raise read_error(folder, error) from error
    return (child for child in children if not child.name.startswith((".", "__MACOSX")))


def files_under(folder: Path, *, hidden: bool = True) -> Iterator[Path]:
    """Yield the files in and under a folder, in the order of their paths; links aren't followed.

    hidden: whether hidden folders are entered. Raises UserError for too many files, or a folder
    that can't be read.
    """

    def fail(error: OSError) -> None:
        raise read_error(Path(error.filename), error) from error

    n_seen = 0
    for parent, folders, names in os.walk(folder, onerror=fail):
        folders[:] = sorted(one for one in folders if hidden or not one.startswith("."))
        n_seen += len(folders) + len(names)
        if n_seen > MAX_FILES:
            raise _too_many(folder, f"{MAX_FILES:,} files")
        if len(Path(parent).relative_to(folder).parts) > MAX_DEPTH_OF_FILES:
            raise _too_many(folder, f"{MAX_DEPTH_OF_FILES} levels of folders")
        yield from (Path(parent, name) for name in sorted(names))


def _too_many(folder: Path, what: str) -> UserError:
    return UserError(f"{folder} has more than {what}: give only the dataset's folder")
