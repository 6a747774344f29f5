"""Text generation with any model that offers it: Hugging Face models and chat servers."""

import hashlib
import math
from collections.abc import Sequence
from typing import Any

from lama_core.errors import UserError
from lama_core.models.hf.chat_templates import stored_template
from lama_core.models.protocols import Chat, GeneratedText

GENERATING_KINDS = ("causal", "seq2seq")


def check_generates(model: Any) -> None:
    """Raise UserError for a model that fills blanks but doesn't generate text."""
    is_local = model.kind in GENERATING_KINDS and hasattr(model, "tokenizer")
    if not is_local and not hasattr(model, "generate"):
        raise UserError(
            f"{model.name} can't generate text: choose a causal or encoder-decoder model, or a "
            "chat server."
        )


def has_chat_template(model: Any) -> bool:
    """Return whether a model accepts chats: chat servers and models with a chat template do."""
    return hasattr(model, "generate") or bool(stored_template(model.tokenizer))


def template_digest(model: Any) -> str:
    """Return the SHA-256 of a model's chat template; empty if it has none here, as on a server."""
    if hasattr(model, "generate") or not has_chat_template(model):
        return ""
    return hashlib.sha256(
        str(stored_template(model.tokenizer)).encode(errors="replace")
    ).hexdigest()


def generate(
    model: Any,
    prompts: Sequence[str | Chat],
    max_tokens: int,
    until: float = math.inf,
    *,
    again: bool = False,
) -> list[GeneratedText]:
    """Return the greedy continuation of each prompt: its first line with text, after any reasoning.

    Args:
        model: A model that `check_generates` accepts.
        prompts: Plain texts, or chats for models with a chat template.
        max_tokens: Maximum number of tokens to generate for a prompt.
        until: Time (`time.monotonic`) at which a local model stops; servers ignore it.
        again: Whether to ask a server even if it has answered before.

    Raises:
        UserError: If a prompt can't be used with the model; see `hf.generation.generate`.
    """
    check_generates(model)
    if hasattr(model, "generate"):
        return model.generate(prompts, max_tokens, again=again)
    from lama_core.models.hf import generation  # imports torch

    return generation.generate(model, prompts, max_tokens, until)


def check_prompt(model: Any, prompt: str | Chat, max_tokens: int) -> int:
    """Return the number of tokens of a prompt; 0 for a server, which counts them itself.

    Raises:
        UserError: If the prompt can't be used with the model or doesn't fit its window.
    """
    if hasattr(model, "generate"):
        return 0
    from lama_core.models.hf import generation  # imports torch

    return len(generation.checked_ids(model, prompt, max_tokens))
