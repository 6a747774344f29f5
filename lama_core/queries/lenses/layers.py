"""Lens layers: the answer after each layer, and the ranks of some answers (the logit lens).

`models.hf.inspection` has the formulas.
"""

from collections.abc import Iterator
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

from lama_core.candidates.spelling import places_of
from lama_core.models.protocols import LayerReader
from lama_core.queries.blank_answers import gold_answers
from lama_core.queries.lenses.lens import (
    Inspection,
    Lens,
    LensRequest,
    LensResult,
)
from lama_core.rounding import fixed
from lama_core.scoring import shared_fields
from lama_core.scoring.ranking import best_candidates, rank_gold
from lama_core.tables import Table, table_of


@dataclass(frozen=True, kw_only=True)
class LayerRequest(LensRequest, shared_fields.CandidateSettings):
    """The fields of lens layers."""

    top_k: shared_fields.TopK = 5
    gold: shared_fields.Gold = None


@dataclass(frozen=True, slots=True)
class FollowedWord:
    """A word tracked through the layers, starting with the embeddings.

    Attributes:
        word: The word.
        is_gold: Whether it is the gold answer; else it is one of the last layer's best answers.
        ranks: Its rank after each layer; a word outside the candidates has the rank that it would
            have as a candidate.
        log_probs: Its natural log-probability after each layer, over the whole vocabulary.
    """

    word: str
    is_gold: bool
    ranks: tuple[int, ...]
    log_probs: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class LayerAnswer:
    """A model's first answer after a layer; number: 0 for the embeddings."""

    number: int
    first: str
    log_prob: float

    @property
    def title(self) -> str:
        """The layer as shown to users."""
        return str(self.number) if self.number else "embeddings"


@dataclass(frozen=True, slots=True)
class ModelLayers(LensResult):
    """One model's answers after each layer; words: The last layer's best, then the gold answer."""

    layers: tuple[LayerAnswer, ...]
    words: tuple[FollowedWord, ...]
    n_candidates: int
    candidates: str

    def to_json(self) -> dict[str, Any]:
        return {
            "layers": [
                {"layer": one.number, "first": one.first, "log_prob": one.log_prob}
                for one in self.layers
            ],
            "words": [
                dict(zip(("word", "gold", "ranks", "log_probs"), astuple(one), strict=True))
                for one in self.words
            ],
        }

    def rows(self) -> list[dict[str, Any]]:
        return [
            {
                "model": self.name,
                "layer": number,
                "word": word.word,
                "gold": word.is_gold,
                "rank": word.ranks[number],
                "log_prob": word.log_probs[number],
                "first": layer.first,
            }
            for number, layer in enumerate(self.layers)
            for word in self.words
        ]

    def text(self) -> Iterator[Table | str]:
        rows = [
            (
                layer.title,
                layer.first,
                fixed(layer.log_prob, 2),
                *(f"{word.ranks[layer.number]:,}" for word in self.words),
            )
            for layer in reversed(self.layers)
        ]
        heads = [f"rank of {word.word}" + " (gold)" * word.is_gold for word in self.words]
        title = f"{self.name}: {self.n_candidates:,} candidates ({self.candidates}){self.computed}"
        yield table_of(("layer", "first answer", "log-prob", *heads), rows, title=title)


def read_layers(inspection: Inspection[LayerRequest]) -> ModelLayers:
    """Return the first answer after each layer, and the ranks of some answers after each layer.

    These are the last layer's `top_k` best answers and the first blank's gold answer.

    Raises:
        UserError: If the text is too long, or the model can't write the gold answer.
    """
    model: LayerReader = inspection.model
    encoded, columns, request = inspection.encoded, inspection.columns, inspection.request
    word = gold_answers(request.gold, inspection.query.n_blanks)[0]
    forms, note = inspection.tokens_of(word) if word else ((), "")
    scores = model.layer_log_probs(encoded, columns, [forms] if forms else [])
    log_probs = scores.log_probs
    best = best_candidates(log_probs, 1)
    firsts = zip(best.columns[:, 0].tolist(), best.log_probs[:, 0].tolist(), strict=True)
    layers = tuple(
        LayerAnswer(number, columns.words[column], value)
        for number, (column, value) in enumerate(firsts)
    )
    n_tracked = min(request.top_k, len(columns.words))
    tracked = best_candidates(log_probs[-1:], n_tracked).columns[0].tolist()
    gold_column = columns.find(word, places_of(inspection.query)[0]) if word else None
    if isinstance(gold_column, int) and gold_column not in tracked:
        tracked.append(gold_column)
    words = [
        FollowedWord(
            word if column == gold_column and word else columns.words[column],
            column == gold_column,
            tuple(rank_gold(log_probs, np.full(len(log_probs), column)).raw.tolist()),
            tuple(log_probs[:, column].tolist()),
        )
        for column in tracked
    ]
    if word and not isinstance(gold_column, int):
        of_word = scores.words[:, 0]
        ranks = (1 + np.count_nonzero(log_probs > of_word[:, None], axis=1)).tolist()
        words.append(FollowedWord(word, True, tuple(ranks), tuple(of_word.tolist())))
    return ModelLayers(
        layers=layers,
        words=tuple(words),
        n_candidates=len(columns.words),
        candidates=request.candidates,
        **inspection.about(note),
    )


LENS = Lens(
    name="layers",
    title="Layers",
    about="the answer after each layer, and the ranks of the last layer's answers",
    rows="a row for each model, layer (0: the embeddings) and tracked word (the last layer's "
    "predictions and the gold answer)",
    caption="A layer's answer comes from its hidden state at the blank, passed through the model's "
    "LM head; the last layer's is the model's answer. Ranks are among the candidates; the bluer a "
    "cell, the closer to rank 1. Log-probabilities are over the model's whole vocabulary.",
    options=LayerRequest,
    requires=LayerReader,
    compute=read_layers,
)
