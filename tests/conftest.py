"""What tests of one room share in every tier."""

from collections.abc import Iterator
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from sandbox import Sandbox

# What commands import when they need it; in each of their processes it would take half a second.
IMPORTED_LATER = (
    "huggingface_hub.hf_api", "scipy.special", "scipy.stats", "sklearn.cluster",
    "sklearn.feature_extraction.text", "sklearn.neural_network", "wordfreq",
)  # fmt: skip


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> "Sandbox":
    """A sandbox of a process's own; what commands load and import is there once."""
    from sandbox import Sandbox

    from lama_core import cli
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
    from tiny_models import save_model_folder

    folder = tmp_path_factory.mktemp("models")
    folders = (save_model_folder(name, folder / name) for name in ("bert-uncased", "smollm2"))
    return tuple(part for place in folders for part in ("--model", str(place)))


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """What is entered into it, such as a server, ends with the test."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture(scope="session")
def tiny_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a tiny encoder without a masked-LM head."""
    from tiny_encoder import make_tiny_encoder

    return make_tiny_encoder(tmp_path_factory.mktemp("encoder"))
