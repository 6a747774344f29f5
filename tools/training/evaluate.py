"""Evaluation of the trained model: loss and accuracy on masked held-out text.

In each passage of the held-out text, 15 % of the tokens (rounded, at least one), drawn uniformly,
are replaced by [MASK] and predicted.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tools.training.corpus.build import read_lines
from tools.training.masking import STARTS_WORD, MaskingPlan, draw_mask
from tools.training.modelling import hidden_logits

UNIFORM = MaskingPlan(rate=0.15, whole_word_share=0.0, weights=(1.0, 1.0, 1.0))
SEED, BATCH = 20_000, 64


@dataclass(frozen=True)
class HeldOut:
    """Scores on held-out text.

    Attributes:
        n_hidden: Number of masked tokens.
        loss: Mean cross-entropy in nats.
        accuracy: Share of masked tokens whose likeliest prediction is right.
    """

    n_hidden: int
    loss: float
    accuracy: float


def evaluate_files(
    model: Any, tokenizer: Any, files: Iterable[tuple[str, Path]], *, max_length: int
) -> dict[str, HeldOut]:
    """Return the scores on each held-out file, and on all files under the key `all`.

    Passages with fewer than three tokens, not counting special tokens, are excluded.

    Args:
        model: Masked language model, in evaluation mode.
        tokenizer: Its tokenizer.
        files: Name and path of each file.
        max_length: Maximum number of tokens of a passage.
    """
    scores = {}
    for name, path in files:
        encoded = tokenizer(read_lines(path), truncation=True, max_length=max_length)["input_ids"]
        rows = sorted((ids for ids in encoded if len(ids) >= 5), key=len)
        total_loss, n_right, n_hidden = 0.0, 0, 0
        for start in range(0, len(rows), BATCH):
            batch = tokenizer.pad({"input_ids": rows[start : start + BATCH]}, return_tensors="pt")
            ids, tokens = batch["input_ids"], batch["attention_mask"]
            flags = np.full(ids.shape, STARTS_WORD, dtype=np.uint8)
            rng = np.random.default_rng([SEED, start])
            hidden = torch.from_numpy(draw_mask(flags, tokens.sum(1).numpy(), UNIFORM, rng))
            with torch.inference_mode():
                inputs = ids.masked_fill(hidden, tokenizer.mask_token_id)
                logits = hidden_logits(model, inputs, tokens, hidden).float()
            gold = ids[hidden]
            total_loss += float(torch.nn.functional.cross_entropy(logits, gold, reduction="sum"))
            n_right += int((logits.argmax(-1) == gold).sum())
            n_hidden += len(gold)
        scores[name] = HeldOut(n_hidden, total_loss / n_hidden, n_right / n_hidden)
    n = sum(score.n_hidden for score in scores.values())
    scores["all"] = HeldOut(
        n,
        sum(s.loss * s.n_hidden for s in scores.values()) / n,
        sum(s.accuracy * s.n_hidden for s in scores.values()) / n,
    )
    return scores
