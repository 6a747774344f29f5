"""What is proved at loading tells a model's nature from damage and from a want of memory."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from families import open_small, tokenizer_of
from tiny_models import save_model_folder
from transformers import Phi3Config, Phi3ForCausalLM

from lama_core.candidates.columns import Candidates
from lama_core.errors import UserError
from lama_core.models.hf.causal import CausalModel
from lama_core.models.hf.self_checks import self_checked
from lama_core.models.registry import open_model
from lama_core.models.sources.locations import LocatedModel
from lama_core.scoring.blanks import parse_query

Tiny = Callable[..., Any]


def open_causal(folder: Path, precision: str = "fp32") -> Any:
    return open_model("tiny", LocatedModel(folder, "tiny"), "causal", precision)


def no_room(*_: Any, **__: Any) -> Any:
    raise torch.OutOfMemoryError("CUDA out of memory")


@pytest.mark.parametrize("precision", ("fp32", "bf16"))
def test_a_model_that_sees_the_future_is_refused_in_any_precision(
    precision: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match="is not causal"):
        open_small("causal", "xlnet", tmp_path, precision=precision)


def test_a_want_of_memory_is_said_and_is_no_trait_of_the_family(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = open_causal(save_model_folder("smollm2", tmp_path / "tiny"))
    query = parse_query("The capital of [MASK] is Paris.")
    columns = Candidates("full", None).columns(model.vocabulary)
    encoded = model.encode(query, "both")
    model.blank_log_probs([encoded], columns)
    monkeypatch.setattr(model.model, "forward", no_room)
    for ask in (
        lambda: self_checked(model),
        lambda: model.suffix_log_probs([1], [[2]], [3]),
        lambda: model.token_log_probs(["Paris is in France."]),
    ):
        with pytest.raises(UserError, match="needs more than is free on the device"):
            ask()
    assert model.caches and not model.notes


def test_a_text_of_one_token_beside_others_has_nothing_before_it(tiny_model: Tiny) -> None:
    shared = tiny_model("qwen2")  # it puts no token before a text
    model = CausalModel("tiny", shared.model, shared.tokenizer, identity="tiny")
    model.pads = False
    one, several = model.token_log_probs(["Paris", "The capital of France"])
    assert np.isnan(one.log_probs).all() and len(one.log_probs) == 1
    alone = model.token_log_probs(["The capital of France"])[0]
    np.testing.assert_allclose(several.log_probs, alone.log_probs, atol=1e-5)


def test_a_stretched_window_ends_where_answers_begin_to_depend_on_other_texts(
    tmp_path: Path,
) -> None:
    tokenizer = tokenizer_of("causal")
    factors = [1.0] * 4
    config = Phi3Config(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=48, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=96,
        original_max_position_embeddings=32, pad_token_id=0, bos_token_id=None, eos_token_id=None,
        rope_parameters={
            "rope_type": "longrope", "rope_theta": 1e4, "short_factor": factors,
            "long_factor": [4.0] * 4, "original_max_position_embeddings": 32,
        },
    )  # fmt: skip
    Phi3ForCausalLM(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    assert open_causal(tmp_path).max_tokens == 32
