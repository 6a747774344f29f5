"""What the tests of whole commands share."""

import pytest
from sandbox import Sandbox
from tiny_models import save_model_folder


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    """A sandbox of a process's own; the model and what commands import are loaded once."""
    from lama_core.models.cache import load_model

    load_model("minilm-mlm")
    return Sandbox(tmp_path_factory.mktemp("sandbox"))


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """Options that name a masked and a causal model."""
    folder = tmp_path_factory.mktemp("models")
    folders = (save_model_folder(name, folder / name) for name in ("bert-uncased", "smollm2"))
    return tuple(part for place in folders for part in ("--model", str(place)))
