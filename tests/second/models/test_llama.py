"""SmolLM2, read without transformers, scores as in transformers, which reads all other Llamas."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_models import save_model_folder, smollm_tokenizer, tiny
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

from lama_core.candidates.columns import Candidates
from lama_core.models.hf.causal import CausalModel
from lama_core.models.hf.generation import generate
from lama_core.models.hf.llama import LlamaCausalLM
from lama_core.models.hf.self_checks import self_checked
from lama_core.models.registry import open_model
from lama_core.models.sources.catalog import find_model
from lama_core.models.sources.locations import LocatedModel, locate
from lama_core.scoring.blanks import parse_query

TEXTS = (
    "The capital of France is Paris.",
    "Anna was a painter who didn't live in \"Zürich\" - she's born.",
    "Paris",
    "The capital of France is Rome, said Ann.",
)
PROMPTS = ("Paris", "The capital of France is", "The capital of Norway is", "a Poet a poet")
# Heads that share keys and values, and other sizes.
SHAPES: dict[str, dict[str, Any]] = {
    "groups": {"num_key_value_heads": 2, "head_dim": 6},
    "other sizes": {
        "hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 6, "rms_norm_eps": 1e-3,
        "num_key_value_heads": 3,
        "rope_parameters": {"rope_type": "default", "rope_theta": 500.0},
    },
}  # fmt: skip


def save(folder: Path, **settings: Any) -> Path:
    """Save a random Llama with SmolLM2's kind of tokenizer."""
    tokenizer = smollm_tokenizer()
    torch.manual_seed(0)
    special = {
        f"{name}_token_id": getattr(tokenizer, f"{name}_token_id") for name in ("bos", "eos")
    }
    sizes = tiny(vocab_size=len(tokenizer) + 3, initializer_range=0.2, tie_word_embeddings=True)
    model = LlamaForCausalLM(LlamaConfig(**sizes | special | settings))
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "norm" in name:
                weight.normal_(mean=1.0, std=0.3)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def by_transformers(folder: Path, precision: str = "fp32") -> CausalModel:
    """The backend around transformers' model and tokenizer, after its self-checks."""
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)
    plain = CausalModel("plain", model, AutoTokenizer.from_pretrained(folder), identity="plain")
    checked, passed = self_checked(plain)
    assert passed
    return checked


def ours(folder: Path, precision: str = "fp32") -> Any:
    located = LocatedModel(folder, "tiny")
    model = open_model("tiny", located, "causal", precision, known={"tiny"})
    assert isinstance(model.model, LlamaCausalLM)
    return model


@pytest.fixture(scope="module", params=SHAPES)
def folder_of_shape(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("llama"), **SHAPES[request.param])


def compare(one: Any, other: Any, atol: float = 1e-4) -> None:
    """Compare padded texts, prefix trees, right context and generated texts of two models."""
    rows = [one.framed(text) for text in TEXTS]
    assert rows == [other.framed(text) for text in TEXTS]
    everywhere = [range(len(row)) for row in rows]
    got, expected = (model.logits(rows, everywhere).log_softmax(1) for model in (one, other))
    assert torch.allclose(got, expected, atol=atol)
    assert one.tree_reach == other.tree_reach
    for mine, theirs in zip(*(m.chain_log_probs(rows) for m in (one, other)), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=atol)
    columns = Candidates("full", None).columns(one.vocabulary)
    query = parse_query("The capital of [MASK] is Paris.")
    mine, theirs = (
        model.blank_log_probs([model.encode(query, "both")], columns) for model in (one, other)
    )
    np.testing.assert_allclose(mine.log_probs, theirs.log_probs, atol=atol)
    for text, wanted in zip(*(generate(m, PROMPTS, 10) for m in (one, other)), strict=True):
        assert text.tokens == wanted.tokens and text.text == wanted.text
        np.testing.assert_allclose(text.log_probs, wanted.log_probs, atol=atol)


@pytest.mark.parametrize("precision", ("fp32", "bf16"))
def test_scores_and_texts_equal_those_of_transformers(
    folder_of_shape: Path, precision: str
) -> None:
    compare(ours(folder_of_shape, precision), by_transformers(folder_of_shape, precision))


@pytest.mark.usefixtures("users_models")
def test_smollm2_scores_as_in_transformers() -> None:
    located = locate(find_model("smollm2-135m"))
    if located is None:
        pytest.skip("smollm2-135m is not here")
    assert located.identity == find_model("smollm2-135m").identity
    compare(ours(located.folder), by_transformers(located.folder))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A tiny Llama's folder, which tests change."""
    return save_model_folder("smollm2", tmp_path / "tiny")


def test_the_table_may_have_the_heads_name(folder: Path) -> None:
    """As in SmolLM2's folder, which is expanded from a GGUF file."""
    expected = ours(folder).token_log_probs(TEXTS)
    path = folder / "model.safetensors"
    weights = load_file(path)
    weights["lm_head.weight"] = weights.pop("model.embed_tokens.weight")
    save_file(weights, path, metadata={"format": "pt"})
    for one, other in zip(ours(folder).token_log_probs(TEXTS), expected, strict=True):
        np.testing.assert_array_equal(one.log_probs, other.log_probs)
