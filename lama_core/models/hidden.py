"""Embeddings of words in context: a layer's hidden states, pooled over each word's pieces.

Source: Rezaee and Camacho-Collados, section 2.4, which leaves the layer and the pooling open.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from lama_core.errors import UserError
from lama_core.models.base import Pooling
from lama_core.models.devices import host, in_parts
from lama_core.models.transformer import Transformer
from lama_core.models.words import WordVocabulary

Span = tuple[int, int]


def hidden_states(
    model: Transformer,
    texts: Sequence[str],
    spans: Sequence[Sequence[Span]],
    *,
    layer: int = -1,
    pooling: Pooling = "mean",
) -> NDArray[np.float32]:
    """Embeddings of words in their sentences, float32 [text, word, dim].

    spans: for each text the characters of each word, [start, end), as many in every text. layer: 0
    is the input embeddings, -1 the last layer. pooling: over the pieces that touch the word.
    Raises UserError for a layer that the model doesn't have, a text that doesn't fit, and a model
    of whole words.
    """
    if isinstance(model.vocabulary, WordVocabulary):
        raise UserError(
            f"{model.name} is read by whole words, and its layers are not given: choose another "
            "model for what takes hidden states."
        )
    rows, pieces = _encode(model, texts, spans)
    n_words = len(spans[0]) if spans else 0
    result: NDArray[np.float32] | None = None
    order = sorted(range(len(rows)), key=lambda number: -len(rows[number]))
    while order:
        size = max(1, model.tokens_per_pass // len(rows[order[0]]))
        longest = len(rows[order[0]])
        chunk = [n for n in order[:size] if model.pads or len(rows[n]) == longest]
        order = order[len(chunk) :]
        parts = in_parts(
            lambda some: (some, _layer(model, [rows[number] for number in some], layer)), chunk
        )
        for some, states in parts:
            if result is None:
                result = np.empty((len(rows), n_words, states.shape[2]), np.float32)
            for row, number in enumerate(some):
                for word, at in enumerate(pieces[number]):
                    result[number, word] = _pool(states[row, at], pooling).numpy()
    return np.zeros((0, 0, 0), np.float32) if result is None else result


def _pool(states: torch.Tensor, pooling: Pooling) -> torch.Tensor:
    if pooling == "mean":
        return states.mean(0)
    return states[0] if pooling == "first" else states[-1]


def _encode(
    model: Transformer, texts: Sequence[str], spans: Sequence[Sequence[Span]]
) -> tuple[list[list[int]], list[list[list[int]]]]:
    """Token ids of each text, and for each of its words the positions of its pieces."""
    before, after = model.vocabulary.frame
    encoded = model.tokenizer(
        list(texts),
        add_special_tokens=False,
        split_special_tokens=True,
        return_offsets_mapping=True,
        verbose=False,
    )
    rows, pieces = [], []
    for ids, offsets, words in zip(
        encoded["input_ids"], encoded["offset_mapping"], spans, strict=True
    ):
        model.check_window(len(before) + len(ids) + len(after))
        rows.append([*before, *ids, *after])
        found = []
        for start, end in words:
            at = [
                len(before) + number
                for number, (left, right) in enumerate(offsets)
                if left < end and right > start
            ]
            if not at:
                raise UserError(f"{model.name} has no piece for a word: it holds no letters.")
            found.append(at)
        pieces.append(found)
    return rows, pieces


def _layer(model: Transformer, rows: Sequence[Sequence[int]], layer: int) -> torch.Tensor:
    """Hidden states of one layer, float32 [row, position, dim]; rows are padded on the right."""
    ids, mask = model.padded(rows)
    output = model.all_states(input_ids=ids, attention_mask=mask)
    states = output.hidden_states
    if not -len(states) <= layer < len(states):
        raise UserError(
            f"{model.name} has no layer {layer}: choose 0 (the input embeddings) to "
            f"{len(states) - 1}, or -1 for the last."
        )
    # The last one as the head reads it: some families normalise it after the loop over layers.
    if layer in (-1, len(states) - 1):
        return host(output[0].float())
    return host(states[layer].float())
