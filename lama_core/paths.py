"""Paths of the project's own files, the user's cache and the user's data.

Only this module distinguishes the two layouts: a checkout, where `app.py`, `pages`, `assets` and
`docs` are next to `lama_core`, and an installed package, where they are inside it. The environment
variable `LAMA_HOME`, if set, is the folder of both the cache and the data.
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
# Starts Streamlit's server with the project's limits.
SERVER_FILE = APP_FILE.parent / "pages" / "ui" / "serve.py"
ASSETS = ROOT / "assets"
DOCS = ROOT / "docs"
# The folder that `python -m lama_core` needs on its path; a checkout isn't installed.
IMPORT_ROOT = _CHECKOUT
APP_NAME = "lama-explorer"
# Optional packages that contain models, one folder per model.
MODEL_PACKAGES = ("lama_explorer_twin",)
CORPUS_SUMMARY = "corpus.json"


def model_dir(name: str) -> Path:
    """Return the folder of a model in the project or an optional package; it may not exist."""
    folder = ASSETS / "models" / name
    if folder.is_dir():
        return folder
    for package in filter(None, map(find_spec, MODEL_PACKAGES)):
        for place in package.submodule_search_locations or ():
            if (Path(place) / name).is_dir():
                return Path(place) / name
    return folder


def plugin_pages() -> list[Path]:
    """Return the README.md of each plug-in that comes with the project, by name."""
    return sorted((ROOT if IS_CHECKOUT else DOCS).glob("plugins/*/README.md"))


def cache_dir() -> Path:
    """Return the folder for files that can be fetched or computed again; it isn't created."""
    home = os.environ.get("LAMA_HOME")
    return Path(home) / "cache" if home else Path(platformdirs.user_cache_dir(APP_NAME))


def training_dir() -> Path:
    """Return the folder of `tools.training` (corpus, tokens, checkpoints); it isn't created."""
    return cache_dir() / "train-mlm"


def corpus_files() -> list[Path]:
    """Return the training files of the embedded model's corpus; [] if it isn't built yet."""
    folder = training_dir() / "corpus"
    if not (folder / CORPUS_SUMMARY).is_file():  # written last; without it, files may be missing
        return []
    return sorted(set(folder.glob("*.txt")) - set(folder.glob("*.held-out.txt")))


def data_dir() -> Path:
    """Return the folder for the user's datasets and runs; it isn't created."""
    home = os.environ.get("LAMA_HOME")
    return Path(home) / "data" if home else Path(platformdirs.user_data_dir(APP_NAME))
