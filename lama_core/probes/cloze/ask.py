"""One cloze text put to several models: what the Cloze page and `cloze` on the command line show.

prob(word) = exp(log_prob(word)), over the model's whole vocabulary; with `renormalise`, over
the candidates.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lama_core.asking.ranking import best_candidates, rank_gold
from lama_core.asking.scoring import choose_context
from lama_core.asking.settings import ClozeSettings
from lama_core.candidates.columns import Candidates, Columns
from lama_core.candidates.spelling import Place
from lama_core.errors import UserError
from lama_core.models.base import KINDS, RESCORED, BlankFiller, Context, Encoded, Kind, Scores
from lama_core.requests import argument
from lama_core.types import Query

MAX_TOP_K = 100


@dataclass(frozen=True, kw_only=True)
class ClozeRequest(ClozeSettings):
    """A text with a blank, and how it is asked: the choices of `cloze` and of the page."""

    command: ClassVar[tuple[str, ...]] = ("cloze",)

    text: str = argument()
    top_k: int = 5
    gold: str | None = None
    renormalise: bool = False


@dataclass(frozen=True, slots=True)
class Prediction:
    """One answer of a model. prob: between 0 and 1."""

    rank: int
    token: str
    log_prob: float
    prob: float


@dataclass(frozen=True, slots=True)
class Gold:
    """Where the word that should be there stands.

    rank: 1 = best; of a word outside the candidates, its rank if it were added to them.
    log_prob: None for a word that a causal model did not rescore (context `both`), or that the
        model can't write at all.
    pieces: the model's tokens of the word; several are scored as several.
    """

    word: str
    rank: int
    log_prob: float | None
    pieces: tuple[str, ...]
    in_candidates: bool

    def shown_log_prob(self) -> str:
        """The log-probability with two decimals, or in words why there is none."""
        if self.log_prob is not None:
            return f"{self.log_prob:.2f}"
        return "not rescored" if self.in_candidates else "can't be written by this model"


@dataclass(frozen=True, slots=True)
class BlankAnswer:
    """A model's answers at one blank, best first, and the gold's place if one was given."""

    predictions: tuple[Prediction, ...]
    gold: Gold | None = None


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """One model's answers, a list for each blank.

    context: what it was shown: `left`, or `both` sides of the blank.
    n_candidates: how many of the wanted words the model has as one token.
    """

    name: str
    kind: Kind
    context: Context
    n_candidates: int
    blanks: tuple[BlankAnswer, ...]


@dataclass(frozen=True, slots=True)
class ClozeAnswer:
    """All models' answers to one text."""

    text: str
    candidates: Candidates
    models: tuple[ModelAnswer, ...]

    def to_json(self) -> dict[str, Any]:
        """The object that `cloze --json` prints.

        The candidates' size is the number of words; for `full`, the largest vocabulary's.
        """
        words = self.candidates.words
        sizes = [model.n_candidates for model in self.models]
        return {
            "text": self.text,
            "candidates": {
                "name": self.candidates.name,
                "size": len(words) if words is not None else max(sizes, default=0),
            },
            "models": [
                {
                    "name": model.name,
                    "kind": model.kind,
                    "context": model.context,
                    "blanks": [
                        {
                            "predictions": [asdict(prediction) for prediction in blank.predictions],
                            **({"gold": asdict(blank.gold)} if blank.gold else {}),
                        }
                        for blank in model.blanks
                    ],
                }
                for model in self.models
            ],
        }


def ask(
    model: BlankFiller,
    query: Query,
    candidates: Candidates,
    *,
    top_k: int = 5,
    gold: str | None = None,
    context: Context | None = None,
    renormalise: bool = False,
    n_rescored: int = RESCORED,
    columns: Columns | None = None,
) -> ModelAnswer:
    """One model's best `top_k` answers at each blank of a text.

    gold: the word whose rank is wanted, at every blank. context: None chooses as
    `scoring.choose_context` does. n_rescored: words of the left context that a causal model
    rescores with context `both`. columns: of the candidates, where the caller has kept them.
    A causal model is asked blank by blank, left to right: the blanks on the left are filled with
    its own best answers, and the text it sees on the right ends at the next blank.
    Raises UserError if the text doesn't fit the model, or top_k is out of range.
    """
    if not 1 <= top_k <= MAX_TOP_K:
        raise UserError(f"top-k is {top_k}: choose a number from 1 to {MAX_TOP_K}.")
    used = choose_context(model, query, context)
    columns = columns or candidates.columns(model.vocabulary)
    gold = gold.strip() or None if gold else None
    answer = _Asked(model, candidates, columns, used, top_k, gold, renormalise, n_rescored)
    if KINDS[model.kind].fills_together:
        blanks = answer.all_blanks(query)
    else:
        blanks = []
        left = query.parts[0]
        for right in query.parts[1:]:
            blanks += answer.all_blanks(Query((left, right)))
            left = left + blanks[-1].predictions[0].token + right
    return ModelAnswer(model.name, model.kind, used, len(columns.words), tuple(blanks))


@dataclass(frozen=True, slots=True)
class _Asked:
    model: BlankFiller
    candidates: Candidates
    columns: Columns
    context: Context
    top_k: int
    gold: str | None
    renormalise: bool
    n_rescored: int

    def all_blanks(self, query: Query) -> list[BlankAnswer]:
        """The answers at each blank of a query, from one pass over it."""
        encoded = replace(self.model.encode(query, self.context), n_rescored=self.n_rescored)
        scores = self.model.blank_log_probs([encoded], self.columns)
        return [self._at(query, blank, encoded, scores) for blank in range(query.n_blanks)]

    def _at(self, query: Query, blank: int, encoded: Encoded, scores: Scores) -> BlankAnswer:
        row = scores.log_probs[blank : blank + 1]
        order = None if scores.order is None else scores.order[blank : blank + 1]
        normaliser = 0.0 if scores.normaliser is None else float(scores.normaliser[blank])
        gold = self._gold(query, blank, encoded.places[blank], row, order, normaliser)
        total = float(np.logaddexp.reduce(row[0])) if self.renormalise else 0.0
        best = best_candidates(row, min(self.top_k, row.shape[1]), order=order)
        predictions = tuple(
            Prediction(
                rank, self.columns.words[column], value - total, float(np.exp(value - total))
            )
            for rank, (column, value) in enumerate(
                zip(best.columns[0].tolist(), best.log_probs[0].tolist(), strict=True), start=1
            )
            if np.isfinite(value)
        )
        if gold is not None and gold.log_prob is not None:
            gold = replace(gold, log_prob=gold.log_prob - total)
        return BlankAnswer(predictions, gold)

    def _gold(
        self,
        query: Query,
        blank: int,
        place: Place,
        row: NDArray[np.float32],
        order: NDArray[np.float32] | None,
        normaliser: float,
    ) -> Gold | None:
        if self.gold is None:
            return None
        column = self.columns.find(self.gold, place)
        if isinstance(column, int):
            ids = self.columns.token_ids[place][column]
            forms = [self.model.vocabulary.show_text([form]) for form in ids.tolist() if form >= 0]
            pieces = next((form for form in forms if form == (self.gold,)), forms[0])
            rank = int(rank_gold(row, np.array([column]), order=order).raw[0])
            value = float(row[0, column])
            return Gold(self.gold, rank, value if np.isfinite(value) else None, pieces, True)
        word = self.columns.spelling.written(self.gold)
        score = self.model.word_log_prob(query, blank, word, self.context, normaliser)
        if not np.isfinite(score.log_prob):
            return Gold(self.gold, row.shape[1] + 1, None, score.pieces, False)
        rank = 1 + int(np.count_nonzero(row[0] > score.log_prob))
        return Gold(self.gold, rank, score.log_prob, score.pieces, False)


def ask_all(
    models: Sequence[BlankFiller],
    query: Query,
    candidates: Candidates,
    *,
    on_model: Callable[[ModelAnswer], None] | None = None,
    **options: Any,
) -> ClozeAnswer:
    """Every model's answers, in the models' order; `on_model` is called as each is done."""
    answers = []
    for model in models:
        answers.append(ask(model, query, candidates, **options))
        if on_model:
            on_model(answers[-1])
    return ClozeAnswer(query.text(), candidates, tuple(answers))


def agreement(answers: Sequence[ModelAnswer], blank: int = 0) -> list[tuple[str, tuple[str, ...]]]:
    """The words that at least two models have among their answers, with those models' names.

    Words are compared in lower case, the most shared first, then by their best rank.
    """
    found: dict[str, list[tuple[str, int]]] = {}
    for answer in answers:
        seen: set[str] = set()
        for prediction in answer.blanks[blank].predictions:
            word = prediction.token.lower()
            if word not in seen:
                found.setdefault(word, []).append((answer.name, prediction.rank))
                seen.add(word)
    shared = {word: names for word, names in found.items() if len(names) > 1}
    ranked = sorted(
        shared, key=lambda word: (-len(shared[word]), min(rank for _, rank in shared[word]), word)
    )
    return [(word, tuple(name for name, _ in shared[word])) for word in ranked]
