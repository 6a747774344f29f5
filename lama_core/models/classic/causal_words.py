"""What Transformer-XL and fconv share: a left-to-right model of whole words, asked as any other.

Their output is an adaptive softmax: the likeliest words and one entry for each cluster of rarer
ones together, and within each cluster a softmax of its own, so that

    log P(word) = log P(cluster) + log P(word | cluster).

Source: Grave et al. 2017, Efficient softmax approximation for GPUs.
"""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from lama_core.models.classic.converted import LOGITS
from lama_core.models.hf.causal import CausalModel


def joined(head: torch.Tensor, tails: Sequence[torch.Tensor]) -> torch.Tensor:
    """Log-probabilities of all words, float32 [..., word], from logits.

    head: of the first words, and of the clusters behind them. tails: of the words of each cluster.
    """
    first = torch.log_softmax(head.float(), dim=-1)
    n_words = head.shape[-1] - len(tails)
    parts = [
        torch.log_softmax(tail.float(), dim=-1) + first[..., place : place + 1]
        for place, tail in enumerate(tails, start=n_words)
    ]
    return torch.cat([first[..., :n_words], *parts], dim=-1)


class WordsNetwork(nn.Module):
    """A network with an adaptive softmax. body: its layers, with the words' `embedding`."""

    body: nn.Module

    def __init__(self, config: SimpleNamespace) -> None:
        super().__init__()
        self.config = config

    @property
    def base_model(self) -> nn.Module:
        return self.body

    def get_input_embeddings(self) -> Any:
        return self.body.embedding

    def get_output_embeddings(self) -> None:
        """None: the output is in clusters."""

    def embed(self, ids: torch.Tensor) -> torch.Tensor:
        """Input embeddings [..., dim] of ids [...]."""
        found: torch.Tensor = self.get_input_embeddings()(ids)
        return found


class WordsLeftToRight(CausalModel):
    """A left-to-right model of whole words. It keeps nothing of a beginning."""

    caches = False
    logits_of_texts = LOGITS

    @property
    def tokens_per_pass(self) -> int:
        """How many tokens go through it together: no more than its layers have room for."""
        return max(1, min(super().tokens_per_pass, LOGITS // self.model.numbers_a_token))

    def input_vectors(self, ids: Sequence[int]) -> torch.Tensor:
        with torch.inference_mode():
            return self.model.embed(torch.tensor(list(ids), dtype=torch.int64, device=self.device))
