"""The encoder with a masked-LM head, and its logits at masked positions."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from lama_core.errors import UserError

HEADS = ("cls", "lm_head")
"""Name of the masked-LM head in transformers: for models like BERT, and like RoBERTa."""

ATTENTION = "eager"
"""Unfused attention: for short passages, its gradient is twice as fast as with fused attention."""


def load_tokenizer(folder: Path) -> Any:
    """Return the encoder's tokenizer.

    Raises:
        UserError: If it isn't a fast tokenizer with a mask token and at most 65,536 tokens.
    """
    from transformers import AutoTokenizer

    _check_folder(folder)
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, KeyError) as error:
        raise UserError(f"{folder} has no readable tokenizer") from error
    if not tokenizer.is_fast or tokenizer.mask_token_id is None:
        raise UserError(f"the tokenizer in {folder} is not a fast tokenizer with a mask token")
    if len(tokenizer) > 2**16:
        raise UserError(f"the tokenizer in {folder} has more than {2**16:,} tokens")
    return tokenizer


def load_encoder(folder: Path) -> torch.nn.Module:
    """Return the encoder with a masked-LM head, in float32; a missing head is initialized randomly.

    Raises:
        UserError: If the folder has no encoder of a supported type.
    """
    from transformers import AutoModelForMaskedLM

    _check_folder(folder)
    try:
        with _quiet():  # transformers warns at length about the missing head
            model = AutoModelForMaskedLM.from_pretrained(
                folder, local_files_only=True, dtype=torch.float32, attn_implementation=ATTENTION
            )
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"{folder} has no readable encoder: {reason}") from error
    if not any(hasattr(model, head) for head in HEADS):
        raise UserError(
            f"{folder}: models of type {model.config.model_type} aren't supported: "
            "give a BERT or RoBERTa encoder"
        )
    return model


def hidden_logits(
    model: Any,
    input_ids: torch.Tensor,
    attention_mask: torch.Tensor | None,
    hidden: torch.Tensor,
) -> torch.Tensor:
    """Return the logits at the masked positions, [masked position, vocabulary].

    The head, which is most of the computation in a small model, is applied to these positions only.

    Args:
        model: Encoder with a masked-LM head.
        input_ids: Token ids, [passage, position].
        attention_mask: 1 for tokens, 0 for padding, [passage, position]; None without padding.
        hidden: Whether a position is masked, bool [passage, position].
    """
    states = model.base_model(input_ids=input_ids, attention_mask=attention_mask)[0]
    return head_of(model)(states[hidden])


def head_of(model: Any) -> Any:
    """Return the masked-LM head, a module from states to logits."""
    return next(getattr(model, name) for name in HEADS if hasattr(model, name))


@contextmanager
def _quiet() -> Iterator[None]:
    from transformers.utils import logging

    before = logging.get_verbosity()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(before)
        logging.enable_progress_bar()


def _check_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise UserError(f"no such encoder folder: {folder}")
    if not (folder / "config.json").exists():
        raise UserError(f"{folder} isn't an encoder: config.json is missing")
