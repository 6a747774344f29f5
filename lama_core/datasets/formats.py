"""Which of the formats a folder or file is in, and reading it whatever it is."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from lama_core.datasets import bats, lama, lpaqa, pararel, table
from lama_core.datasets.base import AnalogyDataset, Dataset
from lama_core.errors import UserError

Format = Literal["lama", "lpaqa", "pararel", "table", "analogies"]


def detect(path: Path) -> Format:
    """The format of what lies at `path`. Raises UserError if it is none that is known."""
    if path.is_file():
        if bats.is_analogies(path):
            return "analogies"
        if path.suffix.lower() in table.SUFFIXES:
            return "table"
    elif path.is_dir():
        known: tuple[tuple[Format, Callable[[Path], object]], ...] = (
            ("analogies", bats.is_analogies),
            ("lpaqa", lpaqa.find_root),
            ("pararel", pararel.find_root),
            ("lama", lama.find_root),
            ("table", only_table),
        )
        for name, recognise in known:
            if recognise(path):
                return name
    else:
        raise UserError(f"there is no file or folder {path}")
    tables = _tables(path) if path.is_dir() else []
    raise UserError(
        f"{path} is in no known format: expected LAMA's, LPAQA's, ParaRel's or BATS's folders, the "
        "Google analogies, or a CSV, TSV or JSONL table with subject and object"
        + (f"; it holds {len(tables)} tables: give them one at a time" if tables else "")
    )


def root_of(folder: Path) -> Path:
    """The folder at or under `folder` in which the dataset's own layout begins."""
    finders: dict[Format, Callable[[Path], Path | None]] = {
        "lama": lama.find_root,
        "lpaqa": lpaqa.find_root,
        "pararel": pararel.find_root,
        "analogies": bats.find_root,
        "table": _table_folder,
    }
    return finders[detect(folder)](folder) or folder


def only_table(folder: Path) -> Path | None:
    """The one table in `folder` or the folders under it, or None if there are none or several."""
    tables = _tables(folder)
    return tables[0] if len(tables) == 1 else None


def _tables(folder: Path) -> list[Path]:
    """The tables in `folder` and the folders under it, without macOS's leftovers (`._x.csv`)."""
    return [
        path
        for path in sorted(folder.rglob("*"))
        if path.suffix.lower() in table.SUFFIXES and not path.name.startswith(".")
    ]


def _table_folder(folder: Path) -> Path | None:
    found = only_table(folder)
    return found.parent if found else None


def load_facts(
    path: Path,
    *,
    name: str | None = None,
    relations_file: Path | None = None,
    max_sentences: int = lama.MAX_SENTENCES,
    licence: str = "",
    citation: str = "",
) -> Dataset:
    """The facts at `path`, in whichever format. Raises UserError; analogies are no facts."""
    kind = detect(path)
    name = name or (path.name if path.is_dir() else path.stem)
    if kind == "lama":
        return lama.load(
            path,
            name=name,
            relations_file=relations_file,
            max_sentences=max_sentences,
            licence=licence,
            citation=citation,
        )
    if kind == "analogies":
        raise UserError(f"{path} holds analogies, not facts: use it where analogies are asked for")
    file = only_table(path) if path.is_dir() and kind == "table" else path
    readers = {"lpaqa": lpaqa.load, "pararel": pararel.load, "table": table.load}
    return readers[kind](file or path, name=name, licence=licence, citation=citation)


def load_anything(
    path: Path, *, name: str, relations_file: Path | None = None
) -> Dataset | AnalogyDataset:
    """The facts or analogies at `path`. Raises UserError if it is neither."""
    if detect(path) == "analogies":
        return bats.load(path, name=name)
    return load_facts(path, name=name, relations_file=relations_file)
