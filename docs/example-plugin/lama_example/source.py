"""A source: models of a local Ollama, by names such as `ollama:llama3.2`."""

import os
from typing import Any

from lama_core.models.server.backend import open_server
from lama_core.models.sources.catalog import AddedSource


def open_ollama(name: str) -> Any:
    """Return the model behind Ollama's server. Raises UserError if it doesn't run or lacks it."""
    address = os.environ.get("OLLAMA_HOST", "http://localhost:11434")
    return open_server(f"server:{address}/v1#{name}")


OLLAMA = AddedSource("Ollama", open_ollama)
