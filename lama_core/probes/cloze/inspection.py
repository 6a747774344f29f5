"""A model's way to its answer: what it would answer after each layer, and which tokens of the text
its answer comes from. See `models.inside` for what is computed.

Looked at is the first blank; of a left-to-right model, by what stands left of it.
"""

import math
from dataclasses import astuple, dataclass, field
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from lama_core.candidates.columns import Columns
from lama_core.candidates.lists import COMMON
from lama_core.candidates.spelling import Place
from lama_core.errors import UserError
from lama_core.models.protocols import (
    BLANK,
    KINDS,
    LEAST_MISSED,
    MISSED,
    MOST_POINTS,
    Attributor,
    BlankFiller,
    Encoded,
    LayerReader,
)
from lama_core.probes.cloze.query import Text, check_gold, golds_of
from lama_core.probes.model_info import OfModel, model_fields
from lama_core.requests import option
from lama_core.rounding import fixed, percent
from lama_core.scoring import shared_fields
from lama_core.scoring.blanks import follows_only_punctuation
from lama_core.scoring.limits import UNLIMITED, Limits
from lama_core.scoring.ranking import best_candidates, rank_gold
from lama_core.types import Query

Lens = Literal["layers", "tokens"]
Method = Literal["erasure", "gradients"]
METHODS: tuple[Method, ...] = ("erasure", "gradients")
FEWEST_STEPS, MAX_STEPS = 8, 5000
AS_NEEDED = f"as many as a completeness error of {MISSED:.0%} takes, at most {MOST_POINTS:,}"
CLOSED = "{} can't be looked into: it gives its answers alone."
FOLLOWED = "answer that is followed"  # what the word to explain is called for people


@dataclass(frozen=True, kw_only=True)
class InspectRequest(shared_fields.ModelSettings):
    """A text with a blank, and the lens to inspect its answer with: the fields of `inspect`."""

    command: ClassVar[tuple[str, ...]] = ("inspect",)
    python: ClassVar[str] = "inspect"

    text: Text = field(kw_only=False)
    lens: Annotated[
        Lens,
        option(
            "layers: the answer after each layer, and the ranks of the last layer's answers. "
            "tokens: what each token of the text adds to the answer's log-probability."
        ),
    ] = "layers"
    answer: Annotated[
        str | None,
        option("Lens tokens: the answer to explain. Default: each model's first prediction."),
    ] = None
    method: Annotated[
        Method,
        option(
            "Lens tokens: erasure (the token masked or excluded), or gradients (integrated "
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
        """Raise UserError if a field has a wrong value, or goes with the other lens."""
        super().check()
        changed = {
            "answer": self.answer is not None,
            "method": self.method != "erasure",
            "steps": self.steps is not None,
        }
        if self.lens == "layers" and any(changed.values()):
            named = next(name for name, is_changed in changed.items() if is_changed)
            raise UserError(f"--{named} needs --lens tokens.")
        if self.answer:
            check_gold(self.answer, FOLLOWED)


@dataclass(frozen=True, slots=True)
class FollowedWord:
    """A word through the layers, the embeddings first.

    ranks: among the candidates, or as if added to them. log_probs: over the whole vocabulary.
    is_gold: else one of the model's first answers.
    """

    word: str
    is_gold: bool
    ranks: tuple[int, ...]
    log_probs: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Layer:
    """What a model would answer after a layer. number: 0 for the embeddings."""

    number: int
    first: str
    log_prob: float

    @property
    def title(self) -> str:
        """The layer, for people."""
        return str(self.number) if self.number else "embeddings"


@dataclass(frozen=True, slots=True)
class ModelLayers(OfModel):
    """One model's answers after each layer; words: its first answers, best first, then the gold."""

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


@dataclass(frozen=True, slots=True)
class ModelAttribution(OfModel):
    """What each token of a text adds to the log-probability of one word, for one model.

    values: natural log; None of a blank, and of a token that there was no time for. log_prob: of
    the word given the text. Of gradients alone: baseline, the log-probability given none of its
    tokens; steps, the points of the integral; asked, whether their number was asked for.
    """

    method: Method
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
        """The sum over the tokens."""
        return sum(filter(None, self.values))

    @property
    def gap(self) -> float | None:
        """By how much the sum misses the difference from the baseline; None without a baseline."""
        return None if self.baseline is None else self.total - (self.log_prob - self.baseline)

    @property
    def completeness_error(self) -> float | None:
        """The gap as a share of the difference, 0 is exact; None without a baseline.

        Infinite where the log-probability is that of the baseline, to the last digit.
        Source: Sundararajan et al. 2017, proposition 1 (completeness) and section 5.
        """
        if self.baseline is None or self.gap is None:
            return None
        difference = abs(self.log_prob - self.baseline)
        return abs(self.gap) / difference if difference else math.inf

    def completeness(self) -> str:
        """The check of integrated gradients in words; nothing of erasure."""
        if self.baseline is None or self.gap is None or self.completeness_error is None:
            return ""
        difference = self.log_prob - self.baseline
        relative = self.completeness_error
        share = f" ({percent(relative)} %)" if math.isfinite(relative) else ""
        said = (
            f"Completeness error: the tokens' values sum to {fixed(self.total, 3, signed=True)} "
            f"with {self.steps:,} steps, and should sum to {fixed(difference, 3, signed=True)}: "
            f"off by {fixed(abs(self.gap), 3)}{share}. The log-probability is "
            f"{fixed(self.log_prob, 3)}, and {fixed(self.baseline, 3)} with every token hidden."
        )
        if abs(self.gap) <= max(MISSED * abs(difference), LEAST_MISSED):
            return said
        if self.asked:
            return f"{said} More steps make the error smaller."
        return f"{said} {MISSED:.0%} was not reached within {MOST_POINTS:,} steps or the time."

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


@dataclass(frozen=True, slots=True)
class Inside:
    """What was looked at inside one model."""

    layers: ModelLayers | None
    attribution: ModelAttribution | None

    @property
    def parts(self) -> "list[ModelLayers | ModelAttribution]":
        """What there is."""
        return [part for part in (self.layers, self.attribution) if part is not None]


@dataclass(frozen=True, slots=True)
class InsideAnswer:
    """What was looked at inside all models, for the same text."""

    request: InspectRequest
    text: str
    models: tuple[Inside, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the object that `inspect --json` prints."""
        return {"text": self.text, "models": [_inside_json(one) for one in self.models]}

    def rows(self) -> list[dict[str, Any]]:
        """Plain values: a row a model, a layer and a word; of attribution, a model and a token."""
        columns = ("model", "layer", "word", "gold", "rank", "log_prob", "first")
        of_layers = [
            (
                found.name,
                at,
                word.word,
                word.is_gold,
                word.ranks[at],
                word.log_probs[at],
                layer.first,
            )
            for one in self.models
            if (found := one.layers)
            for at, layer in enumerate(found.layers)
            for word in found.words
        ]
        sums = ("log_prob", "baseline", "steps", "completeness_error")
        more = ("model", "method", "word", "position", "token", "value", *sums)
        of_tokens = [
            (
                one.name,
                one.method,
                one.word,
                at,
                token,
                value,
                one.log_prob,
                one.baseline,
                one.steps,
                one.completeness_error,
            )
            for inside in self.models
            if (one := inside.attribution)
            for at, (token, value) in enumerate(zip(one.tokens, one.values, strict=True), start=1)
        ]
        found_rows = [dict(zip(columns, row, strict=True)) for row in of_layers]
        return found_rows + [dict(zip(more, row, strict=True)) for row in of_tokens]


def _inside_json(inside: Inside) -> dict[str, Any]:
    found = inside.parts[0].model_json()
    if inside.layers:
        found |= inside.layers.to_json()
    if inside.attribution:
        found["attribution"] = inside.attribution.to_json()
    return found


def look_inside(
    model: BlankFiller,
    query: Query,
    columns: Columns,
    request: InspectRequest,
    limits: Limits = UNLIMITED,
) -> Inside:
    """What a request asks of one model. columns: of the candidates. Raises as its two parts do."""
    if request.lens == "layers":
        layers = read_layers(
            model, query, columns, top_k=request.top_k, gold=request.gold, limits=limits
        )
        return Inside(layers, None)
    attribution = attribute(
        model,
        query,
        columns,
        request.method,
        word=request.answer,
        steps=request.steps,
        limits=limits,
    )
    return Inside(None, attribution)


def read_layers(
    model: BlankFiller,
    query: Query,
    columns: Columns,
    *,
    top_k: int = 5,
    gold: str | None = None,
    limits: Limits = UNLIMITED,
) -> ModelLayers:
    """Return where a model's answers, and the first blank's gold, stand after each layer."""
    if not isinstance(model, LayerReader):
        raise UserError(CLOSED.format(model.name))
    encoded, notes = _first_blank(model, query, limits)
    place = encoded.places[0]
    word = golds_of(gold, query.n_blanks)[0]
    forms, note = _tokens_of(model, columns, word, place) if word else ((), "")
    scores = model.layer_log_probs(encoded, columns, [forms] if forms else [])
    log_probs = scores.log_probs
    best = best_candidates(log_probs, 1)
    firsts = zip(best.columns[:, 0].tolist(), best.log_probs[:, 0].tolist(), strict=True)
    layers = tuple(
        Layer(number, columns.words[column], value) for number, (column, value) in enumerate(firsts)
    )
    last = best_candidates(log_probs[-1:], min(top_k, len(columns.words))).columns[0].tolist()
    found = columns.find(word, place) if word else None
    if isinstance(found, int) and found not in last:
        last.append(found)
    words = []
    for at in last:
        ranks = rank_gold(log_probs, np.full(len(log_probs), at)).raw.tolist()
        shown = word if at == found and word else columns.words[at]
        values = log_probs[:, at].tolist()
        words.append(FollowedWord(shown, at == found, tuple(ranks), tuple(values)))
    if word and not isinstance(found, int):
        of_word = scores.words[:, 0]
        ranks = (1 + np.count_nonzero(log_probs > of_word[:, None], axis=1)).tolist()
        words.append(FollowedWord(word, True, tuple(ranks), tuple(of_word.tolist())))
    said = tuple(filter(None, (*notes, note)))
    return ModelLayers(
        layers=layers,
        words=tuple(words),
        n_candidates=len(columns.words),
        notes=said,
        **model_fields(model),
    )


def attribute(
    model: BlankFiller,
    query: Query,
    columns: Columns,
    method: Method,
    *,
    word: str | None = None,
    steps: int | None = None,
    limits: Limits = UNLIMITED,
) -> ModelAttribution:
    """Return what each token adds to the log-probability of a word at the first blank.

    word: None takes the model's first answer. steps: the points of the gradients' integral; None
    takes as many as a completeness error of `MISSED` needs, at most `MOST_POINTS`.
    """
    if not isinstance(model, Attributor):
        raise UserError(CLOSED.format(model.name))
    encoded, notes = _first_blank(model, query, limits)
    place = encoded.places[0]
    word = " ".join(word.split()) if word else None
    if word:
        forms, note = _tokens_of(model, columns, word, place)
    else:
        first = best_candidates(model.blank_log_probs([encoded], columns).log_probs[:1], 1)
        column = int(first.columns[0, 0])
        word, forms, note = columns.words[column], columns.tokens_of(column, place), ""
    until = limits.until()
    if method == "erasure":
        found = model.erased(encoded, forms, until=until)
    else:
        found = model.integrated_gradients(encoded, forms, steps=steps, until=until)
    values = tuple(None if np.isnan(value) else float(value) for value in found.values)
    of_text = [value for token, value in zip(found.tokens, values, strict=True) if token != BLANK]
    n_tried = sum(value is not None for value in of_text)
    if n_tried < len(of_text):
        over = f"The time for a question was over: {n_tried} of {len(of_text)} tokens were tried."
        notes = (*notes, over)
    return ModelAttribution(
        method=method,
        word=word,
        tokens=found.tokens,
        values=values,
        log_prob=found.log_prob,
        baseline=found.baseline,
        steps=found.n_points,
        asked=steps is not None,
        notes=tuple(filter(None, (*notes, note))),
        **model_fields(model),
    )


def _first_blank(
    model: BlankFiller, query: Query, limits: Limits
) -> tuple[Encoded, tuple[str, ...]]:
    """What a model is shown of a text for its first blank, and what that leaves out, in words."""
    notes = []
    context = KINDS[model.kind].contexts[0]
    if query.n_blanks > 1:
        notes.append("Of several blanks, the first is looked at.")
    if context == "left":
        query = Query(query.parts[:2])
        if not follows_only_punctuation(query):
            notes.append("By the left side alone: what stands right of the blank isn't seen.")
    encoded = model.encode(query, context)
    limits.check_tokens(len(encoded.token_ids), model.name)
    return encoded, tuple(notes)


def _tokens_of(
    model: BlankFiller, columns: Columns, word: str, place: Place
) -> tuple[tuple[int, ...], str]:
    """The tokens that write a word, and a sentence where that is its beginning alone."""
    column = columns.find(word, place)
    if isinstance(column, int):
        return columns.tokens_of(column, place), ""
    if forms := columns.spelling.tokens(word, place):
        return forms, ""
    written = columns.spelling.written(word)
    if not model.vocabulary.can_write(written):
        raise UserError(f"{model.name} can't write {word[:60]!r}: choose another word.")
    pieces = model.vocabulary.pieces(written, place)
    begun = model.vocabulary.show_text(pieces[:1])[0]
    note = f"“{word}” is {len(pieces)} tokens of the model: its first, “{begun}”, counts."
    return pieces[:1], note
