"""Paraphrases by translating a prompt there and back again.

    rank by   log P(there | prompt) + log P(back | there)

B candidates each way, so B^2 in all; the same text reached twice counts with its best round trip.
What lost a placeholder on the way, or came back as a prompt that is there already, is dropped and
counted. Source: Jiang et al. 2020, section 3.2 (English - German - English, B = 7).

The two models are any sequence-to-sequence models that translate, by hub name or folder; only
safetensors weights are read.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from lama_core.datasets.prompt_sets import normalise_template
from lama_core.datasets.templates import template_fault
from lama_core.errors import UserError

N_BEAMS = 7
N_KEPT = 40
MAX_NEW_TOKENS = 64
PLACEHOLDER = re.compile(r"\[\s*([XYxy])\s*\]")


@dataclass(frozen=True, slots=True)
class Translation:
    """One translation. log_prob: natural logarithm of its probability given the source."""

    text: str
    log_prob: float


@dataclass(frozen=True, slots=True)
class Paraphrase:
    """A paraphrase of a template. log_prob: by which they are ranked. via: the way it took."""

    template: str
    log_prob: float
    via: str


@dataclass(frozen=True)
class Paraphrases:
    """What paraphrasing gave, best first. n_dropped: what lost a placeholder or was no new text."""

    kept: tuple[Paraphrase, ...]
    n_tried: int
    n_dropped: int


class Translator(Protocol):
    """Translates texts, several ways each."""

    def translate(self, texts: Sequence[str], n: int) -> list[tuple[Translation, ...]]:
        """The n best translations of each text, best first."""
        ...


class HubTranslator:
    """A translation model of the hub or of a folder (Marian, FSMT, M2M100, ...)."""

    def __init__(self, name: str) -> None:
        """Load the model. Raises UserError if it isn't there, or is no translation model."""
        from transformers import AutoModelForSeq2SeqLM, AutoTokenizer
        from transformers.utils import logging

        logging.disable_progress_bar()
        place: Any = Path(name).expanduser()
        place = place if place.is_dir() else name
        try:
            self._tokenizer: Any = AutoTokenizer.from_pretrained(place, trust_remote_code=False)
            self._model: Any = AutoModelForSeq2SeqLM.from_pretrained(
                place, use_safetensors=True, trust_remote_code=False
            ).eval()
        except (OSError, ValueError, ImportError, KeyError, TypeError, RuntimeError) as error:
            first = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise UserError(
                f"The translation model {name!r} can't be had: {first} Give the hub name or the "
                "folder of a translation model with safetensors weights; `--by refill` needs none."
            ) from error

    def translate(self, texts: Sequence[str], n: int) -> list[tuple[Translation, ...]]:
        """The n best translations of each text by beam search with n beams, best first."""
        import torch

        inputs = self._tokenizer(list(texts), return_tensors="pt", padding=True)
        with torch.inference_mode():
            output = self._model.generate(
                **inputs,
                num_beams=n,
                num_return_sequences=n,
                do_sample=False,
                length_penalty=0.0,  # the plain log-probability
                max_new_tokens=MAX_NEW_TOKENS,
                return_dict_in_generate=True,
                output_scores=True,
            )
        found = self._tokenizer.batch_decode(output.sequences, skip_special_tokens=True)
        scores = [0.0] * len(found) if n == 1 else output.sequences_scores.tolist()
        translations = [Translation(text, score) for text, score in zip(found, scores, strict=True)]
        return [tuple(translations[n * at : n * (at + 1)]) for at in range(len(texts))]


def paraphrase_by_translation(
    template: str,
    there: Translator,
    back: Translator,
    *,
    n_beams: int = N_BEAMS,
    n_kept: int = N_KEPT,
) -> Paraphrases:
    """Paraphrases of a template, ranked by the probability of the round trip.

    Raises UserError for a template without [X] or [Y].
    """
    fault = template_fault(template)
    if fault:
        raise UserError(f"{fault[0].upper()}{fault[1:]}.")
    middle = there.translate([template], n_beams)[0]
    returned = back.translate([one.text for one in middle], n_beams)
    best: dict[str, Paraphrase] = {}
    n_dropped = 0
    itself = normalise_template(template)
    for first, seconds in zip(middle, returned, strict=True):
        for second in seconds:
            text = repair_placeholders(second.text)
            key = normalise_template(text)
            if template_fault(text) or key == itself:
                n_dropped += 1
                continue
            found = Paraphrase(text, first.log_prob + second.log_prob, first.text)
            if key not in best or found.log_prob > best[key].log_prob:
                best[key] = found
    ranked = sorted(best.values(), key=lambda one: -one.log_prob)
    n_tried = sum(len(seconds) for seconds in returned)
    return Paraphrases(tuple(ranked[:n_kept]), n_tried, n_dropped)


def repair_placeholders(text: str) -> str:
    """`[ x ]` and the like, as translators write them, as `[X]`."""
    return PLACEHOLDER.sub(lambda match: f"[{match.group(1).upper()}]", " ".join(text.split()))
