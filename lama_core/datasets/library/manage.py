"""Renaming and deleting installed datasets."""

from lama_core.datasets.library import installed, published
from lama_core.errors import UserError, did_you_mean, reason_of
from lama_core.files import folder_bytes, lock_for_changes, remove_folder

OWN = (installed.STARTER, installed.STARTER_ANALOGIES)


def dataset_bytes(name: str) -> int:
    """Return the bytes that an installed dataset uses on disk."""
    return folder_bytes(installed.installed_dir(_check(name)))


def rename_dataset(name: str, new: str) -> str:
    """Rename an installed dataset; return the new name, made safe for a folder.

    Runs on it keep the old name.
    Raises UserError for an unknown dataset, and if a dataset or published source has the new name.
    """
    folder, safe = installed.datasets_dir() / _check(name), installed.safe_name(new)
    if safe in (*OWN, *installed.installed_names()) or published.is_published(safe):
        raise UserError(f"the name {safe!r} is taken: choose another")
    try:
        with lock_for_changes(folder):
            folder.rename(folder.with_name(safe))
    except OSError as error:
        raise UserError(f"{name} can't be renamed: {reason_of(error)}") from error
    return safe


def delete_dataset(name: str) -> int:
    """Delete an installed dataset, but not the runs on it; return the bytes freed.

    Raises UserError for an unknown dataset.
    """
    n_bytes = dataset_bytes(name)
    folder = installed.datasets_dir() / name
    try:
        with lock_for_changes(folder):
            remove_folder(folder)
    except OSError as error:
        raise UserError(f"{name} can't be deleted: {reason_of(error)}") from error
    return n_bytes


def users_of(name: str) -> tuple[str, ...]:
    """Return the installed datasets that have no templates and use those of dataset `name`."""
    folder = installed.installed_dir(_check(name))
    return tuple(
        other
        for other in installed.installed_names()
        if (file := installed.relations_file_for(installed.installed_dir(other))) is not None
        if other != name and file.is_relative_to(folder)
    )


def _check(name: str) -> str:
    """Return the name. Raises UserError, with the nearest name, if it isn't installed."""
    known = installed.installed_names()
    if name in known:
        return name
    if name in OWN:
        raise UserError(f"{name} is built in and can't be changed")
    raise UserError(f"No installed dataset is called {name!r}{did_you_mean(name, known)}")
