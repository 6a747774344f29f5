"""What is here: the project's own starter sets, what the user fetched or imported, or a path."""

from pathlib import Path

from lama_core import paths
from lama_core.datasets import bats, lama
from lama_core.datasets.base import AnalogyDataset, Dataset
from lama_core.errors import UserError, did_you_mean

STARTER = "starter"
STARTER_ANALOGIES = "starter-analogies"


def starter_dir() -> Path:
    """Folder of the facts that come with the project, in LAMA's layout."""
    return paths.ASSETS / "datasets" / STARTER


def installed_dir(name: str) -> Path:
    """Folder where the source `name` lies once it was fetched or imported."""
    return paths.data_dir() / "datasets" / name


def dataset_names() -> tuple[str, ...]:
    """Names that `load_dataset` takes now: the starter facts and what is installed."""
    folder = paths.data_dir() / "datasets"
    installed = sorted(child.name for child in folder.iterdir()) if folder.is_dir() else []
    own = [STARTER] if starter_dir().is_dir() else []
    return tuple(own + [name for name in installed if (folder / name).is_dir()])


def load_dataset(name_or_path: str | Path, *, max_sentences: int = lama.MAX_SENTENCES) -> Dataset:
    """The dataset of that name (starter or installed), or the one at that path.

    Raises UserError, with the nearest name, if there is neither.
    """
    name = str(name_or_path)
    if name == STARTER:
        return lama.load(starter_dir(), name=STARTER, max_sentences=max_sentences)
    if name in dataset_names():
        return lama.load(installed_dir(name), name=name, max_sentences=max_sentences)
    path = Path(name_or_path).expanduser()
    if path.is_dir():
        return lama.load(path, max_sentences=max_sentences)
    hint = did_you_mean(name, dataset_names()) or f"; known: {', '.join(dataset_names()) or 'none'}"
    raise UserError(f"there is no dataset and no folder {name!r}{hint}")


def load_analogies(name_or_path: str | Path) -> AnalogyDataset:
    """The analogies of that name (starter-analogies or installed), or those at that path.

    Raises UserError, with the nearest name, if there is neither.
    """
    name = str(name_or_path)
    if name == STARTER_ANALOGIES:
        return bats.load(paths.ASSETS / "datasets" / STARTER_ANALOGIES, name=name)
    if (installed_dir(name)).is_dir():
        return bats.load(installed_dir(name), name=name)
    path = Path(name_or_path).expanduser()
    if path.exists():
        return bats.load(path)
    raise UserError(f"there are no analogies and no folder {name!r}")
