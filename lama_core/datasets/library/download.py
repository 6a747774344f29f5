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
from typing import Annotated, Any

from lama_core import paths
from lama_core.datasets import formats, lama_writer, user_table
from lama_core.datasets.dataset import AnyDataset, Dataset, n_relations
from lama_core.datasets.library import installed, published
from lama_core.datasets.nested_folders import files_under
from lama_core.datasets.records import GZIP, SUFFIXES, parts_of
from lama_core.downloads import archive
from lama_core.errors import UserError, reason_of
from lama_core.files import copy_file, hold_lock, replace_folder, user_path, work_folder
from lama_core.progress import OnProgress, Progress, Result, ignore
from lama_core.requests import Function, Request, argument, option

# Files with other suffixes in an imported folder are not copied.
KEPT_SUFFIXES = {*SUFFIXES, GZIP, ".json", ".txt", ".md", ".tgz", ""}
MAX_IMPORTED_BYTES = 4 << 30


@dataclass(frozen=True)
class GetRequest(Request, command="data get", python="get_data"):
    """The request `data get`: a published source to download, or to compute from another."""

    name: Annotated[str, argument("A name of `data list`, such as lama.")]
    compute: Annotated[
        bool,
        option(
            "lama-uhn: compute it from LAMA instead of downloading it, without the facts whose "
            "subject contains the object."
        ),
    ] = False
    repin: Annotated[bool, option("Accept a file that changed since its first download.")] = False


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
    repin: bool = False,
    compute: bool = False,
    source: published.Source | None = None,
) -> Installed:
    """Download, unpack, read and install the published source `name`.

    If the source needs another one (LAMA-UHN needs LAMA's templates), that one is installed first.
    A dataset installed under this name is replaced only after the new one was read completely.

    Args:
        name: Name of a published source.
        on_progress: Called with the progress.
        repin: Accept files that differ from their first download.
        compute: Compute LAMA-UHN from LAMA instead of downloading it.
        source: The source to use instead of the published one.

    Raises:
        UserError: If a step fails; a partial download is kept and resumed next time.
    """
    from lama_core.downloads.transfer import fetched  # imports requests: only for downloads

    source = source or published.source(name)
    if source.needs and source.needs not in installed.installed_names():
        get_dataset(source.needs, on_progress=on_progress, repin=repin)
    if compute:
        if not source.needs:
            raise UserError(
                f"{name} can't be computed from another source: download it without --compute"
            )
        with _new_folder(name) as folder:
            lama_writer.write_uhn(installed.load_dataset(source.needs), folder)
            return _install(folder, name)
    downloads = downloads_dir(name)
    try:
        downloads.mkdir(parents=True, exist_ok=True)
        with (
            hold_lock(downloads / ".lock", f"is downloading {name}", seconds=0),
            fetched(source.files, downloads, on_progress, repin=repin) as paths,
            _new_folder(name) as folder,
        ):
            most = source.max_unpacked_bytes
            for path in paths:
                if archive.is_archive(path):
                    target = folder / path.name.split(".")[0]
                    archive.unpack(path, target, max_bytes=most, on_progress=on_progress)
                else:
                    copy_file(path, folder / path.name, most)
            return _install(folder, name)
    except OSError as error:
        raise UserError(f"can't download {name} to {downloads}: {reason_of(error)}") from error


def import_name(path: Path, name: str | None = None) -> str:
    """Return the name of an import, made safe for a folder. Default: that of the file.

    Raises UserError for a name without letters and digits, or the name of a built-in dataset.
    """
    file = os.path.basename(os.path.realpath(user_path(path)))
    plain = file[: -len(GZIP)] if file.lower().endswith(GZIP) else file
    ends = (*archive.SUFFIXES, *SUFFIXES, ".json", ".txt")
    stems = (plain[: -len(end)] for end in ends if plain.lower().endswith(end))
    safe = installed.safe_name(name or next(stems, file))
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
            archive.unpack(path, folder, max_bytes=MAX_IMPORTED_BYTES, on_progress=on_progress)
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
    return _report(
        import_dataset(
            Path(request.path),
            name=request.name,
            replace=request.replace,
            columns=request.columns(),
            on_progress=request.on_progress,
        ),
        request,
    )


def _report(added: Installed, request: Request) -> Installed:
    """Report to a request's callback that a dataset is installed, and return it."""
    name = added.folder.name
    request.on_progress(Progress(f"{name} is installed", 1, 1, result=Result("data", name)))
    return added


def _get(request: GetRequest) -> Installed:
    published_as = published.source(request.name)
    note = f"{published_as.title}; licence: {published_as.licence}; cite: {published_as.citation}"
    request.on_note(f"{note}; {published_as.note}" if published_as.note else note)
    return _report(
        get_dataset(
            request.name,
            on_progress=request.on_progress,
            repin=request.repin,
            compute=request.compute,
        ),
        request,
    )


get_data = Function(
    GetRequest,
    _get,
    lambda added: added.dataset,
    """Download a published source from its authors; an interrupted download resumes.

    Returns:
        The dataset.

    Raises:
        UserError: If the source is unknown, the download fails, or its checksum differs.
    """,
)


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


def _install(folder: Path, name: str) -> Installed:
    """Read the dataset in `folder`, then move the folder into the library."""
    _flatten(folder)
    dataset = formats.load(folder, name=name, relations_file=installed.relations_file_for(folder))
    installed.write_record(folder, dataset, formats.detect(folder).content)
    target = installed.datasets_dir() / name
    replace_folder(folder, target)
    return Installed(dataset, target)


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
    for path in files_under(source, hidden=False):
        is_hidden = path.name.startswith(".")
        if is_hidden or path.is_symlink() or path.suffix.lower() not in KEPT_SUFFIXES:
            continue
        target = folder / archive.safe_path(f"{source}", str(path.relative_to(source)))
        budget.make_folder(target.parent)
        budget.count()
        budget.spend(copy_file(path, target, MAX_IMPORTED_BYTES))
        on_progress(Progress(f"copying {path.name}", budget.written, None, "bytes"))
    archive.unpack_nested(folder, budget)
