"""A backend: folders whose config.json has the model_type `example-gpt2`."""

from pathlib import Path

from lama_core.models.hf.causal import CausalModel
from lama_core.models.registry import Backend


def open_folder(name: str, folder: Path, precision: str, identity: str) -> CausalModel:
    """Return the model in a folder: the weights of a GPT-2, whatever the folder calls them."""
    from transformers import AutoTokenizer, GPT2LMHeadModel

    model = GPT2LMHeadModel.from_pretrained(folder, use_safetensors=True).eval()
    return CausalModel(name, model, AutoTokenizer.from_pretrained(folder), identity=identity)


BACKEND = Backend("example", "causal", open_folder)
