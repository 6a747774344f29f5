"""Finding the files of a dataset by name or content, in its folder or a nested one."""

from collections.abc import Callable
from pathlib import Path

from lama_core.datasets.line_reader import Reading
from lama_core.datasets.nested_folders import find_folder
from lama_core.errors import UserError

IsWanted = Callable[[Path], bool]


def find_folder_with(path: Path, is_wanted: IsWanted) -> Path | None:
    """Return the topmost folder at or under `path` that holds a wanted file, or None."""
    return find_folder(path, lambda folder: bool(files_in(folder, is_wanted)))


def find_files(path: Path, is_wanted: IsWanted) -> list[Path]:
    """Return the file `path`; for a folder, the wanted files where `find_folder_with` finds any."""
    if path.is_file():
        return [path]
    folder = find_folder_with(path, is_wanted)
    return files_in(folder, is_wanted) if folder else []


def files_in(folder: Path, is_wanted: IsWanted) -> list[Path]:
    """Return the wanted files directly in a folder, in the order of their names."""
    names = (file for file in sorted(folder.glob("*")) if not file.name.startswith("."))
    return [file for file in names if file.is_file() and is_wanted(file)]


def head_of(path: Path) -> bytes:
    """Return the first bytes of a file, by which its format is recognised; empty if unreadable.

    They are unpacked (gzip), without a byte-order mark.
    """
    try:
        return Reading(path).head(path).removeprefix(b"\xef\xbb\xbf")
    except UserError:
        return b""
