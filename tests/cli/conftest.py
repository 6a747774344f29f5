"""What the tests of whole commands share."""

from importlib import import_module

import pytest
from sandbox import Sandbox
from tiny_models import save_model_folder

from lama_core import cli

# What commands import when they need it; in each of their processes it would take half a second.
IMPORTED_LATER = (
    "huggingface_hub.hf_api", "scipy.special", "scipy.stats", "sklearn.cluster",
    "sklearn.feature_extraction.text", "sklearn.neural_network", "wordfreq",
)  # fmt: skip


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    """A sandbox of a process's own; what commands load and import is there once."""
    from lama_core.datasets.library.installed import load_dataset
    from lama_core.models.cache import load_model

    load_model("minilm-mlm")
    load_dataset("starter")
    for target, _ in cli.COMMANDS.values():
        import_module(f"lama_core.cli.{target.partition(':')[0]}")
    for name in IMPORTED_LATER:
        import_module(name)
    return Sandbox(tmp_path_factory.mktemp("sandbox"))


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """Options that name a masked and a causal model."""
    folder = tmp_path_factory.mktemp("models")
    folders = (save_model_folder(name, folder / name) for name in ("bert-uncased", "smollm2"))
    return tuple(part for place in folders for part in ("--model", str(place)))
