"""Translation models: any sequence-to-sequence model, by hub name or folder.

Only safetensors weights are supported.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from lama_core.errors import UserError
from lama_core.models.devices import device_of, one_device


@dataclass(frozen=True, slots=True)
class Translation:
    """A translation. log_prob: natural log of its probability given the source."""

    text: str
    log_prob: float


class Translator(Protocol):
    """A model that returns several translations of a text."""

    def translate(self, texts: Sequence[str], n: int) -> list[tuple[Translation, ...]]:
        """Return the n best translations of each text, best first."""


class HubTranslator:
    """A translation model from the hub or a folder (Marian, FSMT, M2M100, ...)."""

    def __init__(self, name: str) -> None:
        """Load the model; raise UserError if it is unavailable or not a translation model."""
        from transformers import AutoModelForSeq2SeqLM, AutoTokenizer
        from transformers.utils import logging

        logging.disable_progress_bar()
        place: Any = Path(name).expanduser()
        place = place if place.is_dir() else name
        try:
            self._tokenizer: Any = AutoTokenizer.from_pretrained(place, trust_remote_code=False)
            self._model: Any = AutoModelForSeq2SeqLM.from_pretrained(
                place, use_safetensors=True, trust_remote_code=False
            )
        except (OSError, ValueError, ImportError, KeyError, TypeError, RuntimeError) as error:
            first = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise UserError(
                f"Can't load the translation model {name!r}: {first} Give a translation model "
                "with safetensors weights, or use `--by refill`, which needs no such model."
            ) from error
        self._model = self._model.eval().to(one_device())

    def translate(self, texts: Sequence[str], n: int) -> list[tuple[Translation, ...]]:
        import torch

        inputs = self._tokenizer(list(texts), return_tensors="pt", padding=True)
        inputs = inputs.to(device_of(self._model))
        with torch.inference_mode():
            output = self._model.generate(
                **inputs,
                num_beams=n,
                num_return_sequences=n,
                do_sample=False,
                length_penalty=0.0,  # the plain log-probability
                max_new_tokens=64,
                return_dict_in_generate=True,
                output_scores=True,
            )
        found = self._tokenizer.batch_decode(output.sequences, skip_special_tokens=True)
        scores = [0.0] * len(found) if n == 1 else output.sequences_scores.tolist()
        translations = [Translation(text, score) for text, score in zip(found, scores, strict=True)]
        return [tuple(translations[n * at : n * (at + 1)]) for at in range(len(texts))]
