"""What the owner does with the sources that were fetched or imported: rename, remove."""

from lama_core.datasets.library import installed, published
from lama_core.errors import UserError, did_you_mean
from lama_core.files import folder_bytes, lock_for_changes, remove_folder

OWN = (installed.STARTER, installed.STARTER_ANALOGIES)


def dataset_bytes(name: str) -> int:
    """Bytes that an installed source takes on disk."""
    return folder_bytes(installed.installed_dir(_check(name)))


def rename_dataset(name: str, new: str) -> str:
    """Give an installed source another name; the name as it is taken, made fit for a folder.

    Runs that were made on it keep the name that it had.
    Raises UserError for an unknown source, and for a name that is taken or a published source's.
    """
    place, safe = installed.datasets_dir() / _check(name), installed.safe_name(new)
    if safe in (*OWN, *installed.installed_names()) or published.is_published(safe):
        raise UserError(f"the name {safe!r} is taken: choose another")
    try:
        with lock_for_changes(place):
            place.rename(place.with_name(safe))
    except OSError as error:
        raise UserError(f"{name} can't be renamed: {error.strerror}") from error
    return safe


def delete_dataset(name: str) -> int:
    """Remove an installed source; the bytes that it took. Runs that were made on it stay.

    Raises UserError for an unknown source.
    """
    n_bytes = dataset_bytes(name)
    place = installed.datasets_dir() / name
    try:
        with lock_for_changes(place):
            remove_folder(place)
    except OSError as error:
        raise UserError(f"{name} can't be removed: {error.strerror}") from error
    return n_bytes


def users_of(name: str) -> tuple[str, ...]:
    """The installed sources that have their templates from this one, and lose them without it."""
    place = installed.installed_dir(_check(name))
    return tuple(
        other
        for other in installed.installed_names()
        if (file := installed.relations_file_for(installed.installed_dir(other))) is not None
        if other != name and file.is_relative_to(place)
    )


def _check(name: str) -> str:
    """The name, if it is one of those that are installed. Raises UserError, with the nearest."""
    known = installed.installed_names()
    if name in known:
        return name
    if name in OWN:
        raise UserError(f"{name} comes with the project: it stays as it is")
    raise UserError(f"there is no dataset {name!r} here{did_you_mean(name, known)}")
