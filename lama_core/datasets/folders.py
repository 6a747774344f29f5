"""Finding the folder that holds a dataset, which archives like to wrap in others."""

from collections.abc import Callable, Iterator
from pathlib import Path

MAX_DEPTH = 4


def find_folder(
    path: Path, is_wanted: Callable[[Path], bool], *, depth: int = MAX_DEPTH
) -> Path | None:
    """The topmost folder at or under `path` for which `is_wanted` holds, or None.

    depth: how many levels below `path` are searched, level by level, names in order.
    """
    level = [path] if path.is_dir() else []
    for _ in range(depth + 1):
        for folder in level:
            if is_wanted(folder):
                return folder
        level = sorted(child for folder in level for child in subfolders(folder))
    return None


def subfolders(folder: Path) -> Iterator[Path]:
    """The folders directly in `folder`, without hidden ones and macOS's leftovers."""
    for child in sorted(folder.iterdir()):
        if child.is_dir() and not child.name.startswith((".", "__MACOSX")):
            yield child
