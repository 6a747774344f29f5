"""`data get` and `data import`: put a source into the library, whole or not at all."""

import errno
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from filelock import FileLock, Timeout

from lama_core import paths
from lama_core.datasets import formats, user_table, variants
from lama_core.datasets.dataset import AnalogyDataset, Dataset
from lama_core.datasets.library import derived, installed, published
from lama_core.downloads import archive
from lama_core.downloads.retry import Patience
from lama_core.downloads.transfer import fetched
from lama_core.errors import UserError
from lama_core.files import copy_file, replace_folder, user_path, work_folder
from lama_core.progress import OnProgress, Progress, ignore
from lama_core.requests import Request, argument, option

# What a dataset consists of; anything else in an imported folder is left behind.
KEPT_SUFFIXES = {".jsonl", ".json", ".txt", ".csv", ".tsv", ".md", ".gz", ".tgz", ""}
MAX_IMPORTED_BYTES = 4 << 30


@dataclass(frozen=True)
class GetRequest(Request):
    """A published source to fetch, or to compute from another: the fields of `data get`."""

    command: ClassVar[tuple[str, ...]] = ("data", "get")
    python: ClassVar[str] = "get_data"

    name: Annotated[str, argument("A name of `data list`, such as lama.")]
    compute: Annotated[bool, option("lama-uhn: compute it from LAMA instead of fetching it.")] = (
        False
    )
    guesser: Annotated[
        str | None, option("With --compute: the masked model that guesses from names.")
    ] = None
    repin: Annotated[bool, option("Accept a file that changed since its first download.")] = False

    def check(self) -> None:
        """Raise UserError for a guesser without --compute."""
        super().check()
        if self.guesser and not self.compute:
            raise UserError("--guesser needs --compute.")


@dataclass(frozen=True)
class ImportRequest(Request):
    """A source on this machine to import into the library: the fields of `data import`."""

    command: ClassVar[tuple[str, ...]] = ("data", "import")
    python: ClassVar[str] = "import_data"

    path: Annotated[str, argument("A folder, an archive, or a CSV, TSV or JSONL file.")]
    name: Annotated[str | None, option("Its name here. Default: the folder's or file's name.")] = (
        None
    )
    replace: Annotated[bool, option("Replace a source of the same name.")] = False
    subject: Annotated[
        str | None, option("Of a table: the column of the subjects. Default: subject.")
    ] = None
    object: Annotated[
        str | None, option("Of a table: the column of the objects. Default: object.")
    ] = None
    relation: Annotated[
        str | None,
        option("Of a table: the column of the relations. Default: relation, or one for all rows."),
    ] = None
    template_column: Annotated[
        str | None, option("Of a table: the column of the templates. Default: template.")
    ] = None
    template: Annotated[
        Sequence[str],
        option(
            "Of a table: a template with [X] and [Y] for rows that have none, or "
            "RELATION=TEMPLATE for those of one relation. Repeat it."
        ),
    ] = ()

    def columns(self) -> user_table.Columns:
        """Return what it says of a table. Raises UserError for a template that can't be used."""
        return user_table.Columns.given(
            subject=self.subject or "",
            object=self.object or "",
            relation=self.relation or "",
            template=self.template_column or "",
            templates=self.template,
        )


@dataclass(frozen=True, slots=True)
class Installed:
    """What was installed, and where."""

    dataset: Dataset | AnalogyDataset
    folder: Path


def downloads_dir(name: str) -> Path:
    """Where the fetched files of the source `name` are kept."""
    return paths.cache_dir() / "downloads" / name


def get_dataset(
    name: str,
    *,
    on_progress: OnProgress = ignore,
    patience: Patience | None = None,
    repin: bool = False,
    compute: bool = False,
    guess: variants.Guess | None = None,
    source: published.Source | None = None,
) -> Installed:
    """Fetch the published source `name`, unpack it, read it and put it into the library.

    A source that needs another (LAMA-UHN needs LAMA's templates) fetches that one first. What was
    installed under the name before stays until the new one has been read whole.
    compute: compute LAMA-UHN from LAMA instead of fetching it. guess: its name guesser; without
    one only the substring filter is applied.
    Raises UserError; what was fetched so far is kept for the next try.
    """
    source = source or published.source(name)
    if source.needs and source.needs not in installed.installed_names():
        get_dataset(source.needs, on_progress=on_progress, patience=patience, repin=repin)
    if compute:
        return _compute(source, guess, on_progress)
    with (
        _alone(name),
        fetched(
            source.files,
            downloads_dir(name),
            on_progress,
            stage="fetching",
            patience=patience,
            repin=repin,
        ) as paths,
        _beside(name) as folder,
    ):
        for path in paths:
            if archive.is_archive(path):
                place = folder / path.name.split(".")[0]
                _unpack(path, place, source.max_unpacked_bytes, on_progress)
            else:
                copy_file(path, folder / path.name, source.max_unpacked_bytes)
        return _settle(folder, name)


def import_name(path: Path, name: str | None = None) -> str:
    """What an import is called in the library: its given name, or its file's, fit for a folder.

    Raises UserError for a name of which nothing is left, or that is the project's own.
    """
    safe = installed.safe_name(name or _stem(Path(os.path.realpath(user_path(path)))))
    if safe in (installed.STARTER, installed.STARTER_ANALOGIES):
        raise UserError(f"{safe!r} is the project's own: give the import another name")
    return safe


def import_dataset(
    path: Path,
    *,
    name: str | None = None,
    replace: bool = False,
    columns: user_table.Columns | None = None,
    on_progress: OnProgress = ignore,
) -> Installed:
    """Take a folder, an archive or a table that the user has into the library.

    name: what it is called there; without one, the folder's or file's name. replace: what has that
    name now makes place for it, once it has been read whole. columns: of a table.
    Raises UserError if it is in no known format, holds nothing usable, or is too large, and for a
    name that is taken, or columns of what isn't a table.
    """
    path = user_path(path)
    if not path.exists():
        raise UserError(f"there is no file or folder {path}")
    name = import_name(path, name)
    if name in installed.installed_names() and not replace:
        raise UserError(
            f"{installed.describe(name)} would be replaced: give another name with --name, or say "
            "--replace"
        )
    columns = None if columns == user_table.Columns() else columns
    if columns is not None and (path.is_dir() or path.suffix.lower() not in user_table.SUFFIXES):
        raise UserError(
            f"{path} is not a CSV, TSV or JSONL file: import it without columns and templates"
        )
    with _beside(name) as folder:
        if path.is_dir():
            _copy_folder(path, folder, on_progress)
        elif archive.is_archive(path):
            _unpack(path, folder / _stem(path), MAX_IMPORTED_BYTES, on_progress)
        else:
            formats.detect(path)
            copy_file(path, folder / path.name, MAX_IMPORTED_BYTES)
            if columns is not None:
                user_table.write_columns(folder / path.name, columns)
        try:
            on_progress(Progress(f"reading {name}"))
            return _settle(folder, name)
        except UserError as error:
            # The user knows the path that was given, not the folder that it was copied to.
            inside = folder if path.is_dir() else folder / path.name
            said = str(error).replace(str(inside), str(path)).replace(str(folder), str(path))
            raise UserError(said) from error


def _compute(
    source: published.Source, guess: variants.Guess | None, on_progress: OnProgress
) -> Installed:
    """Install LAMA-UHN computed from LAMA. Raises UserError for any other source."""
    if not source.needs:
        raise UserError(f"{source.name} is not computed from another source: leave compute out")
    asked = 0

    def counted(text: str, k: int) -> Sequence[str]:
        nonlocal asked
        asked += 1
        on_progress(Progress("guessing from names", asked, None, "queries"))
        return guess(text, k) if guess else ()

    with _beside(source.name) as folder:
        lama = installed.load_dataset(source.needs)
        derived.write_uhn(lama, folder, guess=counted if guess else None)
        return _settle(folder, source.name)


def _settle(folder: Path, name: str) -> Installed:
    """Read the content of `folder` and, if that works, move it to its place in the library."""
    _flatten(folder)
    relations_file = installed.relations_file_for(folder)
    dataset = formats.load(folder, name=name, relations_file=relations_file)
    installed.write_record(folder, dataset, formats.detect(folder).content)
    place = installed.datasets_dir() / name
    replace_folder(folder, place)
    return Installed(dataset, place)


@contextmanager
def _alone(name: str) -> Iterator[None]:
    """Keep another process or page from fetching the same source at the same time."""
    folder = downloads_dir(name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / ".lock", timeout=0):
            yield
    except Timeout:
        raise UserError(
            f"{name} is being fetched already, by another command or page: wait for it"
        ) from None
    except OSError as error:
        raise UserError(f"{folder}: {name} can't be fetched to it: {error.strerror}") from error


@contextmanager
def _beside(name: str) -> Iterator[Path]:
    """An empty folder to be moved to the place of `name`; what is left of it is removed again.

    Raises UserError if the library can't be written to.
    """
    try:
        with work_folder(installed.datasets_dir()) as work:
            folder = work / name
            folder.mkdir()
            yield folder
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        place = installed.datasets_dir()
        why = "the disk is full" if full else f"{place}: {error.strerror or error}"
        raise UserError(
            f"{why}: {name} was not installed; what was there before is untouched"
        ) from error


def _unpack(path: Path, folder: Path, max_bytes: int, on_progress: OnProgress) -> None:
    def on_bytes(written: int) -> None:
        on_progress(Progress(f"unpacking {path.name}", written, None, "bytes"))

    archive.unpack(path, folder, max_bytes=max_bytes, on_bytes=on_bytes)


def _flatten(folder: Path) -> None:
    """Lift the dataset out of the folders that its archive wraps it in."""
    root = formats.root_of(folder)
    if root == folder:
        return
    wrapper = folder / root.relative_to(folder).parts[0]
    beside = wrapper.rename(folder / f".{wrapper.name}.wrapped")
    inner = beside / root.relative_to(wrapper)
    for child in (*sorted(inner.iterdir()), *sorted(inner.parent.glob("relations.jsonl"))):
        if not (folder / child.name).exists():
            child.rename(folder / child.name)
    shutil.rmtree(beside)


def _copy_folder(source: Path, folder: Path, on_progress: OnProgress) -> None:
    """Copy the data files of `source`, and unpack the archives; links are not followed."""
    budget = archive.Budget(f"{source}", MAX_IMPORTED_BYTES)
    for parent, folders, files in os.walk(source, onerror=_cant_be_read):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        budget.count(len(files))
        for name in sorted(files):
            path = Path(parent) / name
            if path.is_symlink() or path.suffix not in KEPT_SUFFIXES or name.startswith("."):
                continue
            inner = path.relative_to(source)
            target = folder / archive.safe_path(f"{source}", str(inner))
            budget.make_folder(target.parent)
            budget.spend(copy_file(path, target, MAX_IMPORTED_BYTES))
            on_progress(Progress(f"copying {name}", budget.written, None, "bytes"))
    archive.unpack_nested(folder, budget)


def _cant_be_read(error: OSError) -> None:
    raise UserError(f"{error.filename} can't be read: {error.strerror}.") from error


def _stem(path: Path) -> str:
    for suffix in (*archive.SUFFIXES, *(".csv", ".tsv", ".jsonl", ".json", ".txt")):
        if path.name.lower().endswith(suffix):
            return path.name[: -len(suffix)]
    return path.name
