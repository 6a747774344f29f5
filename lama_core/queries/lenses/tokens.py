"""Lens tokens: how much each token of the text adds to the answer's log-probability.

`models.hf.inspection` has the formulas.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np

from lama_core.models.protocols import BLANK, MAX_ERROR_SHARE, MAX_POINTS, MIN_ERROR, Attributor
from lama_core.queries.lenses.lens import (
    AnswerRequest,
    Inspection,
    Lens,
    LensResult,
)
from lama_core.requests import option
from lama_core.rounding import fixed, percent
from lama_core.tables import Table, table_of

AttributionMethod = Literal["erasure", "gradients"]
ATTRIBUTION_METHODS: tuple[AttributionMethod, ...] = ("erasure", "gradients")
FEWEST_STEPS, MAX_STEPS = 8, 5000
AS_NEEDED = (
    f"as many as needed for a completeness error of {MAX_ERROR_SHARE:.0%}, at most {MAX_POINTS:,}"
)


@dataclass(frozen=True, kw_only=True)
class AttributionRequest(AnswerRequest):
    """The fields of lens tokens."""

    method: Annotated[
        AttributionMethod,
        option(
            "Lens tokens: erasure (the token is masked or removed), or gradients (integrated "
            "gradients, with the completeness error of their sum)."
        ),
    ] = "erasure"
    steps: Annotated[
        int | None,
        option(
            f"Method gradients: the number of points of the integral. Default: {AS_NEEDED}.",
            ge=FEWEST_STEPS,
            le=MAX_STEPS,
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class ModelAttribution(LensResult):
    """How much each token of a text adds to one model's log-probability of one word.

    Attributes:
        method: The attribution method.
        word: The word.
        tokens: The tokens of the text.
        values: Contribution of each token, natural log; None for a blank, and for tokens that were
            not reached within the time limit.
        log_prob: Log-probability of the word given the text.
        baseline: Gradients only: log-probability with every token hidden.
        steps: Gradients only: number of points of the integral.
        asked: Gradients only: whether the request sets the number of points.
    """

    method: AttributionMethod
    word: str
    tokens: tuple[str, ...]
    values: tuple[float | None, ...]
    log_prob: float
    baseline: float | None
    steps: int | None
    asked: bool

    @property
    def total(self) -> float:
        """The sum of the tokens' contributions."""
        return sum(filter(None, self.values))

    @property
    def gap(self) -> float | None:
        """`total` minus (`log_prob` minus `baseline`); None without a baseline."""
        return None if self.baseline is None else self.total - (self.log_prob - self.baseline)

    @property
    def completeness_error(self) -> float | None:
        """The gap, relative to `log_prob` minus `baseline`; 0 is exact. None without a baseline.

        Infinite if the log-probability equals that of the baseline.
        Source: Sundararajan et al. 2017, proposition 1 (completeness) and section 5.
        """
        if self.baseline is None or self.gap is None:
            return None
        difference = abs(self.log_prob - self.baseline)
        return abs(self.gap) / difference if difference else math.inf

    def completeness(self) -> str:
        """Return the completeness check of integrated gradients as text; empty for erasure."""
        if self.baseline is None or self.gap is None or self.completeness_error is None:
            return ""
        difference = self.log_prob - self.baseline
        relative = self.completeness_error
        share = f" ({percent(relative)} %)" if math.isfinite(relative) else ""
        text = (
            f"Completeness error: with {self.steps:,} steps, the tokens' values sum to "
            f"{fixed(self.total, 3, signed=True)} instead of {fixed(difference, 3, signed=True)}: "
            f"off by {fixed(abs(self.gap), 3)}{share}. The log-probability is "
            f"{fixed(self.log_prob, 3)}, and {fixed(self.baseline, 3)} with every token hidden."
        )
        if abs(self.gap) <= max(MAX_ERROR_SHARE * abs(difference), MIN_ERROR):
            return text
        stayed = f"The error stayed above {MAX_ERROR_SHARE:.0%} at the limit of steps or time."
        return f"{text} {'More steps reduce the error.' if self.asked else stayed}"

    def to_json(self) -> dict[str, Any]:
        error = self.completeness_error
        sums = {
            "baseline": self.baseline,
            "sum": self.total,
            "gap": self.gap,
            "completeness_error": None if error is None or math.isinf(error) else error,
            "steps": self.steps,
        }
        found = {
            "method": self.method,
            "word": self.word,
            "log_prob": self.log_prob,
            **(sums if self.baseline is not None else {}),
            "tokens": [
                dict(zip(("token", "value"), one, strict=True))
                for one in zip(self.tokens, self.values, strict=True)
            ],
        }
        return {"attribution": found}

    def rows(self) -> list[dict[str, Any]]:
        return [
            {
                "model": self.name,
                "method": self.method,
                "word": self.word,
                "position": position,
                "token": token,
                "value": value,
                "log_prob": self.log_prob,
                "baseline": self.baseline,
                "steps": self.steps,
                "completeness_error": self.completeness_error,
            }
            for position, (token, value) in enumerate(
                zip(self.tokens, self.values, strict=True), start=1
            )
        ]

    def text(self) -> Iterator[Table | str]:
        rows = [
            (token, "" if value is None else fixed(value, 3, signed=True))
            for token, value in zip(self.tokens, self.values, strict=True)
        ]
        title = f"{self.name}: {self.method}, log-prob of {self.word}: {fixed(self.log_prob, 3)}"
        yield table_of(("token", "adds to log-prob"), rows, title=title + self.computed)

    def remarks(self) -> tuple[str, ...]:
        return tuple(filter(None, (*self.notes, self.completeness())))


def attribute(inspection: Inspection[AttributionRequest]) -> ModelAttribution:
    """Return how much each token adds to the log-probability of a word at the first blank.

    The word is the request's answer, or else the model's first answer.

    Raises:
        UserError: If the model can't write the word, or the text is too long.
    """
    model: Attributor = inspection.model
    encoded, request = inspection.encoded, inspection.request
    word, forms, note = inspection.choose_answer(request.answer)
    until = inspection.limits.until()
    if request.method == "erasure":
        found = model.erased(encoded, forms, until=until)
    else:
        found = model.integrated_gradients(encoded, forms, steps=request.steps, until=until)
    values = tuple(None if np.isnan(value) else float(value) for value in found.values)
    of_text = [value for token, value in zip(found.tokens, values, strict=True) if token != BLANK]
    n_tried = sum(value is not None for value in of_text)
    reached = ""
    if n_tried < len(of_text):
        reached = f"Time limit reached: {n_tried} of {len(of_text)} tokens were tested."
    return ModelAttribution(
        method=request.method,
        word=word,
        tokens=found.tokens,
        values=values,
        log_prob=found.log_prob,
        baseline=found.baseline,
        steps=found.n_points,
        asked=request.steps is not None,
        **inspection.about(reached, note),
    )


LENS = Lens(
    name="tokens",
    title="Which words mattered",
    about="how much each token of the text adds to the answer's log-probability",
    rows="a row for each model and token, with the token's contribution to the log-probability of "
    "the answer",
    caption="Blue tokens raise the answer's log-probability (natural logarithm), orange tokens "
    "lower it; the number under a token says by how much.",
    options=AttributionRequest,
    requires=Attributor,
    compute=attribute,
)
