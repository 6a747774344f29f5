"""Two lenses on a model's answer: the answer by layer, and attribution to the tokens of the text.

This module also has the request and functions that all lenses share; `lenses` has the table of
lenses.

`models.hf.inspection` has the formulas. Only the first blank is inspected. A causal model sees only
the text left of the blank.
"""

import math
from dataclasses import astuple, dataclass, field, fields
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from lama_core.candidates.columns import Columns
from lama_core.candidates.lists import COMMON
from lama_core.candidates.spelling import Place
from lama_core.errors import UserError
from lama_core.models.protocols import (
    BLANK,
    KINDS,
    MAX_ERROR_SHARE,
    MAX_POINTS,
    MIN_ERROR,
    BlankFiller,
    Encoded,
    TracedPart,
)
from lama_core.probes.cloze.query import Text, check_gold, gold_answers
from lama_core.probes.model_info import AboutModel, model_fields
from lama_core.requests import option
from lama_core.rounding import fixed, percent
from lama_core.scoring import shared_fields
from lama_core.scoring.blanks import follows_only_punctuation
from lama_core.scoring.limits import UNLIMITED, Limits
from lama_core.scoring.ranking import best_candidates, rank_gold
from lama_core.types import Query

LensName = Literal["layers", "tokens", "trace", "logit"]
AttributionMethod = Literal["erasure", "gradients"]
ATTRIBUTION_METHODS: tuple[AttributionMethod, ...] = ("erasure", "gradients")
FEWEST_STEPS, MAX_STEPS = 8, 5000
AS_NEEDED = (
    f"as many as needed for a completeness error of {MAX_ERROR_SHARE:.0%}, at most {MAX_POINTS:,}"
)
NOT_INSPECTABLE = (
    "{} can't be inspected, because only its answers are available: choose another model."
)
TRACKED_ANSWER = "answer to track"  # label of the word to explain
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
# Field -> the lenses that use it. All lenses use the fields that aren't listed.
LENSES_OF: dict[str, tuple[LensName, ...]] = {
    "answer": ("tokens", "trace", "logit"),
    "method": ("tokens",),
    "steps": ("tokens",),
    "against": ("logit",),
    "subject": ("trace",),
    "restore": ("trace",),
    "window": ("trace",),
    "draws": ("trace",),
    "seed": ("trace",),
}


@dataclass(frozen=True, kw_only=True)
class InspectRequest(shared_fields.ModelSettings):
    """The fields of `inspect`: a text with a blank, and the lens to inspect the answer with."""

    command: ClassVar[tuple[str, ...]] = ("inspect",)
    python: ClassVar[str] = "inspect"

    text: Text = field(kw_only=False)
    lens: Annotated[
        LensName,
        option(
            "layers: the answer after each layer, and the ranks of the last layer's answers. "
            "tokens: how much each token of the text adds to the answer's log-probability. trace: "
            "which hidden states bring the answer back when the subject is corrupted. logit: what "
            "each attention and MLP adds to the answer's logit."
        ),
    ] = "layers"
    answer: Annotated[
        str | None,
        option(
            "Lenses tokens, trace and logit: the answer to explain. Default: each model's first "
            "prediction."
        ),
    ] = None
    against: Annotated[
        str | None,
        option("Lens logit: another answer, whose logit is subtracted from the explained one's."),
    ] = None
    subject: Annotated[
        str | None, option("Lens trace: the words of the text to corrupt with noise.")
    ] = None
    restore: Restore = "states"
    window: Window = None
    draws: Draws = DRAWS
    seed: Seed = SEED
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
    top_k: shared_fields.TopK = 5
    gold: shared_fields.Gold = None
    candidates: shared_fields.Candidates = COMMON

    def check(self) -> None:
        """Raise UserError if a field has a wrong value, or belongs to another lens."""
        super().check()
        defaults = {field.name: field.default for field in fields(self)}
        for name, lenses in LENSES_OF.items():
            if self.lens not in lenses and getattr(self, name) != defaults[name]:
                raise UserError(f"--{name} needs --lens {' or '.join(lenses)}.")
        if self.lens == "trace" and not (self.subject or "").strip():
            raise UserError("--lens trace needs --subject: the words of the text to corrupt.")
        check_window(self.window, self.restore)
        for word in filter(None, (self.answer, self.against)):
            check_gold(word, TRACKED_ANSWER)


def check_window(window: int | None, restore: TracedPart) -> None:
    """Raise UserError for a window of states."""
    if window is not None and restore == "states":
        raise UserError("--window needs --restore attention or mlp: states have no window.")


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
class Layer:
    """A model's first answer after a layer; number: 0 for the embeddings."""

    number: int
    first: str
    log_prob: float

    @property
    def title(self) -> str:
        """The layer as shown to users."""
        return str(self.number) if self.number else "embeddings"


@dataclass(frozen=True, slots=True)
class ModelLayers(AboutModel):
    """One model's answers after each layer; words: The last layer's best, then the gold answer."""

    layers: tuple[Layer, ...]
    words: tuple[FollowedWord, ...]
    n_candidates: int
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return what `inspect --lens layers --json` prints of a model."""
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
        """Return a row per layer and word."""
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


@dataclass(frozen=True, slots=True)
class ModelAttribution(AboutModel):
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
        notes: Notes for users.
    """

    method: AttributionMethod
    word: str
    tokens: tuple[str, ...]
    values: tuple[float | None, ...]
    log_prob: float
    baseline: float | None
    steps: int | None
    asked: bool
    notes: tuple[str, ...]

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
        if self.asked:
            return f"{text} More steps reduce the error."
        return f"{text} The error stayed above {MAX_ERROR_SHARE:.0%} at the limit of steps or time."

    def to_json(self) -> dict[str, Any]:
        """Return what `inspect --lens tokens --json` prints of a model; null where unknown."""
        error = self.completeness_error
        sums = {
            "baseline": self.baseline,
            "sum": self.total,
            "gap": self.gap,
            "completeness_error": None if error is None or math.isinf(error) else error,
            "steps": self.steps,
        }
        return {
            "method": self.method,
            "word": self.word,
            "log_prob": self.log_prob,
            **(sums if self.baseline is not None else {}),
            "tokens": [
                dict(zip(("token", "value"), one, strict=True))
                for one in zip(self.tokens, self.values, strict=True)
            ],
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return a row per token."""
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


def read_layers(
    model: Any,
    query: Query,
    columns: Columns,
    request: InspectRequest,
    limits: Limits = UNLIMITED,
) -> ModelLayers:
    """Return the first answer after each layer, and the ranks of some answers after each layer.

    These are the last layer's `top_k` best answers and the first blank's gold answer. model:
    a `LayerReader`.

    Raises:
        UserError: If the text is too long, or the model can't write the gold answer.
    """
    encoded, notes = encode_first_blank(model, query, limits)
    place = encoded.places[0]
    word = gold_answers(request.gold, query.n_blanks)[0]
    forms, note = tokens_of(model, columns, word, place) if word else ((), "")
    scores = model.layer_log_probs(encoded, columns, [forms] if forms else [])
    log_probs = scores.log_probs
    best = best_candidates(log_probs, 1)
    firsts = zip(best.columns[:, 0].tolist(), best.log_probs[:, 0].tolist(), strict=True)
    layers = tuple(
        Layer(number, columns.words[column], value) for number, (column, value) in enumerate(firsts)
    )
    n_tracked = min(request.top_k, len(columns.words))
    tracked = best_candidates(log_probs[-1:], n_tracked).columns[0].tolist()
    gold_column = columns.find(word, place) if word else None
    if isinstance(gold_column, int) and gold_column not in tracked:
        tracked.append(gold_column)
    words = []
    for column in tracked:
        is_gold = column == gold_column
        ranks = rank_gold(log_probs, np.full(len(log_probs), column)).raw.tolist()
        shown = word if is_gold and word else columns.words[column]
        words.append(
            FollowedWord(shown, is_gold, tuple(ranks), tuple(log_probs[:, column].tolist()))
        )
    if word and not isinstance(gold_column, int):
        of_word = scores.words[:, 0]
        ranks = (1 + np.count_nonzero(log_probs > of_word[:, None], axis=1)).tolist()
        words.append(FollowedWord(word, True, tuple(ranks), tuple(of_word.tolist())))
    return ModelLayers(
        layers=layers,
        words=tuple(words),
        n_candidates=len(columns.words),
        notes=tuple(filter(None, (*notes, note))),
        **model_fields(model),
    )


def attribute(
    model: Any,
    query: Query,
    columns: Columns,
    request: InspectRequest,
    limits: Limits = UNLIMITED,
) -> ModelAttribution:
    """Return how much each token adds to the log-probability of a word at the first blank.

    The word is the request's answer, or else the model's first answer. model: an `Attributor`.

    Raises:
        UserError: If the model can't write the word, or the text is too long.
    """
    encoded, notes = encode_first_blank(model, query, limits)
    word, forms, note = choose_answer(model, encoded, columns, request.answer)
    until = limits.until()
    if request.method == "erasure":
        found = model.erased(encoded, forms, until=until)
    else:
        found = model.integrated_gradients(encoded, forms, steps=request.steps, until=until)
    values = tuple(None if np.isnan(value) else float(value) for value in found.values)
    of_text = [value for token, value in zip(found.tokens, values, strict=True) if token != BLANK]
    n_tried = sum(value is not None for value in of_text)
    if n_tried < len(of_text):
        reached = f"Time limit reached: {n_tried} of {len(of_text)} tokens were tested."
        notes = (*notes, reached)
    return ModelAttribution(
        method=request.method,
        word=word,
        tokens=found.tokens,
        values=values,
        log_prob=found.log_prob,
        baseline=found.baseline,
        steps=found.n_points,
        asked=request.steps is not None,
        notes=tuple(filter(None, (*notes, note))),
        **model_fields(model),
    )


def encode_first_blank(
    model: BlankFiller, query: Query, limits: Limits
) -> tuple[Encoded, tuple[str, ...]]:
    """Return the query as tokens for its first blank, and notes on the parts that aren't used."""
    notes = []
    context = KINDS[model.kind].contexts[0]
    if query.n_blanks > 1:
        notes.append("Only the first blank is inspected.")
    if context == "left":
        query = Query(query.parts[:2])
        if not follows_only_punctuation(query):
            notes.append("The model sees only the text to the left of the blank.")
    encoded = model.encode(query, context)
    limits.check_tokens(len(encoded.token_ids), model.name)
    return encoded, tuple(notes)


def choose_answer(
    model: BlankFiller, encoded: Encoded, columns: Columns, word: str | None
) -> tuple[str, tuple[int, ...], str]:
    """Return the answer to explain, the tokens that each write it, and a note if it is shortened.

    word: The answer; None chooses the model's first prediction.
    """
    place = encoded.places[0]
    word = " ".join(word.split()) if word else None
    if word:
        return word, *tokens_of(model, columns, word, place)
    first = best_candidates(model.blank_log_probs([encoded], columns).log_probs[:1], 1)
    column = int(first.columns[0, 0])
    return columns.words[column], columns.tokens_of(column, place), ""


def tokens_of(
    model: BlankFiller, columns: Columns, word: str, place: Place
) -> tuple[tuple[int, ...], str]:
    """Return the tokens that each write a word; if it needs several, the first one and a note."""
    column = columns.find(word, place)
    if isinstance(column, int):
        return columns.tokens_of(column, place), ""
    if forms := columns.spelling.tokens(word, place):
        return forms, ""
    written = columns.spelling.written(word)
    if not model.vocabulary.can_write(written):
        raise UserError(f"{model.name} can't write {word[:60]!r}: choose another word.")
    pieces = model.vocabulary.pieces(written, place)
    start = model.vocabulary.show_text(pieces[:1])[0]
    note = f"“{word}” is {len(pieces)} tokens of the model: only the first, “{start}”, counts."
    return pieces[:1], note
