"""`data get` and `data import`: install a dataset completely or not at all."""

import errno
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from lama_core import paths
from lama_core.datasets import formats, user_table, variants
from lama_core.datasets.dataset import AnyDataset, Dataset, n_relations
from lama_core.datasets.library import derived, installed, published
from lama_core.datasets.records import GZIP, SUFFIXES, parts_of
from lama_core.downloads import archive
from lama_core.errors import UserError, reason_of
from lama_core.files import copy_file, hold_lock, replace_folder, user_path, work_folder
from lama_core.progress import OnProgress, Progress, Result, ignore
from lama_core.requests import Function, Request, argument, option

if TYPE_CHECKING:
    from lama_core.downloads.retry import Patience

# Files with other suffixes in an imported folder are not copied.
KEPT_SUFFIXES = {*SUFFIXES, GZIP, ".json", ".txt", ".md", ".tgz", ""}
MAX_IMPORTED_BYTES = 4 << 30
MAX_DEPTH = 600  # nested folders of an imported folder


@dataclass(frozen=True)
class GetRequest(Request, command="data get", python="get_data"):
    """The request `data get`: a published source to download, or to compute from another."""

    name: Annotated[str, argument("A name of `data list`, such as lama.")]
    compute: Annotated[
        bool, option("lama-uhn: compute it from LAMA instead of downloading it.")
    ] = False
    guesser: Annotated[
        str | None, option("With --compute: the masked model that guesses objects from names.")
    ] = None
    repin: Annotated[bool, option("Accept a file that changed since its first download.")] = False

    def check(self) -> None:
        """Raise UserError for a guesser without --compute."""
        super().check()
        if self.guesser and not self.compute:
            raise UserError("--guesser needs --compute.")


@dataclass(frozen=True)
class ImportRequest(Request, command="data import", python="import_data"):
    """The request `data import`: local data to install."""

    path: Annotated[
        str,
        argument(
            "A folder, an archive, or a table: CSV, TSV, JSON, Parquet, Arrow or a spreadsheet; "
            "- reads a table from standard input.",
            takes_dash=True,
        ),
    ]
    name: Annotated[
        str | None, option("Name of the dataset. Default: that of the folder or file.")
    ] = None
    replace: Annotated[bool, option("Replace a dataset of the same name.")] = False
    subject: Annotated[
        str | None, option("For a table: column of the subjects. Default: subject.")
    ] = None
    object: Annotated[
        str | None, option("For a table: column of the objects. Default: object.")
    ] = None
    relation: Annotated[
        str | None,
        option(
            "For a table: column of the relations. Default: relation; without this column, all "
            "rows are one relation."
        ),
    ] = None
    object_separator: Annotated[
        str | None,
        option(
            "For a table with several right answers in a cell: the text between them, such as ; . "
            "Default: a cell is one answer, or a list in JSON or Python."
        ),
    ] = None
    template_column: Annotated[
        str | None, option("For a table: column of the templates. Default: template.")
    ] = None
    template: Annotated[
        Sequence[str],
        option(
            "For a table: template with [X] and [Y] for rows without one, or RELATION=TEMPLATE "
            "for one relation. Can be repeated."
        ),
    ] = ()
    sheet: Annotated[str, option("For a spreadsheet with several: the sheet's name.")] = ""
    encoding: Annotated[
        str, option("For a table: encoding of the text, such as cp1252, if it isn't Unicode.")
    ] = ""

    def columns(self) -> user_table.ColumnRoles:
        """Return the columns of a table. Raises UserError for an unusable template."""
        return user_table.ColumnRoles.given(
            subject=self.subject or "",
            object=self.object or "",
            relation=self.relation or "",
            template=self.template_column or "",
            templates=self.template,
            separator=self.object_separator or "",
            sheet=self.sheet,
            encoding=self.encoding,
        )


@dataclass(frozen=True, slots=True)
class Installed:
    """An installed dataset and its folder."""

    dataset: AnyDataset
    folder: Path

    def to_json(self) -> dict[str, Any]:
        """Return what `data get --json` and `data import --json` print."""
        dataset, sources = self.dataset, []
        if isinstance(dataset, Dataset):
            n_facts = dataset.n_facts_by_source()
            sources = [
                {
                    "source": name,
                    "n_relations": sum(relation.source == name for relation in dataset.relations),
                    "n_facts": n_facts.get(name, 0),
                }
                for name in dataset.sources()
            ]
        return {
            "name": dataset.name,
            "n_relations": n_relations(dataset),
            "n_facts": dataset.n_items,
            "sources": sources,
            "dropped": [asdict(item) for item in dataset.report.dropped],
            "notes": list(dataset.report.notes),
            "digest": dataset.digest,
            "path": str(self.folder),
        }


def downloads_dir(name: str) -> Path:
    """Return the folder of the downloaded files of the source `name`."""
    return paths.cache_dir() / "downloads" / name


def get_dataset(
    name: str,
    *,
    on_progress: OnProgress = ignore,
    patience: "Patience | None" = None,
    repin: bool = False,
    compute: bool = False,
    guess: variants.Guess | None = None,
    source: published.Source | None = None,
) -> Installed:
    """Download, unpack, read and install the published source `name`.

    If the source needs another one (LAMA-UHN needs LAMA's templates), that one is installed first.
    A dataset installed under this name is replaced only after the new one was read completely.

    Args:
        name: Name of a published source.
        on_progress: Called with the progress.
        patience: Timeouts and retries.
        repin: Accept files that differ from their first download.
        compute: Compute LAMA-UHN from LAMA instead of downloading it.
        guess: The name guesser for `compute`. Default: only the substring filter is applied.
        source: The source to use instead of the published one.

    Raises:
        UserError: If a step fails; a partial download is kept and resumed next time.
    """
    from lama_core.downloads.transfer import fetched  # imports requests: only for downloads

    source = source or published.source(name)
    if source.needs and source.needs not in installed.installed_names():
        get_dataset(source.needs, on_progress=on_progress, patience=patience, repin=repin)
    if compute:
        return _compute(source, guess, on_progress)
    with (
        _download_lock(name),
        fetched(
            source.files,
            downloads_dir(name),
            on_progress,
            stage="fetching",
            patience=patience,
            repin=repin,
        ) as paths,
        _new_folder(name) as folder,
    ):
        for path in paths:
            if archive.is_archive(path):
                target = folder / path.name.split(".")[0]
                _unpack(path, target, source.max_unpacked_bytes, on_progress)
            else:
                copy_file(path, folder / path.name, source.max_unpacked_bytes)
        return _install(folder, name)


def import_name(path: Path, name: str | None = None) -> str:
    """Return the name of an import, made safe for a folder. Default: that of the file.

    Raises UserError for a name without letters and digits, or the name of a built-in dataset.
    """
    safe = installed.safe_name(name or _stem(Path(os.path.realpath(user_path(path)))))
    if safe in (installed.STARTER, installed.STARTER_ANALOGIES):
        raise UserError(f"{safe!r} is the name of a built-in dataset: give another name")
    return safe


def import_dataset(
    path: Path,
    *,
    name: str | None = None,
    replace: bool = False,
    columns: user_table.ColumnRoles | None = None,
    on_progress: OnProgress = ignore,
) -> Installed:
    """Install a copy of a local folder, archive or table.

    Args:
        path: The folder or file.
        name: Name of the dataset. Default: that of the folder or file.
        replace: Replace a dataset of this name, after the new one was read completely.
        columns: Columns of a table.
        on_progress: Called with the progress.

    Raises:
        UserError: If the format is unknown, nothing is usable, the data are too large, the name is
            taken, or `columns` is given for something other than a table.
    """
    path = user_path(path)
    if not path.exists():
        raise UserError(f"No such file or folder: {path}.")
    name = import_name(path, name)
    if name in installed.installed_names() and not replace:
        raise UserError(
            f"{installed.describe(name)} is already installed: pass --replace to replace it, or "
            "give another name with --name"
        )
    columns = None if columns == user_table.ColumnRoles() else columns
    if columns is not None and (path.is_dir() or archive.is_archive(path)):
        raise UserError(f"{path} is not a table: import it without columns and templates")
    with _new_folder(name) as folder:
        if path.is_dir():
            _copy_folder(path, folder, on_progress)
        elif archive.is_archive(path):
            folder.rmdir()  # the archive's folders are as deep here as unpacked ones
            _unpack(path, folder, MAX_IMPORTED_BYTES, on_progress)
        else:
            if columns is None:
                formats.detect(path)
            for part in parts_of(path):
                copy_file(part, folder / part.name, MAX_IMPORTED_BYTES)
            if columns is not None:
                user_table.keep_columns(folder / path.name, columns)
        try:
            on_progress(Progress(f"reading {name}"))
            return _install(folder, name)
        except UserError as error:
            # Show the user the given path, not that of the copy.
            copy = folder if path.is_dir() else folder / path.name
            message = str(error).replace(str(copy), str(path)).replace(str(folder), str(path))
            raise UserError(message) from error


def _import(request: ImportRequest) -> Installed:
    if request.path == "-":
        if not request.name:
            raise UserError("A table from standard input needs a name: give --name.")
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / request.name.replace("/", "-")
            with file.open("wb") as copy:
                shutil.copyfileobj(sys.stdin.buffer, copy)
            return _import(replace(request, path=str(file)))
    added = import_dataset(
        Path(request.path),
        name=request.name,
        replace=request.replace,
        columns=request.columns(),
        on_progress=request.on_progress,
    )
    report_installed(added, request)
    return added


def report_installed(added: Installed, request: Request) -> None:
    """Report to a request's callback that a dataset is installed."""
    name = added.folder.name
    request.on_progress(Progress(f"{name} is installed", 1, 1, result=Result("data", name)))


import_data = Function(
    ImportRequest,
    _import,
    lambda added: added.dataset,
    """Import a source from this machine, and report which rows are excluded and why.

    Returns:
        The dataset; `.report` lists the excluded rows with their reasons.

    Raises:
        UserError: If the path has no known format, or the name is already in use.
    """,
)


def _compute(
    source: published.Source, guess: variants.Guess | None, on_progress: OnProgress
) -> Installed:
    """Install LAMA-UHN computed from LAMA. Raises UserError for any other source."""
    if not source.needs:
        raise UserError(
            f"{source.name} can't be computed from another source: download it without --compute"
        )
    n_queries = 0

    def counted(text: str, k: int) -> Sequence[str]:
        nonlocal n_queries
        n_queries += 1
        on_progress(Progress("guessing from names", n_queries, None, "queries"))
        return guess(text, k) if guess else ()

    with _new_folder(source.name) as folder:
        lama = installed.load_dataset(source.needs)
        derived.write_uhn(lama, folder, guess=counted if guess else None)
        return _install(folder, source.name)


def _install(folder: Path, name: str) -> Installed:
    """Read the dataset in `folder`, then move the folder into the library."""
    _flatten(folder)
    relations_file = installed.relations_file_for(folder)
    dataset = formats.load(folder, name=name, relations_file=relations_file)
    installed.write_record(folder, dataset, formats.detect(folder).content)
    target = installed.datasets_dir() / name
    replace_folder(folder, target)
    return Installed(dataset, target)


@contextmanager
def _download_lock(name: str) -> Iterator[None]:
    """Hold a lock on the downloads of a source. Raises UserError if another process has it."""
    folder = downloads_dir(name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with hold_lock(folder / ".lock", f"is downloading {name}", seconds=0):
            yield
    except OSError as error:
        raise UserError(f"can't download {name} to {folder}: {reason_of(error)}") from error


@contextmanager
def _new_folder(name: str) -> Iterator[Path]:
    """Yield an empty folder, to be filled and moved into the library; it is removed afterwards.

    Raises UserError if the library can't be written to.
    """
    try:
        with work_folder(installed.datasets_dir()) as work:
            folder = work / name
            folder.mkdir()
            yield folder
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        library = installed.datasets_dir()
        reason = "the disk is full" if full else f"{library}: {reason_of(error)}"
        raise UserError(f"{name} was not installed, nothing was changed: {reason}") from error


def _unpack(path: Path, folder: Path, max_bytes: int, on_progress: OnProgress) -> None:
    def on_bytes(written: int) -> None:
        on_progress(Progress(f"unpacking {path.name}", written, None, "bytes"))

    archive.unpack(path, folder, max_bytes=max_bytes, on_bytes=on_bytes)


def _flatten(folder: Path) -> None:
    """Move the dataset out of the nested folders of its archive, into `folder`."""
    root = formats.root_of(folder)
    if root == folder:
        return
    wrapper = folder / root.relative_to(folder).parts[0]
    renamed = wrapper.rename(folder / f".{wrapper.name}.wrapped")
    inner = renamed / root.relative_to(wrapper)
    for child in (*sorted(inner.iterdir()), *sorted(inner.parent.glob("relations.jsonl"))):
        if not (folder / child.name).exists():
            child.rename(folder / child.name)
    shutil.rmtree(renamed)


def _copy_folder(source: Path, folder: Path, on_progress: OnProgress) -> None:
    """Copy the data files of `source` and unpack its archives; links are skipped."""
    budget = archive.Budget(f"{source}", MAX_IMPORTED_BYTES)
    for parent, folders, files in os.walk(source, onerror=_cant_be_read):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        if len(Path(parent).relative_to(source).parts) > MAX_DEPTH:
            raise UserError(
                f"{source} has folders nested more than {MAX_DEPTH} deep. Import the folder that "
                "contains the data."
            )
        budget.count(len(files))
        for name in sorted(files):
            path = Path(parent) / name
            if (
                path.is_symlink()
                or path.suffix.lower() not in KEPT_SUFFIXES
                or name.startswith(".")
            ):
                continue
            target = folder / archive.safe_path(f"{source}", str(path.relative_to(source)))
            budget.make_folder(target.parent)
            budget.spend(copy_file(path, target, MAX_IMPORTED_BYTES))
            on_progress(Progress(f"copying {name}", budget.written, None, "bytes"))
    archive.unpack_nested(folder, budget)


def _cant_be_read(error: OSError) -> None:
    raise UserError(f"{error.filename} can't be read: {reason_of(error)}.") from error


def _stem(path: Path) -> str:
    name = path.name[: -len(GZIP)] if path.name.lower().endswith(GZIP) else path.name
    for suffix in (*archive.SUFFIXES, *SUFFIXES, ".json", ".txt"):
        if name.lower().endswith(suffix):
            return name[: -len(suffix)]
    return path.name
