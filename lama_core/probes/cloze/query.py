"""One cloze text put to several models: what the page Ask and `cloze` on the command line show.

prob(word) = exp(log_prob(word)), over the model's whole vocabulary; with `renormalise`, over
the candidates.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from lama_core.candidates.columns import Candidates, Columns
from lama_core.candidates.spelling import Place, place_of, spell
from lama_core.errors import UserError
from lama_core.models.protocols import (
    KINDS,
    RESCORED,
    BlankFiller,
    Context,
    Encoded,
    Scores,
    WordContinuer,
)
from lama_core.probes.model_info import OfModel, model_fields
from lama_core.requests import argument, option
from lama_core.rounding import fixed, percent
from lama_core.scoring import shared_fields
from lama_core.scoring.batches import choose_context, plan_batches
from lama_core.scoring.limits import UNLIMITED, Limits
from lama_core.scoring.ranking import best_candidates, rank_gold
from lama_core.scoring.retrieval import Found, with_passage
from lama_core.scoring.shared_fields import MAX_TOP_K
from lama_core.types import Query

# Pieces of a gold: each is a pass of its own.
MAX_PIECES = 32
# Answers that are continued to the word that they begin.
N_CONTINUED = 10
ENDS = tuple(".!?…:;,。！？")
SEVERAL_GOLDS = "|"
MAX_GOLD = 1000  # characters
# A word can't take all the probability: something is left to the others.
SMALLEST = 1e-300

Over = Literal["vocabulary", "rescored", "candidates", "answers", "found"]
# What they sum to one over where their number isn't known any more.
ALL_OVER: dict[Over, str] = {
    "vocabulary": "all its tokens",
    "rescored": "the rescored words",
    "candidates": "the candidates",
    "answers": "the answers",
    "found": "what it found",
}
OVER: dict[Over, str] = {
    "vocabulary": "tokens",
    "rescored": "rescored words",
    "candidates": "candidates",
    "answers": "answers",
    "found": "words that it found",
}


Text = Annotated[str, argument("A text with a blank: [MASK], <mask>, [Y], or ___.")]
Golds = Annotated[
    str | None,
    option("The gold (right) answer: its rank is shown. Of several blanks: one each, | between."),
]


@dataclass(frozen=True, kw_only=True)
class ClozeRequest(shared_fields.ClozeSettings):
    """A text with blanks to fill: the fields of `cloze`."""

    command: ClassVar[tuple[str, ...]] = ("cloze",)
    python: ClassVar[str] = "fill"

    text: Text = field(kw_only=False)
    top_k: shared_fields.TopK = 5
    gold: Golds = None
    renormalise: shared_fields.Renormalise = False
    open_book: shared_fields.OpenBook = None
    segments: shared_fields.Segments = False


@dataclass(frozen=True, slots=True)
class Prediction:
    """One answer of a model. begins: the longer word that it goes on to (`New York`), if any."""

    rank: int
    token: str
    log_prob: float
    prob: float
    begins: str | None = None


@dataclass(frozen=True, slots=True)
class Gold:
    """Where the word that should be there stands.

    rank: of a word outside the candidates, as if it were added to them. log_prob: None for a word
    that the model can't write. pieces: the model's tokens of the word.
    """

    word: str
    rank: int
    log_prob: float | None
    pieces: tuple[str, ...]
    in_candidates: bool

    def shown_log_prob(self) -> str:
        """The log-probability with two decimals, or in words why there is none."""
        if self.log_prob is not None:
            return fixed(self.log_prob, 2)
        return "can't be written by this model"


@dataclass(frozen=True, slots=True)
class BlankAnswer:
    """A model's answers at one blank, best first, and the gold's place if one was given.

    over: what the probabilities sum to one over; n_over: how many, None if unknown.
    asked: the text of this blank, where a model is asked in turn with its own answers on the left.
    outside: the share of the probability outside the candidates; None where they have all.
    first: the likeliest of all tokens (of a causal model, by the left side).
    with_full_stop: the first answer if the text ended in a full stop; None if it is the same.
    n_wanted: how many words were to be rescored, where the time for a question was over.
    n_listed: how many tokens a model gave that gives its likeliest only; else None.
    gold_beyond: the gold is none of those: its rank is `gold.rank` or a later one.
    """

    predictions: tuple[Prediction, ...]
    gold: Gold | None = None
    over: Over = "vocabulary"
    n_over: int | None = None
    asked: str = ""
    outside: float | None = None
    first: Prediction | None = None
    with_full_stop: str | None = None
    n_wanted: int | None = None
    n_listed: int | None = None
    gold_beyond: bool = False

    @property
    def mostly_outside(self) -> bool:
        """Whether over half of the probability is outside the candidates."""
        return self.outside is not None and self.outside > 0.5

    @property
    def likeliest_outside(self) -> Prediction | None:
        """The likeliest of all tokens where it isn't a candidate; None where it is, or unknown."""
        if self.outside is None or self.first is None:
            return None
        best = max((item.log_prob for item in self.predictions), default=-math.inf)
        share = math.log(max(1 - self.outside, SMALLEST)) if self.over == "candidates" else 0.0
        return self.first if self.first.log_prob > best + share else None

    def notes(self) -> list[str]:
        """In words what the list alone doesn't say, a sentence each."""
        said = []
        if self.n_wanted is not None:
            said.append(
                f"The time for a question was over: {self.n_over:,} of {self.n_wanted:,} words "
                "were rescored, the likeliest by the left side first."
            )
        if self.over == "rescored" and self.asked.startswith("[MASK]"):
            said.append(
                "Nothing stands left of the blank: only the likeliest beginnings of a text, and "
                "the right answer, are tried in the sentence."
            )
        if self.n_listed is not None:
            more = "; the right answer is beyond them, at this rank or a later one"
            said.append(
                f"The list is cut: the server gives its {self.n_listed:,} likeliest tokens, and "
                f"words beyond them are not ranked{more * self.gold_beyond}."
            )
        if self.outside is not None and self.first:
            said.append(f"{percent(self.outside)} % goes to words not listed.")
            if token := self.likeliest_outside:
                said[-1] += (
                    f" The likeliest of all tokens: {_shown(token)} ({fixed(token.prob, 3)})."
                )
        elif self.first:
            said.append(
                f"By the left side alone, the likeliest of all tokens: {_shown(self.first)} "
                f"({fixed(self.first.prob, 3)})."
            )
        if self.with_full_stop is not None:
            said.append(
                f"With a full stop at the end of the text, “{self.with_full_stop}” would be first."
            )
        return said

    def shown_over(self) -> str:
        """In words what the probabilities sum to one over."""
        if self.n_over is None:
            return ALL_OVER[self.over]
        return f"{self.n_over:,} {OVER[self.over]}"


@dataclass(frozen=True, slots=True)
class ModelAnswer(OfModel):
    """One model's answers, a list for each blank.

    context: what it was shown: `left`, or `both` sides of the blank. n_candidates: how many of the
    wanted words the model has as one token. notes: sentences about the model.
    """

    context: Context
    n_candidates: int
    blanks: tuple[BlankAnswer, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClozeAnswer:
    """All models' answers to one text. passage: what stood before it, with the open book."""

    text: str
    candidates: Candidates
    models: tuple[ModelAnswer, ...]
    passage: Found | None = None

    def to_json(self) -> dict[str, Any]:
        """Return what `cloze --json` prints. Size of `full`: the largest vocabulary's."""
        sizes = [model.n_candidates for model in self.models]
        return {
            "text": self.text,
            **({"passage": asdict(self.passage)} if self.passage else {}),
            "candidates": candidates_json(self.candidates, sizes),
            "models": [
                {
                    **model.model_json(),
                    "context": model.context,
                    "blanks": [blank_json(blank) for blank in model.blanks],
                }
                for model in self.models
            ],
        }

    def rows(self) -> list[dict[str, Any]]:
        """A row a model, a blank and an answer, as plain values."""
        return [
            {
                "model": model.name,
                "context": model.context,
                "blank": number,
                "rank": item.rank,
                "word": item.token,
                "begins": item.begins,
                "prob": item.prob,
                "prob_of": blank.shown_over(),
                "log_prob": item.log_prob,
                **gold_columns(blank.gold),
                "precision": model.precision,
                "device": model.device,
                "text": self.text,
                "candidates": self.candidates.name,
                **({"passage": self.passage.passage} if self.passage else {}),
            }
            for model in self.models
            for number, blank in enumerate(model.blanks, start=1)
            for item in blank.predictions
        ]


def _shown(item: Prediction) -> str:
    more = f", which goes on as “{item.begins}”" if item.begins else ""
    return f"“{item.token}”{more}"


def gold_columns(gold: Gold | None) -> dict[str, Any]:
    """The gold answer as columns of a table."""
    values = (gold.word, gold.rank, gold.log_prob) if gold else (None,) * 3
    return dict(zip(("gold", "gold_rank", "gold_log_prob"), values, strict=True))


def blank_json(blank: BlankAnswer) -> dict[str, Any]:
    """A blank as JSON has it, without what doesn't apply: no gold was given, no time was over."""
    optional = {"gold": None, "n_wanted": None, "n_listed": None, "gold_beyond": False}
    found = asdict(blank).items()
    return {name: value for name, value in found if (name, value) not in optional.items()}


def candidates_json(candidates: Candidates, sizes: Sequence[int]) -> dict[str, Any]:
    """The candidates as JSON has them. sizes: how many words each model ranks."""
    words = candidates.words
    size = len(words) if words is not None else max(sizes, default=0)
    return {"name": candidates.name, "size": size}


def golds_of(gold: str | None, n_blanks: int) -> tuple[str | None, ...]:
    """Return the gold of each blank, None for those without one.

    gold: for several blanks, one each with `|` between them. Raises UserError if they are not as
    many as the blanks, or too long.
    """
    if not gold or not gold.strip():
        return (None,) * n_blanks
    check_gold(gold)
    if n_blanks == 1:
        return (gold.strip(),)
    golds = tuple(word.strip() or None for word in gold.split(SEVERAL_GOLDS))
    if len(golds) != n_blanks:
        raise UserError(
            f"The text has {n_blanks} blanks, and {len(golds)} gold word"
            f"{'s are' if len(golds) > 1 else ' is'} given: write one a blank, with "
            f"{SEVERAL_GOLDS} between them."
        )
    return golds


def check_gold(gold: str, what: str = "gold") -> None:
    """Raise UserError for a gold answer that is too long to be a word. what: it is called."""
    if len(gold) > MAX_GOLD:
        raise UserError(
            f"The {what} has {len(gold):,} characters; at most {MAX_GOLD:,} are taken: shorten it."
        )


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
    limits: Limits = UNLIMITED,
) -> ModelAnswer:
    """One model's best `top_k` answers at each blank of a text.

    gold: the word whose rank is wanted; of several blanks see `golds_of`. context: None chooses as
    `scoring.choose_context` does. n_rescored: words of the left context that a causal model
    rescores with context `both`, beside the gold. columns: of the candidates, where the caller has
    kept them. limits: what may be spent on the text; what is cut short says so.
    A causal or encoder-decoder model is asked blank by blank, left to right: the blanks on the left
    are filled with its own best answers. What a causal model sees on the right ends at the next
    blank; an encoder-decoder model sees all of it, the later blanks left open.
    Raises UserError if the text doesn't fit the model, or top_k is out of range.
    """
    if not 1 <= top_k <= MAX_TOP_K:
        raise UserError(f"top-k is {top_k}: choose a number from 1 to {MAX_TOP_K}.")
    used = choose_context(model, query, context)
    columns = columns or candidates.columns(model.vocabulary)
    golds = golds_of(gold, query.n_blanks)
    answer = _Asked(
        model, candidates, columns, used, top_k, renormalise, n_rescored, limits, limits.until()
    )
    kind = KINDS[model.kind]
    if kind.fills_together:
        blanks = answer.all_blanks(query, golds, to_end=True)
    else:
        blanks = []
        left = query.parts[0]
        for number, right in enumerate(query.parts[1:]):
            later = query.parts[number + 2 :]
            parts = (left, right, *later) if kind.sees_both else (left, right)
            to_end = kind.sees_both or not later
            blanks += answer.all_blanks(Query(parts), golds[number : number + 1], to_end)
            left = left + blanks[-1].predictions[0].token + right
    return _model_answer(model, used, columns, blanks)


@dataclass(frozen=True, slots=True)
class _Asked:
    model: BlankFiller
    candidates: Candidates
    columns: Columns
    context: Context
    top_k: int
    renormalise: bool
    n_rescored: int
    limits: Limits
    until: float

    def all_blanks(
        self, query: Query, golds: Sequence[str | None], to_end: bool
    ) -> list[BlankAnswer]:
        """The answers at each blank of a query that is asked, from one pass over it.

        golds: of each blank that is asked: all, or the first.
        to_end: the query goes to the end of the text, where a full stop may be missing.
        """
        encoded = self._encode(query, golds)
        last = query.parts[-1].rstrip()
        ends = not to_end or self.context == "left" or last.endswith(ENDS)
        batch = [encoded]
        if not ends:  # asked together: one goes on from the other
            batch.append(self._encode(replace(query, parts=(*query.parts[:-1], f"{last}.")), golds))
        both = self.model.blank_log_probs(batch, self.columns)
        answers = []
        for blank, gold in enumerate(golds):
            scores = _rows(both, blank)
            answer = self._at(query, blank, encoded, scores, gold)
            answer = self._continued(answer, encoded.places[blank], encoded, scores)
            if not ends:
                ended = _rows(both, len(golds) + blank)
                first = best_candidates(ended.log_probs, 1, order=ended.order).columns[0, 0]
                word = self.columns.words[first]
                if word != answer.predictions[0].token:
                    answer = replace(answer, with_full_stop=word)
            answers.append(answer)
        return answers

    def _encode(self, query: Query, golds: Sequence[str | None]) -> Encoded:
        """The query as tokens; what is scored word by word is scored of the gold in any case."""
        encoded = self.model.encode(query, self.context)
        self.limits.check_tokens(len(encoded.token_ids) + encoded.n_suffix, self.model.name)
        n_rescored = int(min(self.n_rescored, self.limits.rescored))
        encoded = replace(encoded, n_rescored=n_rescored, until=self.until)
        if KINDS[self.model.kind].fills_together or golds[0] is None:
            return encoded
        column = self.columns.find(golds[0], encoded.places[0])
        return replace(encoded, rescored=(column,)) if isinstance(column, int) else encoded

    def _at(
        self, query: Query, blank: int, encoded: Encoded, scores: Scores, word: str | None
    ) -> BlankAnswer:
        """The answer at a blank. scores: of this blank alone."""
        row = scores.log_probs
        gold = self._gold(query, blank, encoded, scores, word) if word else None
        n_listed = None if scores.n_listed is None else int(scores.n_listed[0])
        beyond = False
        if gold is not None and scores.floor is not None and not encoded.suffix:
            beyond = gold.log_prob is None or gold.log_prob < float(scores.floor[0])
        outside = None
        if not encoded.suffix and not self.columns.is_full and n_listed is None:
            outside = max(0.0, 1 - float(np.exp(np.logaddexp.reduce(row[0]))))
        over: Over = "vocabulary"
        n_over: int | None = self.model.vocabulary.size or None
        n_wanted: int | None = None
        added = gold.log_prob if gold and not gold.in_candidates else None
        if encoded.suffix:
            n_done = int(np.isfinite(row).sum())
            over, n_over = "rescored", n_done + (added is not None)
            n_best = min(encoded.n_rescored, row.shape[1])
            cut = n_done < n_best and (n_listed is None or time.monotonic() > encoded.until)
            n_wanted = n_best if cut else None
            row = row if added is None else row + _rest(added)
        elif self.renormalise:
            over, n_over = "candidates", row.shape[1] + (added is not None)
            total = float(np.logaddexp.reduce(row[0]))
            total = total if added is None else float(np.logaddexp(total, added))
            row = row - np.float32(total)
            if gold is not None and gold.log_prob is not None:
                gold = replace(gold, log_prob=gold.log_prob - total)
        best = best_candidates(row, min(self.top_k, row.shape[1]), order=scores.order)
        found = zip(best.columns[0].tolist(), best.log_probs[0].tolist(), strict=True)
        predictions = tuple(
            Prediction(rank, self.columns.words[column], value, float(np.exp(value)))
            for rank, (column, value) in enumerate(found, start=1)
            if np.isfinite(value)
        )
        if not predictions:
            raise UserError(
                f"{self.model.name} gives {n_listed or 0:,} tokens here, and no candidate is among "
                "them: choose other candidates, or 'full'."
            )
        first = None  # the likeliest of all tokens, where it needn't be a candidate
        if not (scores.first is None or scores.first_log_probs is None or self.columns.is_full):
            token = self.model.vocabulary.show_text([int(scores.first[0])])[0]
            value = float(scores.first_log_probs[0])
            first = Prediction(1, token, value, float(np.exp(value)))
        text, more = query.text(), (None, n_wanted, n_listed, beyond)
        return BlankAnswer(predictions, gold, over, n_over, text, outside, first, *more)

    def _continued(
        self, answer: BlankAnswer, place: Place, encoded: Encoded, scores: Scores
    ) -> BlankAnswer:
        """The answers with the words that they begin, where the model sees the left side alone."""
        if encoded.suffix or not isinstance(self.model, WordContinuer):
            return answer
        items = answer.predictions[:N_CONTINUED]
        table = self.columns.token_ids[place]
        best = best_candidates(scores.log_probs, len(items)).columns[0]
        forms = [[form for form in row if form >= 0] for row in table[best].tolist()]
        if answer.first and scores.first is not None:
            forms.append([int(scores.first[0])])
        words = self.model.continue_words([encoded] * len(forms), forms)
        named = tuple(replace(item, begins=word) for item, word in zip(items, words, strict=False))
        first = replace(answer.first, begins=words[-1]) if answer.first else None
        return replace(answer, predictions=(*named, *answer.predictions[len(items) :]), first=first)

    def _gold(self, query: Query, blank: int, encoded: Encoded, scores: Scores, gold: str) -> Gold:
        place, row = encoded.places[blank], scores.log_probs
        column = self.columns.find(gold, place)
        if isinstance(column, int):
            ids = self.columns.tokens_of(column, place)
            forms = [self.model.vocabulary.show_text([form]) for form in ids]
            pieces = next((form for form in forms if form == (gold,)), forms[0])
            rank = int(rank_gold(row, np.array([column]), order=scores.order).raw[0])
            return Gold(gold, rank, float(row[0, column]), pieces, True)
        word = self.columns.spelling.written(gold)
        _check_pieces(self.model, word, place)
        normaliser = 0.0 if scores.normaliser is None else float(scores.normaliser[0])
        score = self.model.word_log_prob(query, blank, word, self.context, normaliser)
        if not np.isfinite(score.log_prob):
            return Gold(gold, row.shape[1] + 1, None, score.pieces, False)
        others = row[0] + _rest(score.log_prob) if encoded.suffix else row[0]
        rank = 1 + int(np.count_nonzero(others > score.log_prob))
        return Gold(gold, rank, score.log_prob, score.pieces, False)


def _check_pieces(model: BlankFiller, word: str, place: Place) -> None:
    n_pieces = len(model.vocabulary.pieces(word, place))
    if n_pieces > MAX_PIECES:
        raise UserError(
            f"The gold has {n_pieces:,} pieces for {model.name}; at most {MAX_PIECES} are scored: "
            "shorten it."
        )


def rescores(
    model: BlankFiller,
    query: Query,
    *,
    columns: Columns,
    gold: str | None = None,
    context: Context | None = None,
    limits: Limits = UNLIMITED,
) -> bool:
    """Whether the model scores a one-blank text again for each of many words."""
    encoded = model.encode(query, choose_context(model, query, context))
    limits.check_tokens(len(encoded.token_ids) + encoded.n_suffix, model.name)
    if gold is not None and not isinstance(columns.find(gold, encoded.places[0]), int):
        _check_pieces(model, columns.spelling.written(gold), encoded.places[0])
    return bool(encoded.suffix)


def whole_words(
    model: BlankFiller,
    queries: Sequence[Query],
    words: Sequence[str],
    *,
    folded: bool,
    limits: Limits = UNLIMITED,
) -> list[str | None]:
    """The longer word that each answer begins, as a causal model goes on; None where it is whole.

    queries: of one blank each. folded: the words are lower-cased, as in `Candidates`.
    """
    found: list[str | None] = [None] * len(words)
    if not isinstance(model, WordContinuer):
        return found
    spelling = spell(model.vocabulary, folded=folded)
    until = limits.until()
    asked = {}
    for number, (query, word) in enumerate(zip(queries, words, strict=True)):
        if forms := spelling.tokens(word, place_of(query.parts[0])):
            asked[number] = replace(model.encode(query, "left"), until=until), forms
    whole = model.continue_words(*map(list, zip(*asked.values(), strict=True))) if asked else []
    for number, longer in zip(asked, whole, strict=True):
        found[number] = longer
    return found


def _rest(log_prob: float) -> np.float32:
    """log(1 - p): what a word leaves to the others once it is one of those that sum to one."""
    with np.errstate(divide="ignore"):
        return np.float32(np.log(-np.expm1(np.float64(min(log_prob, -SMALLEST)))))


def ask_all(
    models: Sequence[BlankFiller],
    query: Query,
    candidates: Candidates,
    *,
    passage: Found | None = None,
    segments: bool = False,
    on_model: Callable[[ModelAnswer], None] | None = None,
    **options: Any,
) -> ClozeAnswer:
    """Return every model's answers to a text, behind a passage; `on_model` is given each.

    segments: Passage and text are two segments.
    """
    answers = []
    asked = with_passage(query, passage, segments=segments)
    for model in models:
        answers.append(ask(model, asked, candidates, **options))
        if on_model:
            on_model(answers[-1])
    return ClozeAnswer(query.text(), candidates, tuple(answers), passage)


def ask_queries(
    model: BlankFiller,
    queries: Sequence[Query],
    candidates: Candidates,
    *,
    gold: str | Sequence[str | None] | None = None,
    context: Context | None = None,
    renormalise: bool = False,
    n_rescored: int = RESCORED,
    columns: Columns | None = None,
    limits: Limits = UNLIMITED,
) -> tuple[ModelAnswer, ...]:
    """One model's first answer to each of several texts of one blank, asked in batches.

    gold: of all the texts, or one a text. The other options are those of `ask`.
    """
    columns = columns or candidates.columns(model.vocabulary)
    used = [choose_context(model, query, context) for query in queries]
    until = limits.until()
    asked = {
        here: _Asked(model, candidates, columns, here, 1, renormalise, n_rescored, limits, until)
        for here in used
    }
    given = [gold] * len(queries) if gold is None or isinstance(gold, str) else gold
    golds = [word.strip() or None if word else None for word in given]
    encoded = [
        asked[here]._encode(query, (word,))
        for query, here, word in zip(queries, used, golds, strict=True)
    ]
    found: dict[int, BlankAnswer] = {}
    for batch in plan_batches(encoded):
        scores = model.blank_log_probs([encoded[number] for number in batch], columns)
        for row, number in enumerate(batch):
            found[number] = asked[used[number]]._at(
                queries[number], 0, encoded[number], _rows(scores, row), golds[number]
            )
    left = [number for number, here in enumerate(used) if here == "left"]
    firsts = [found[number].predictions[0] for number in left]
    words = whole_words(
        model,
        [queries[number] for number in left],
        [item.token for item in firsts],
        folded=candidates.fold_case,
        limits=limits,
    )
    for number, item, word in zip(left, firsts, words, strict=True):
        found[number] = replace(found[number], predictions=(replace(item, begins=word),))
    return tuple(
        _model_answer(model, here, columns, [found[number]]) for number, here in enumerate(used)
    )


def _model_answer(
    model: BlankFiller, context: Context, columns: Columns, blanks: Sequence[BlankAnswer]
) -> ModelAnswer:
    n, notes = len(columns.words), tuple(model.notes)
    return ModelAnswer(
        context=context, n_candidates=n, blanks=tuple(blanks), notes=notes, **model_fields(model)
    )


def _rows(scores: Scores, at: int) -> Scores:
    """The scores of one blank of several."""
    parts: dict[str, Any] = {field.name: getattr(scores, field.name) for field in fields(Scores)}
    one = {name: part[at : at + 1] for name, part in parts.items() if part is not None}
    return Scores(**one)
