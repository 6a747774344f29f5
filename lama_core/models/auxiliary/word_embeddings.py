"""Embeddings of words in context: one layer's hidden states, pooled over each word's tokens.

Source: Rezaee and Camacho-Collados, section 2.4, which doesn't specify the layer and the pooling.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from lama_core.errors import UserError
from lama_core.models.devices import to_cpu
from lama_core.models.hf.transformer import Transformer
from lama_core.models.protocols import Pooling, Statement
from lama_core.models.vocabulary import TokenVocabulary


def hidden_states(
    model: Transformer,
    texts: Sequence[str],
    spans: Sequence[Sequence[tuple[int, int]]],
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
    before, after = model.vocabulary.frame
    pairs = [(text, span) for text, words in zip(texts, spans, strict=True) for span in words]
    read = iter(model.vocabulary.read([Statement(text, *span) for text, span in pairs]))
    marked = [[next(read) for _ in words] for words in spans]
    rows = [[*before, *words[0].ids, *after] for words in marked]
    for row in rows:
        model.check_window(len(row))
    # The token positions of each text's words.
    pieces = [
        [(np.flatnonzero(word.marked) + len(before)).tolist() for word in words] for words in marked
    ]
    if not all(map(all, pieces)):
        raise UserError(f"A word without letters has no token of {model.name}. Remove that word.")
    pool: Callable[[torch.Tensor], torch.Tensor] = {
        "mean": lambda states: states.mean(0),
        "first": lambda states: states[0],
        "last": lambda states: states[-1],
    }[pooling]

    def run(some: Sequence[int]) -> dict[int, NDArray[np.float32]]:
        ids, mask = model.padded([rows[number] for number in some])
        output = model.all_states(input_ids=ids, attention_mask=mask)
        states = output.hidden_states
        if not -len(states) <= layer < len(states):
            raise UserError(
                f"{model.name} has no layer {layer}: choose 0 (the input embeddings) to "
                f"{len(states) - 1}, or -1 for the last."
            )
        # For the last layer, output[0] is the input of the head: some families normalise it.
        of_layer = output[0] if layer in (-1, len(states) - 1) else states[layer]
        chosen = to_cpu(of_layer.float())  # padding is on the right
        return {
            number: np.stack([pool(chosen[row, at]).numpy() for at in pieces[number]])
            for row, number in enumerate(some)
        }

    found = model.longest_first(run, [len(row) for row in rows])
    return np.stack(found) if found else np.zeros((0, 0, 0), np.float32)
