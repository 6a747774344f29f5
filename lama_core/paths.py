"""Where things live: the project's own assets, the user's cache and the user's data.

`LAMA_HOME`, when set, holds both the cache and the data.
"""

import os
from pathlib import Path

import platformdirs

ASSETS = Path(__file__).resolve().parent.parent / "assets"
APP_NAME = "lama-explorer"


def cache_dir() -> Path:
    """Folder for what can be fetched or computed again (weights, downloads); not created here."""
    home = os.environ.get("LAMA_HOME")
    return Path(home) / "cache" if home else Path(platformdirs.user_cache_dir(APP_NAME))


def training_dir() -> Path:
    """Folder of `train-mlm`'s own run: `corpus`, `tokens` and checkpoints; not created here."""
    return cache_dir() / "train-mlm"


def data_dir() -> Path:
    """Folder for what the user made or imported (datasets, runs); not created here."""
    home = os.environ.get("LAMA_HOME")
    return Path(home) / "data" if home else Path(platformdirs.user_data_dir(APP_NAME))
