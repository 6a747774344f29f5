"""What the tests of whole commands share."""

import pytest
from sandbox import Sandbox


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    """A sandbox of a process's own; the model and what commands import are loaded once."""
    from lama_core.models.cache import load_model

    load_model("minilm-mlm")
    return Sandbox(tmp_path_factory.mktemp("sandbox"))
