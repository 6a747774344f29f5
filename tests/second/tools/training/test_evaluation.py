"""Evaluation: what counts as right."""

from pathlib import Path

import torch

from tools.training.modelling import hidden_logits, load_encoder, load_tokenizer


def test_hidden_logits_are_those_of_the_whole_model(tiny_encoder: Path) -> None:
    tokenizer, model = load_tokenizer(tiny_encoder), load_encoder(tiny_encoder).eval()
    encoded = tokenizer(["The city of [MASK] is old.", "[MASK] is great."], padding=True,
                        return_tensors="pt")  # fmt: skip
    hidden = encoded["input_ids"] == tokenizer.mask_token_id
    ours = hidden_logits(model, encoded["input_ids"], encoded["attention_mask"], hidden)
    whole = model(input_ids=encoded["input_ids"], attention_mask=encoded["attention_mask"]).logits
    assert torch.allclose(ours, whole[hidden], atol=1e-5)
