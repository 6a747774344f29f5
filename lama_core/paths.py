"""Where things are: the project's own files, the user's cache and the user's data.

The only module that knows both layouts: a checkout, where `app.py`, `pages`, `assets` and `docs`
lie next to `lama_core`, and an installed package, where they lie inside it. `LAMA_HOME`, when set,
holds both the cache and the data.
"""

import os
from importlib.util import find_spec
from pathlib import Path

import platformdirs

_PACKAGE = Path(__file__).resolve().parent
_CHECKOUT = _PACKAGE.parent
IS_CHECKOUT = (_CHECKOUT / "app.py").is_file() and (_CHECKOUT / "assets").is_dir()
ROOT = _CHECKOUT if IS_CHECKOUT else _PACKAGE
APP_FILE = ROOT / "app.py" if IS_CHECKOUT else ROOT / "web" / "app.py"
ASSETS = ROOT / "assets"
DOCS = ROOT / "docs"
# What `python -m lama_core` needs on its path; in a checkout it isn't installed.
IMPORT_ROOT = _PACKAGE.parent
APP_NAME = "lama-explorer"
# Packages that carry further models, in folders of their names.
MODEL_PACKAGES = ("lama_explorer_twin",)
CORPUS_SUMMARY = "corpus.json"


def model_dir(name: str) -> Path:
    """Folder of a model that the project carries; where it should be if it isn't installed."""
    folder = ASSETS / "models" / name
    if folder.is_dir():
        return folder
    for package in filter(None, map(find_spec, MODEL_PACKAGES)):
        for place in package.submodule_search_locations or ():
            if (Path(place) / name).is_dir():
                return Path(place) / name
    return folder


def cache_dir() -> Path:
    """Folder for what can be fetched or computed again (weights, downloads); not created here."""
    home = os.environ.get("LAMA_HOME")
    return Path(home) / "cache" if home else Path(platformdirs.user_cache_dir(APP_NAME))


def training_dir() -> Path:
    """Folder of `tools.training`: `corpus`, `tokens` and checkpoints; not created here."""
    return cache_dir() / "train-mlm"


def corpus_files() -> list[Path]:
    """The text files of the embedded model's corpus; none if it isn't built here.

    `CORPUS_SUMMARY` is written last: without it the corpus isn't whole.
    """
    folder = training_dir() / "corpus"
    if not (folder / CORPUS_SUMMARY).is_file():
        return []
    held_out = set(folder.glob("*.held-out.txt"))
    return sorted(set(folder.glob("*.txt")) - held_out)


def data_dir() -> Path:
    """Folder for what the user made or imported (datasets, runs); not created here."""
    home = os.environ.get("LAMA_HOME")
    return Path(home) / "data" if home else Path(platformdirs.user_data_dir(APP_NAME))
