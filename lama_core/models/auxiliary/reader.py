"""An extractive question-answering model: which words of some passages answer a question.

    score(span)  = start logit of its first token + end logit of its last
    log_prob     = score - log of the sum of exp(score) over the spans of all passages together

Only single words that are candidates are spans, as the LAMA paper restricts DrQA to single-token
answers; a word that stands in several places has the sum of its probabilities. Any folder or hub
name whose architecture transformers knows for question answering,
as safetensors.
Source: Chen et al. 2017, section 3.2; Petroni et al. 2019, section 4.3.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lama_core.errors import UserError
from lama_core.models.cache import CACHE
from lama_core.models.devices import Placed, device_of, host, one_device
from lama_core.models.sources.catalog import find_model
from lama_core.models.sources.locations import fetch
from lama_core.progress import OnProgress, silent

WORD = re.compile(r"\w+")
MAX_TOKENS = 384  # of a question and a passage


class SpanReader(Placed):
    """A question-answering model. name: as the user gave it. identity: digest of the weights."""

    def __init__(self, name: str, model: Any, tokenizer: Any, *, identity: str) -> None:
        self.name = name
        self.identity = identity
        self.model = model.eval()
        self.tokenizer = tokenizer

    @property
    def _window(self) -> int:
        """The most tokens of a question and a passage, with those that stand around them."""
        places = getattr(self.model.config, "max_position_embeddings", MAX_TOKENS + 2) - 2
        return min(MAX_TOKENS, places, self.tokenizer.model_max_length)

    def check_question(self, question: str) -> None:
        """Raise UserError for a question that leaves no room for a passage."""
        ids = self.tokenizer(question, add_special_tokens=False, verbose=False)["input_ids"]
        most = self._window - self.tokenizer.num_special_tokens_to_add(pair=True) - 1
        if len(ids) > most:
            raise UserError(
                f"The question has {len(ids):,} tokens for {self.name}, and at most {most:,} leave "
                "room for a passage: shorten it."
            )

    def find(
        self, question: str, passages: Sequence[str], column: Callable[[str], int | None]
    ) -> dict[int, float]:
        """The log-probability of each candidate that stands in a passage, by its column.

        column: of a word, None for one that is no candidate. Empty where no candidate is there.
        Raises UserError as `check_question` does.
        """
        if not passages:
            return {}
        self.check_question(question)
        encoded = self.tokenizer(
            [question] * len(passages),
            list(passages),
            truncation="only_second",
            max_length=self._window,
            padding=True,
            return_offsets_mapping=True,
            return_tensors="pt",
        )
        offsets = encoded.pop("offset_mapping").numpy()
        inputs = {name: value.to(device_of(self.model)) for name, value in encoded.items()}
        with torch.inference_mode():
            output = self.model(**inputs)
        starts = host(output.start_logits.float()).numpy()
        ends = host(output.end_logits.float()).numpy()
        scores: dict[int, list[float]] = {}
        for row, passage in enumerate(passages):
            own = np.array([one == 1 for one in encoded.sequence_ids(row)])
            for word in WORD.finditer(passage):
                found = column(word.group())
                span = None if found is None else _tokens(offsets[row], own, word.span())
                if found is not None and span is not None:
                    score = float(starts[row, span[0]]) + float(ends[row, span[1]])
                    scores.setdefault(found, []).append(score)
        if not scores:
            return {}
        total = np.logaddexp.reduce([score for own in scores.values() for score in own])
        return {found: float(np.logaddexp.reduce(own) - total) for found, own in scores.items()}


def _tokens(
    offsets: NDArray[np.int64], own: NDArray[np.bool_], span: tuple[int, int]
) -> tuple[int, int] | None:
    """The first and last token of a passage that lie in a span; None if it was cut off."""
    start, end = span
    inside = own & (offsets[:, 0] < end) & (offsets[:, 1] > start)
    found = np.flatnonzero(inside)
    return (int(found[0]), int(found[-1])) if len(found) else None


def load_reader(reference: str, *, on_progress: OnProgress = silent) -> SpanReader:
    """The question-answering model of that hub name or folder, kept with the other models.

    Raises UserError if it can't be had, or isn't one.
    """
    entry = find_model(reference)
    name = f"{entry.name} (reader)"
    device = one_device()

    def load() -> SpanReader:
        from transformers import AutoModelForQuestionAnswering

        from lama_core.models.registry import by_transformers

        located = fetch(entry, on_progress)
        model, tokenizer = by_transformers(
            name, located.folder, AutoModelForQuestionAnswering, "reader", "fp32"
        )
        return SpanReader(entry.name, model, tokenizer, identity=located.identity)

    found: SpanReader = CACHE.get(name, "fp32", load, device=device)
    return found
