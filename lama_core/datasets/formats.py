"""The known dataset formats, and functions that detect the format and read the data.

To add a format, write a reader in this folder and add a row to `FORMATS`, or to the table `formats`
of a plug-in.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from lama_core import plugins
from lama_core.datasets import (
    bats,
    lama,
    lpaqa,
    pararel,
    user_table,
)
from lama_core.datasets.dataset import (
    AnalogyDataset,
    AnyDataset,
    Content,
    Dataset,
    QuestionDataset,
)
from lama_core.datasets.file_search import find_folder_with
from lama_core.datasets.nested_folders import files_under
from lama_core.datasets.records import has_table_name, single_table
from lama_core.errors import UserError

# Reads the data at a path; has the keyword arguments of `load`.
Load = Callable[..., AnyDataset]


@dataclass(frozen=True, slots=True)
class Format:
    """A dataset format.

    title: for lists of the known formats. find_root: returns the folder, at or under a given one,
    where the format's layout begins, or None for another format. reads_file: whether a single file
    is in this format.
    """

    name: str
    title: str
    content: Content
    find_root: Callable[[Path], Path | None]
    load: Load
    reads_file: Callable[[Path], bool] = lambda _: False


def _tables(folder: Path) -> list[Path]:
    """Return the tables in `folder` and below, without hidden files such as macOS's `._x.csv`."""
    files = list(files_under(folder))
    named = [path for path in files if has_table_name(path.name) and user_table.is_table(path)]
    return named or [path for path in files if user_table.is_table(path)]


def _table_root(folder: Path) -> Path | None:
    table = single_table(_tables(folder))
    return table.parent if table else None


def _load_table(path: Path, *, name: str | None = None, **about: str) -> Dataset:
    file = _tables(path)[0] if path.is_dir() else path
    return user_table.load(file, name=name, columns=None, **about)


def one_file(name: str, title: str, is_wanted: Callable[[Path], bool], load: Load) -> Format:
    """Return a format whose facts are in a single file."""
    find_root = partial(find_folder_with, is_wanted=is_wanted)
    return Format(name, title, "facts", find_root, load, is_wanted)


# In the order in which `detect` tries them: a later format could also match a folder that is in an
# earlier format.
FORMATS: tuple[Format, ...] = (
    Format("lpaqa", "LPAQA's folders", "prompts", lpaqa.find_root, lpaqa.load),
    Format("pararel", "ParaRel's folders", "facts", pararel.find_root, pararel.load),
    Format(
        "analogies",
        "BATS's folders or Google's analogies",
        "analogies",
        bats.find_root,
        bats.load,
        bats.is_analogies,
    ),
    Format("lama", "LAMA's or mLAMA's folders", "facts", lama.find_root, lama.load),
    Format(
        "table",
        "a table (CSV, JSON, Parquet, a spreadsheet, ...) with subject and object",
        "facts",
        _table_root,
        _load_table,
        user_table.is_table,
    ),
)


def all_formats() -> tuple[Format, ...]:
    """Return the formats in the order of detection: plug-ins' before tables, which match most."""
    *first, table = FORMATS
    return (*first, *plugins.rows("formats").values(), table)


def detect(path: Path) -> Format:
    """Return the format of the data at `path`. Raises UserError if it is unknown.

    Plug-ins are looked up only when the library's other formats don't match.
    """
    if not path.exists():
        raise UserError(f"No such file or folder: {path}.")

    def is_one(form: Format) -> bool:
        return form.reads_file(path) if path.is_file() else bool(form.find_root(path))

    *own, table = FORMATS
    found: Format | None = next(filter(is_one, own), None) or plugins.first("formats", is_one)
    if found or is_one(table):
        return found or table
    tables = _tables(path) if path.is_dir() else []
    raise UserError(
        f"{path}: unknown format; expected {', '.join(form.title for form in all_formats())}"
        + (f". It has {len(tables)} tables: give one of them" if tables else "")
    )


def root_of(folder: Path) -> Path:
    """Return the folder at or under `folder` where the dataset's layout begins."""
    find_root = detect(folder).find_root
    found = find_root(folder)
    plugins.check_returned(find_root, found, isinstance(found, Path | None))
    return found or folder


def load(
    path: Path, *, name: str | None = None, relations_file: Path | None = None, **about: str
) -> AnyDataset:
    """Return the data at `path`, in any known format.

    Args:
        path: A folder or file.
        name: Name of the dataset. Default: that of the folder or file.
        relations_file: File with LAMA's templates, for a folder in LAMA's layout without templates.
        about: `licence` and `citation`.

    Raises:
        UserError: If the format is unknown or there is nothing usable.
    """
    name = name or (path.name if path.is_dir() else path.stem)
    more = {"relations_file": relations_file} if relations_file else {}
    read = detect(path).load
    found = read(path, name=name, **about, **more)
    plugins.check_returned(read, found, isinstance(found, AnyDataset))
    return found


def load_facts(path: Path, *, relations_file: Path | None = None, **names: str) -> Dataset:
    """Return the facts at `path`, as `load` does. Raises UserError for data without facts."""
    found = load(path, relations_file=relations_file, **names)
    if isinstance(found, AnalogyDataset):
        raise UserError(f"{path} has analogies, not facts: use it with an analogy probe")
    if isinstance(found, QuestionDataset):
        raise UserError(f"{path} has analogy questions, not facts: use `analogy questions`")
    return found


def load_questions(path: Path, **names: Any) -> QuestionDataset:
    """Return the analogy questions at `path`, as `load` does. Raises UserError for other data."""
    found = load(path, **names) if detect(path).content == "questions" else None
    if not isinstance(found, QuestionDataset):
        raise UserError(
            f"{path} has no multiple-choice analogy questions: expected objects with stem, choice "
            "and answer, or lines `word word n:v` with a letter below them"
        )
    return found
