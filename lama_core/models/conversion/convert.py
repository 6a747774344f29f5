"""`models convert`: convert a release in an old format to a folder of safetensors."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lama_core import plugins
from lama_core.errors import UserError, reason_of
from lama_core.files import work_folder
from lama_core.models.model_folder import check_contents, check_files
from lama_core.progress import OnProgress, Progress, ignore

OLD_FORMAT = "is in an old release format. Run `models convert` first."  # a folder


@dataclass(frozen=True, slots=True)
class Release:
    """An old release format.

    title: its name for users. files: the files of a release, for users. is_one: returns whether a
    folder contains a release in this format. convert: writes the release in a folder to a model
    folder, as `convert(folder, out)`. check: raises UserError if a package that it needs isn't
    installed.
    """

    title: str
    files: str
    is_one: Callable[[Path], bool]
    convert: Callable[[Path, Path], None]
    check: Callable[[], None] = lambda: None


def release_in(folder: Path) -> Release | None:
    """Return the format of the release in a folder; None if no plug-in knows it."""
    found: Release | None = plugins.first("releases", lambda one: one.is_one(folder))
    return found


def convert(folder: Path, out: Path, on_progress: OnProgress = ignore) -> Release:
    """Write a release as a model folder to `out`, which must not exist; return its format.

    Raises UserError if the format is unknown, the release is incomplete, or `out` can't be written;
    then `out` isn't created.
    """
    if out.exists():
        raise UserError(f"{out} exists already. Choose another folder with --out.")
    try:
        with work_folder(out.absolute().parent) as work:
            release = convert_into(folder, work / "model", on_progress)
            (work / "model").rename(out)
    except OSError as error:
        raise UserError(f"Can't write {out}: {reason_of(error)}.") from error
    return release


def convert_into(folder: Path, out: Path, on_progress: OnProgress = ignore) -> Release:
    """Write a release as a model folder to the new folder `out`; return its format.

    Raises UserError if the format is unknown or the release is incomplete, and OSError if `out`
    can't be written; then `out` may be incomplete.
    """
    if not folder.is_dir():
        raise UserError(f"Folder not found: {str(folder)!r}.")
    check_files(folder)
    release = release_in(folder)
    if release is None:
        known = "; ".join(
            f"{release.title} ({release.files})" for release in plugins.rows("releases").values()
        )
        raise UserError(
            plugins.missing("ELMo")
            or f"{folder} has no release in a supported format. Supported: {known}."
        )
    on_progress(Progress(f"Converting {release.title}"))
    out.mkdir()
    release.convert(folder, out)
    try:
        check_contents(out)
    except UserError as error:
        raise UserError(
            f"{folder} doesn't give a complete model: {str(error).replace(str(out), str(folder))}"
        ) from error
    return release
