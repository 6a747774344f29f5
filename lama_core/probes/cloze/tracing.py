"""Lens trace: which hidden states bring the answer back when the subject is corrupted.

`models.hf.tracing` has the formulas. The answer's probability is read at the last token before the
blank for a causal model, as in the paper, and at the blank for a masked model.
Departure: Causal tracing
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from lama_core.candidates.columns import Columns
from lama_core.models.protocols import BLANK, PartReader, TracedPart
from lama_core.probes.cloze.inspection import (
    InspectRequest,
    choose_answer,
    encode_first_blank,
)
from lama_core.probes.model_info import AboutModel, model_fields
from lama_core.progress import Progress
from lama_core.scoring.limits import UNLIMITED, Limits
from lama_core.types import Query


@dataclass(frozen=True, slots=True)
class ModelTrace(AboutModel):
    """The probability of one model's answer with a corrupted subject, for each restoration.

    Attributes:
        answer: The answer.
        subject: The words that were corrupted.
        restore: What was restored at one token (see `TracedPart`).
        window: Number of layers that were restored together.
        draws: Number of draws of noise.
        seed: Seed of the noise.
        noise: Standard deviation of the noise.
        prob: Probability of the answer without noise.
        corrupted: Probability of the answer with noise, mean over the draws.
        tokens: All tokens that the model sees, special tokens included.
        in_subject: Whether each token belongs to the subject.
        restored: Probability with noise and the restoration, per layer (the first is layer 1) and
            token, mean over the draws; None if the time limit was reached before.
        notes: Notes for users.
    """

    answer: str
    subject: str
    restore: TracedPart
    window: int
    draws: int
    seed: int
    noise: float
    prob: float
    corrupted: float
    tokens: tuple[str, ...]
    in_subject: tuple[bool, ...]
    restored: tuple[tuple[float | None, ...], ...]
    notes: tuple[str, ...]

    def best(self) -> tuple[float, int, int] | None:
        """Return the largest restored probability with its layer and token; None without any."""
        cells = (
            (value, layer, token)
            for layer, values in enumerate(self.restored, start=1)
            for token, value in enumerate(values)
            if value is not None
        )
        return max(cells, key=lambda cell: (cell[0], -cell[1]), default=None)

    def to_json(self) -> dict[str, Any]:
        """Return what `inspect --lens trace --json` prints of a model."""
        settings = ("answer", "subject", "restore", "window", "draws", "seed", "noise")
        return {
            **{name: getattr(self, name) for name in (*settings, "prob", "corrupted")},
            "tokens": [
                {"token": token, "subject": inside}
                for token, inside in zip(self.tokens, self.in_subject, strict=True)
            ],
            "layers": [
                {"layer": layer, "probs": list(values)}
                for layer, values in enumerate(self.restored, start=1)
            ],
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return a row per layer and token; effect: the indirect effect, prob - corrupted."""
        return [
            {
                "model": self.name,
                "answer": self.answer,
                "restore": self.restore,
                "layer": layer,
                "position": position,
                "token": self.tokens[position - 1],
                "subject": self.in_subject[position - 1],
                "prob": value,
                "effect": None if value is None else value - self.corrupted,
                "clean": self.prob,
                "corrupted": self.corrupted,
            }
            for layer, values in enumerate(self.restored, start=1)
            for position, value in enumerate(values, start=1)
        ]


def trace_answer(
    model: PartReader,
    query: Query,
    columns: Columns,
    request: InspectRequest,
    limits: Limits = UNLIMITED,
) -> ModelTrace:
    """Return the trace of one model's answer.

    Raises:
        UserError: If the model's family isn't supported, the text that the model sees doesn't
            contain the subject, or the model can't write the answer.
    """
    encoded, notes = encode_first_blank(model, query, limits)
    subject = " ".join((request.subject or "").split())
    at = model.find_tokens(query, encoded, subject)
    answer, forms, note = choose_answer(model, encoded, columns, request.answer)
    found = model.trace(
        encoded,
        at,
        forms,
        part=request.restore,
        window=request.window,
        draws=request.draws,
        seed=request.seed,
        until=limits.until(),
        tick=lambda done, total: request.on_progress(
            Progress(f"Tracing {model.name}", done, total, "passes")
        ),
    )
    ids = list(encoded.token_ids)
    tokens = model.vocabulary.show_text(ids)
    if model.kind == "masked":
        blank = ids[encoded.positions[0]]
        tokens = tuple(
            BLANK if number == blank else token for number, token in zip(ids, tokens, strict=True)
        )
    n_done, n_cells = int(np.isfinite(found.restored).sum()), found.restored.size
    if n_done < n_cells:
        reached = f"{n_done:,} of {n_cells:,} restorations were computed."
        notes = (*notes, f"Time limit reached: {reached}")
    elif found.draws < request.draws:
        reached = f"{found.draws} of {request.draws} draws of noise were computed."
        notes = (*notes, f"Time limit reached: {reached}")
    return ModelTrace(
        answer=answer,
        subject=subject,
        restore=request.restore,
        window=found.window,
        draws=found.draws,
        seed=request.seed,
        noise=found.noise,
        prob=found.prob,
        corrupted=found.corrupted,
        tokens=tokens,
        in_subject=tuple(position in at for position in range(len(ids))),
        restored=tuple(
            tuple(None if np.isnan(value) else float(value) for value in row)
            for row in found.restored
        ),
        notes=tuple(filter(None, (*notes, note))),
        **model_fields(model),
    )
