"""Lens trace: which hidden states bring the answer back when the subject is corrupted.

`models.hf.tracing` has the formulas. The answer's probability is read at the last token before the
blank for a causal model, as in the paper, and at the blank for a masked model.
Departure: Causal tracing
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from lama_core.errors import UserError
from lama_core.models.protocols import BLANK, PartReader, TracedPart
from lama_core.progress import Progress
from lama_core.queries.lenses.lens import (
    AnswerRequest,
    Inspection,
    Lens,
    LensResult,
)
from lama_core.requests import option
from lama_core.rounding import fixed
from lama_core.tables import Table, table_of

DRAWS, MAX_DRAWS, SEED = 10, 100, 1  # the draws and the seed are those of the paper's code
Restore = Annotated[
    TracedPart,
    option(
        "Tracing: restore at one token the state after a layer, or the outputs of attention or "
        "MLPs in a window of layers."
    ),
]
Window = Annotated[
    int | None,
    option(
        "Tracing attention or mlp: number of layers that are restored together. Default: 10 of a "
        "model's 48 layers, as in the paper, and in proportion 1 of 6 or 6 of 30.",
        ge=1,
    ),
]
Draws = Annotated[int, option("Tracing: number of draws of noise.", ge=1, le=MAX_DRAWS)]
Seed = Annotated[int, option("Tracing: seed of the noise.", ge=0, le=2**32 - 1)]


@dataclass(frozen=True, kw_only=True)
class TracedRequest(AnswerRequest):
    """The fields of lens trace."""

    subject: Annotated[
        str | None, option("Lens trace: the words of the text to corrupt with noise.")
    ] = None
    restore: Restore = "states"
    window: Window = None
    draws: Draws = DRAWS
    seed: Seed = SEED


def check_window(window: int | None, restore: TracedPart) -> None:
    """Raise UserError for a window of states."""
    if window is not None and restore == "states":
        raise UserError("--window needs --restore attention or mlp: states have no window.")


def _check(request: TracedRequest) -> None:
    if not (request.subject or "").strip():
        raise UserError("--lens trace needs --subject: the words of the text to corrupt.")
    check_window(request.window, request.restore)


@dataclass(frozen=True, slots=True)
class ModelTrace(LensResult):
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

    @property
    def read_at(self) -> int:
        """Index of the token at which the probability is read: the blank, or the last token."""
        return self.tokens.index(BLANK) if BLANK in self.tokens else len(self.tokens) - 1

    def best(self) -> tuple[float, int, int] | None:
        """Return the largest restored probability with its layer and token; None without any.

        Not that at `read_at`, where the last layer always brings back the whole probability.
        """
        cells = (
            (value, layer, token)
            for layer, values in enumerate(self.restored, start=1)
            for token, value in enumerate(values)
            if value is not None and token != self.read_at
        )
        return max(cells, key=lambda cell: (cell[0], -cell[1]), default=None)

    def to_json(self) -> dict[str, Any]:
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

    def text(self) -> Iterator[Table | str]:
        rows = [
            (layer, *("" if value is None else fixed(value, 3) for value in values))
            for layer, values in reversed(list(enumerate(self.restored, start=1)))
        ]
        heads = [
            f"*{token}" if inside else token
            for token, inside in zip(self.tokens, self.in_subject, strict=True)
        ]
        title = (
            f"{self.name}: prob of {self.answer} {fixed(self.prob, 3)}, "
            f"{fixed(self.corrupted, 3)} with noise on {self.subject}"
        )
        yield table_of(("layer", *heads), rows, title=title + self.computed)
        what = "the state after one layer"
        if self.restore != "states":
            named = {"attention": "attention", "mlp": "the MLP"}[self.restore]
            what = f"the output of {named} in {self.window} layers around the row's"
        yield (
            f"Cells: the probability with noise and {what} restored at one token, mean over "
            f"{self.draws} draws (seed {self.seed}). *: the subject's tokens."
        )
        if best := self.best():
            value, layer, token = best
            yield (
                f"Largest, apart from the blank's position: {fixed(value, 3)}, layer {layer}, "
                f"token {self.tokens[token]}."
            )


def trace_answer(inspection: Inspection[TracedRequest]) -> ModelTrace:
    """Return the trace of one model's answer.

    Raises:
        UserError: If the model's family isn't supported, the text that the model sees doesn't
            contain the subject, or the model can't write the answer.
    """
    model: PartReader = inspection.model
    encoded, request = inspection.encoded, inspection.request
    subject = " ".join((request.subject or "").split())
    at = model.find_tokens(inspection.query, encoded, subject)
    answer, forms, note = inspection.choose_answer(request.answer)
    found = model.trace(
        encoded,
        at,
        forms,
        part=request.restore,
        window=request.window,
        draws=request.draws,
        seed=request.seed,
        until=inspection.limits.until(),
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
    reached = ""
    if n_done < n_cells:
        reached = f"Time limit reached: {n_done:,} of {n_cells:,} restorations were computed."
    elif found.draws < request.draws:
        reached = (
            f"Time limit reached: {found.draws} of {request.draws} draws of noise were computed."
        )
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
        **inspection.about(reached, note),
    )


LENS = Lens(
    name="trace",
    title="Causal trace",
    about="which hidden states bring the answer back when the subject is corrupted",
    rows="a row for each model, layer and token; prob: the answer's probability with a corrupted "
    "subject and the part restored; effect: prob minus the probability without restoration",
    caption="Effect: by how much the answer's probability rises if one layer (column) at one token "
    "(row) gets back its value without noise; the mean over the draws of noise. * marks the "
    "subject's tokens.",
    options=TracedRequest,
    requires=PartReader,
    compute=trace_answer,
    check=_check,
)
