"""What the tests of training share."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def tiny_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a tiny encoder without a masked-LM head."""
    from tiny_encoder import make_tiny_encoder

    return make_tiny_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture
def text_file(tmp_path: Path) -> Path:
    """A text file of 120 short paragraphs."""
    from tiny_encoder import write_text

    return write_text(tmp_path / "text.txt")
