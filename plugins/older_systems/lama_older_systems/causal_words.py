"""Common parts of Transformer-XL and fconv: causal models of whole words with adaptive softmax.

The first softmax is over the most frequent words and the clusters of rarer words; each cluster has
a softmax over its words:

    log P(word) = log P(cluster) + log P(word | cluster)

Source: Grave et al. 2017, Efficient softmax approximation for GPUs.
"""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from lama_core.models.hf.causal import CausalModel
from lama_older_systems.converted import LOGITS


def joined(head: torch.Tensor, tails: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return log-probabilities of all words from logits, float32 [..., word].

    head: logits of the frequent words, then of the clusters. tails: logits of each cluster's words.
    """
    first = torch.log_softmax(head.float(), dim=-1)
    n_words = head.shape[-1] - len(tails)
    parts = [
        torch.log_softmax(tail.float(), dim=-1) + first[..., place : place + 1]
        for place, tail in enumerate(tails, start=n_words)
    ]
    return torch.cat([first[..., :n_words], *parts], dim=-1)


class AdaptiveSoftmaxNetwork(nn.Module):
    """A network with an adaptive softmax. body: its layers; `body.embedding` embeds the words."""

    body: nn.Module

    def __init__(self, config: SimpleNamespace) -> None:
        super().__init__()
        if config.cutoffs[-1] != config.vocab_size:
            raise ValueError("the last cluster doesn't end with the vocabulary")
        self.config = config

    @property
    def base_model(self) -> nn.Module:
        return self.body

    def get_input_embeddings(self) -> Any:
        return self.body.embedding

    def get_output_embeddings(self) -> None:
        """Return None: the output weights are in clusters."""


class CausalWordModel(CausalModel):
    """A causal model of whole words; it can't continue from a cached prefix."""

    caches = False
    logits_of_texts = LOGITS

    @property
    def tokens_per_pass(self) -> int:
        """Maximum number of tokens per pass, limited by the size of a layer's activations."""
        return max(1, min(super().tokens_per_pass, LOGITS // self.model.activations_per_token))

    def input_vectors(self, ids: Sequence[int]) -> torch.Tensor:
        rows = torch.tensor(list(ids), dtype=torch.int64, device=self.device)
        with torch.inference_mode():
            return self.model.get_input_embeddings()(rows)
