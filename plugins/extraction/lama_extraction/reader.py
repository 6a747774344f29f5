"""An extractive question-answering model: it finds the answer to a question in passages.

    score(span)  = start logit of its first token + end logit of its last
    log_prob     = score - log of the sum of exp(score) over the spans of all passages together

Only spans of one word that is a candidate are scored, as the LAMA paper restricts DrQA to
single-token answers. If a word occurs several times, its probabilities are summed. Any folder or
hub name with a question-answering architecture of transformers and safetensors weights works.
Source: Chen et al. 2017, section 3.2; Petroni et al. 2019, section 4.3.

Departure: The reader
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lama_core.errors import UserError
from lama_core.models.cache import load_auxiliary
from lama_core.models.devices import HasDevice, device_of, to_cpu
from lama_core.models.hf.transformer import longest_text
from lama_core.models.registry import load_with_transformers
from lama_core.models.sources.catalog import Entry
from lama_core.models.sources.locations import LocatedModel
from lama_core.progress import OnProgress, ignore

WORD = re.compile(r"\w+")
MAX_TOKENS = 384  # of a question and a passage together


class SpanReader(HasDevice):
    """A question-answering model. name: the user's name for it. identity: digest of its weights."""

    def __init__(self, name: str, model: Any, tokenizer: Any, *, identity: str) -> None:
        self.name = name
        self.identity = identity
        self.model = model.eval()
        self.tokenizer = tokenizer

    @property
    def _window(self) -> int:
        """Maximum number of tokens of a question and a passage, special tokens included."""
        places = getattr(self.model.config, "max_position_embeddings", MAX_TOKENS + 2) - 2
        return min(MAX_TOKENS, places, longest_text(self.tokenizer))

    def check_question(self, question: str) -> None:
        """Raise UserError for a question that is too long to fit with a passage."""
        ids = self.tokenizer(question, add_special_tokens=False, verbose=False)["input_ids"]
        most = self._window - self.tokenizer.num_special_tokens_to_add(pair=True) - 1
        if len(ids) > most:
            raise UserError(
                f"The question has {len(ids):,} tokens; {self.name} takes at most {most:,}, to "
                "leave room for a passage. Shorten the question."
            )

    def find(
        self, question: str, passages: Sequence[str], column: Callable[[str], int | None]
    ) -> dict[int, float]:
        """Return column -> log-probability of the candidates that occur in a passage.

        Args:
            question: The question.
            passages: Texts that may contain the answer.
            column: Maps a word to its column; None if it isn't a candidate.

        Raises:
            UserError: If the question is too long.
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
        starts = to_cpu(output.start_logits.float()).numpy()
        ends = to_cpu(output.end_logits.float()).numpy()
        scores: dict[int, list[float]] = {}
        for row, passage in enumerate(passages):
            in_passage = np.array([part == 1 for part in encoded.sequence_ids(row)])
            for word in WORD.finditer(passage):
                found = column(word.group())
                span = None if found is None else _tokens(offsets[row], in_passage, word.span())
                if found is not None and span is not None:
                    score = float(starts[row, span[0]]) + float(ends[row, span[1]])
                    scores.setdefault(found, []).append(score)
        if not scores:
            return {}
        total = np.logaddexp.reduce([score for spans in scores.values() for score in spans])
        return {found: float(np.logaddexp.reduce(spans) - total) for found, spans in scores.items()}


def _tokens(
    offsets: NDArray[np.int64], in_passage: NDArray[np.bool_], span: tuple[int, int]
) -> tuple[int, int] | None:
    """Return the first and last token position of a passage's character span; None if cut off."""
    start, end = span
    inside = in_passage & (offsets[:, 0] < end) & (offsets[:, 1] > start)
    found = np.flatnonzero(inside)
    return (int(found[0]), int(found[-1])) if len(found) else None


def load_reader(reference: str, *, on_progress: OnProgress = ignore) -> SpanReader:
    """Return a question-answering model by hub name or folder; load it unless it is cached.

    Raises UserError if it is unavailable or not a question-answering model.
    """
    return load_auxiliary(reference, "reader", _read, on_progress)


def _read(entry: Entry, located: LocatedModel) -> SpanReader:
    from transformers import AutoModelForQuestionAnswering

    model, tokenizer = load_with_transformers(
        f"{entry.name} (reader)",
        located.folder,
        AutoModelForQuestionAnswering,
        "question-answering model",
        "fp32",
    )
    return SpanReader(entry.name, model, tokenizer, identity=located.identity)
