"""Evaluation of the trained model: accuracy on masked held-out text, and answers to fixed queries.

In each passage of the held-out text, 15 % of the tokens (rounded, at least one), drawn uniformly,
are replaced by [MASK] and predicted.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from tools.training.corpus.build import read_lines
from tools.training.masking import draw_uniform_mask
from tools.training.modelling import hidden_logits

EVALUATION_RATE = 0.15
EVALUATION_SEED = 20_000
QUESTIONS = (
    "Tokyo is the capital of [MASK].",
    "The Nile is a river in [MASK].",
    "Einstein was a [MASK] who developed the theory of relativity.",
    "Paris is the capital of [MASK].",
    "Dante was born in [MASK].",
    "The native language of Victor Hugo is [MASK].",
    "The Beatles play [MASK] music.",
    "A dog is a kind of [MASK].",
    "The opposite of hot is [MASK].",
    "The theory of relativity was developed by [MASK].",
)


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


def evaluate_held_out(
    model: Any,
    tokenizer: Any,
    passages: list[str],
    *,
    max_length: int,
    batch_size: int = 64,
    seed: int = EVALUATION_SEED,
) -> HeldOut:
    """Return the scores on the passages' tokens that are drawn with `seed` and masked.

    Passages with fewer than three tokens, not counting special tokens, are excluded.
    """
    encoded = tokenizer(passages, truncation=True, max_length=max_length)["input_ids"]
    rows = sorted((ids for ids in encoded if len(ids) >= 5), key=len)
    total_loss, n_right, n_hidden = 0.0, 0, 0
    model.eval()
    with torch.inference_mode():
        for start in range(0, len(rows), batch_size):
            ids, lengths = padded(rows[start : start + batch_size], tokenizer.pad_token_id)
            rng = np.random.default_rng([seed, start])
            hidden = torch.from_numpy(
                draw_uniform_mask(lengths, ids.shape[1], EVALUATION_RATE, rng)
            )
            targets = torch.from_numpy(ids)
            mask = torch.from_numpy(np.arange(ids.shape[1])[None] < lengths[:, None]).long()
            inputs = targets.masked_fill(hidden, tokenizer.mask_token_id)
            logits = hidden_logits(model, inputs, mask, hidden).float()
            gold = targets[hidden]
            loss = torch.nn.functional.cross_entropy(logits, gold, reduction="sum")
            total_loss += float(loss)
            n_right += int((logits.argmax(-1) == gold).sum())
            n_hidden += len(gold)
    return HeldOut(n_hidden, total_loss / n_hidden, n_right / n_hidden)


def evaluate_files(
    model: Any,
    tokenizer: Any,
    files: Iterable[tuple[str, Path]],
    *,
    max_length: int,
    limit: int | None = None,
) -> dict[str, HeldOut]:
    """Return the scores on each held-out file, and on all files under the key `all`.

    Args:
        model: Masked language model.
        tokenizer: Its tokenizer.
        files: Name and path of each file.
        max_length: Maximum number of tokens of a passage.
        limit: Approximate number of passages used of each file, evenly spaced; None for all.
    """
    found: dict[str, list[str]] = {}
    for name, path in files:
        lines = read_lines(path)
        step = 1 if limit is None else max(1, len(lines) // limit)
        found[name] = lines[::step]
    scores = {
        name: evaluate_held_out(model, tokenizer, lines, max_length=max_length)
        for name, lines in found.items()
    }
    n = sum(score.n_hidden for score in scores.values())
    scores["all"] = HeldOut(
        n,
        sum(s.loss * s.n_hidden for s in scores.values()) / n,
        sum(s.accuracy * s.n_hidden for s in scores.values()) / n,
    )
    return scores


def answer(model: Any, tokenizer: Any, text: str, *, top_k: int = 5) -> list[str]:
    """Return the `top_k` best tokens for the text's only blank, best first."""
    encoded = tokenizer(text, return_tensors="pt")
    hidden = encoded["input_ids"] == tokenizer.mask_token_id
    model.eval()
    with torch.inference_mode():
        logits = hidden_logits(model, encoded["input_ids"], encoded["attention_mask"], hidden)
    return tokenizer.convert_ids_to_tokens(logits[0].topk(top_k).indices.tolist())


def padded(
    rows: list[list[int]], pad_id: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the rows padded with `pad_id`, int64 [row, position], and the rows' lengths."""
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    ids = np.full((len(rows), int(lengths.max())), pad_id, dtype=np.int64)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = row
    return ids, lengths
