"""The encoder with a masked-LM head, and its logits at masked positions."""

from pathlib import Path
from typing import Any

import torch


def load_tokenizer(folder: Path) -> Any:
    """Return the encoder's tokenizer."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder, local_files_only=True)


def load_encoder(folder: Path) -> Any:
    """Return a BERT encoder with a masked-LM head, in float32; a missing head has random weights.

    Attention is unfused: for short passages, its gradient is twice as fast as with fused attention.
    """
    from transformers import BertForMaskedLM

    return BertForMaskedLM.from_pretrained(
        folder, local_files_only=True, dtype=torch.float32, attn_implementation="eager"
    )


def hidden_logits(
    model: Any, input_ids: torch.Tensor, attention_mask: torch.Tensor, hidden: torch.Tensor
) -> torch.Tensor:
    """Return the logits at the masked positions, [masked position, vocabulary].

    The head, which is most of the computation in a small model, is applied to these positions only.

    Args:
        model: Encoder with a masked-LM head.
        input_ids: Token ids, [passage, position].
        attention_mask: 1 for tokens, 0 for padding, [passage, position].
        hidden: Whether a position is masked, bool [passage, position].
    """
    states = model.base_model(input_ids=input_ids, attention_mask=attention_mask)[0]
    logits: torch.Tensor = model.cls(states[hidden])
    return logits
