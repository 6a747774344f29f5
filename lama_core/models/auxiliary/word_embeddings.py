"""Embeddings of words in context: one layer's hidden states, pooled over each word's tokens.

Source: Rezaee and Camacho-Collados, section 2.4, which doesn't specify the layer and the pooling.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from lama_core.errors import UserError
from lama_core.models.devices import to_cpu
from lama_core.models.hf.transformer import Transformer
from lama_core.models.protocols import Pooling, Statement
from lama_core.models.vocabulary import TokenVocabulary

Span = tuple[int, int]


def hidden_states(
    model: Transformer,
    texts: Sequence[str],
    spans: Sequence[Sequence[Span]],
    *,
    layer: int = -1,
    pooling: Pooling = "mean",
) -> NDArray[np.float32]:
    """Return embeddings of words in sentences, float32 [text, word, dim].

    Args:
        model: A model with subword tokens.
        texts: The sentences.
        spans: For each text, the character spans [start, end) of the words to embed; every text has
            the same number of words.
        layer: 0 for the input embeddings, -1 for the last layer.
        pooling: How to combine the states of a word's tokens.

    Raises:
        UserError: If the layer doesn't exist, a text is too long, or the model is word-level.
    """
    if not isinstance(model.vocabulary, TokenVocabulary):
        raise UserError(
            f"{model.name} is a word-level model without hidden states. Choose another model."
        )
    rows, pieces = _encode(model, texts, spans)

    def run(some: Sequence[int]) -> dict[int, NDArray[np.float32]]:
        states = _layer(model, [rows[number] for number in some], layer)
        return {
            number: np.stack([_pool(states[row, at], pooling).numpy() for at in pieces[number]])
            for row, number in enumerate(some)
        }

    found = model.longest_first(run, [len(row) for row in rows])
    return np.stack(found) if found else np.zeros((0, 0, 0), np.float32)


def _pool(states: torch.Tensor, pooling: Pooling) -> torch.Tensor:
    if pooling == "mean":
        return states.mean(0)
    return states[0] if pooling == "first" else states[-1]


def _encode(
    model: Transformer, texts: Sequence[str], spans: Sequence[Sequence[Span]]
) -> tuple[list[list[int]], list[list[list[int]]]]:
    """Return each text's token ids, and the token positions of each of its words."""
    before, after = model.vocabulary.frame
    read = iter(
        model.vocabulary.read(
            [
                Statement(text, *span)
                for text, words in zip(texts, spans, strict=True)
                for span in words
            ]
        )
    )
    marked = [[next(read) for _ in words] for words in spans]
    rows = [[*before, *words[0].ids, *after] for words in marked]
    for row in rows:
        model.check_window(len(row))
    pieces = [
        [(np.flatnonzero(word.marked) + len(before)).tolist() for word in words] for words in marked
    ]
    if not all(map(all, pieces)):
        raise UserError(f"A word without letters has no token of {model.name}. Remove that word.")
    return rows, pieces


def _layer(model: Transformer, rows: Sequence[Sequence[int]], layer: int) -> torch.Tensor:
    """Hidden states of one layer, float32 [row, position, dim]; padding is on the right."""
    ids, mask = model.padded(rows)
    output = model.all_states(input_ids=ids, attention_mask=mask)
    states = output.hidden_states
    if not -len(states) <= layer < len(states):
        raise UserError(
            f"{model.name} has no layer {layer}: choose 0 (the input embeddings) to "
            f"{len(states) - 1}, or -1 for the last."
        )
    # For the last layer, output[0] is the input of the head: some families normalise it.
    if layer in (-1, len(states) - 1):
        return to_cpu(output[0].float())
    return to_cpu(states[layer].float())
