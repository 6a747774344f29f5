"""A model's answers at the blanks of a text.

prob(word) = exp(log_prob(word)), over the model's whole vocabulary; with `renormalise`, over
the candidates.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Annotated, Any, Literal

import numpy as np

from lama_core.candidates.columns import Candidates, Columns
from lama_core.candidates.lists import GIVEN, NotRanked, why_not_ranked
from lama_core.candidates.spelling import Place, Spelling, places_of, token_text
from lama_core.errors import UserError
from lama_core.models.protocols import (
    KINDS,
    RESCORED,
    BlankFiller,
    Context,
    Encoded,
    Scores,
    WordContinuer,
    WordRescorer,
)
from lama_core.models.vocabulary import CONTINUATION
from lama_core.progress import part_of
from lama_core.queries.proposed_words import proposed_columns
from lama_core.requests import argument, option
from lama_core.rounding import fixed, percent
from lama_core.scoring.batches import choose_context, plan_batches
from lama_core.scoring.limits import UNLIMITED, Limits
from lama_core.scoring.model_info import AboutModel, model_fields
from lama_core.scoring.ranking import best_candidates, rank_gold
from lama_core.scoring.shared_fields import MAX_TOP_K
from lama_core.tables import Table, table_of
from lama_core.types import Query

# Maximum subword tokens of a gold answer: each takes one forward pass.
MAX_PIECES = 32
# Number of answers for which the complete word is looked up.
N_CONTINUED = 10
ENDS = tuple(".!?…:;,。！？")
GOLD_SEPARATOR = "|"
MAX_GOLD = 1000  # characters
# Lower bound of a probability, so that its logarithm is finite.
SMALLEST = 1e-300

NOT_RANKED = " (not ranked: "  # after a token, before the reason

# The set of words over which probabilities sum to one.
Over = Literal["vocabulary", "rescored", "candidates", "answers", "found"]
# Text for each set, if its number of words is unknown.
OVER_AS_TEXT: dict[Over, str] = {
    "vocabulary": "all tokens of the model",
    "rescored": "the rescored words",
    "candidates": "the candidates",
    "answers": "the answers",
    "found": "the words found",
}
# The name of the setting whose value is one of these texts, for pins.
OVER_SETTING = "log-probabilities over"
# What a model sees, as text.
CONTEXTS: dict[Context, str] = {"left": "sees the left side only", "both": "sees both sides"}
# Text for each set, after its number of words.
OVER: dict[Over, str] = {
    "vocabulary": "tokens",
    "rescored": "rescored words",
    "candidates": "candidates",
    "answers": "answers",
    "found": "words found",
}


def called(over: Over) -> Literal["probability", "share"]:
    """Return what a number is called that sums to one over a set of words."""
    return "probability" if over == "vocabulary" else "share"


TextWithBlank = Annotated[str, argument("A text with a blank: [MASK], <mask>, [Y], or ___.")]
Golds = Annotated[
    str | None,
    option("The gold (right) answer: its rank is shown. For several blanks: one each, split by |."),
]


@dataclass(frozen=True, slots=True)
class Prediction:
    """One answer of a model; begins: the longer word that it starts (`New York`), if any.

    rank: Its rank among the candidates; None for a token that isn't ranked.
    """

    rank: int | None
    token: str
    log_prob: float
    prob: float
    begins: str | None = None


@dataclass(frozen=True, slots=True)
class Gold:
    """The gold answer's rank at a blank.

    Attributes:
        word: The gold answer.
        rank: Its rank; if it isn't a candidate, the rank that it would have as a candidate.
        log_prob: Its natural log-probability; None if the model can't write it.
        pieces: Its subword tokens.
        in_candidates: Whether it is a candidate.
        proposed: Whether it is one of the words that are ranked, which a right answer doesn't
            change. Otherwise, it was scored next to them, and its rank is the one that it would
            have among them.
    """

    word: str
    rank: int
    log_prob: float | None
    pieces: tuple[str, ...]
    in_candidates: bool
    proposed: bool = True

    @property
    def is_changed(self) -> bool:
        """Whether the tokenizer changes more than the case of an answer that is one token."""
        tokens = [token.removeprefix(CONTINUATION).lower() for token in self.pieces]
        return len(tokens) == 1 and tokens[0] != self.word.lower()

    def shown_log_prob(self) -> str:
        """Return the log-probability with two decimals, or the reason why there is none."""
        return (
            "can't be written by this model" if self.log_prob is None else fixed(self.log_prob, 2)
        )

    def describe_apart(self, n_ranked: int | None) -> str:
        """Return where a gold answer that isn't ranked would be; empty if it is ranked.

        n_ranked: Number of ranked words; None if unknown.
        """
        if self.proposed:
            return ""
        if self.rank == 1:
            words = "all words" if n_ranked is None else f"all {n_ranked:,} words"
            return f"not proposed; scores higher than {words} that were ranked"
        of = "" if n_ranked is None else f" of {n_ranked + 1:,}"
        return f"not proposed; would be number {self.rank:,}{of}"


@dataclass(frozen=True, slots=True)
class BlankAnswer:
    """A model's answers at one blank.

    Attributes:
        predictions: The best answers, best first.
        gold: The gold answer's rank, if one was given.
        over: The words over which probabilities sum to one.
        n_over: Number of these words; None if unknown.
        asked: The text that the model got for this blank; its answers may fill earlier blanks.
        outside: Share of the probability outside the candidates; None if unknown, or if all tokens
            are candidates.
        first: The likeliest of all tokens; for a causal model, given the left context.
        not_ranked: Why `first` isn't a candidate; None if it is one, or that is unknown.
        n_candidates: Number of candidates; None if unknown.
        with_full_stop: The first answer if the text ended in a full stop; None if that changes
            nothing, or wasn't tried.
        n_listed: Number of tokens that a server returned, if it lists only the likeliest.
        gold_beyond: Whether the gold answer isn't among the `n_listed` tokens, so that its rank is
            a lower bound.
    """

    predictions: tuple[Prediction, ...]
    gold: Gold | None = None
    over: Over = "vocabulary"
    n_over: int | None = None
    asked: str = ""
    outside: float | None = None
    first: Prediction | None = None
    not_ranked: NotRanked | None = None
    n_candidates: int | None = None
    with_full_stop: str | None = None
    n_listed: int | None = None
    gold_beyond: bool = False

    @property
    def likeliest_outside(self) -> Prediction | None:
        """The likeliest of all tokens if it isn't a candidate and beats the first candidate.

        Its probability is over the model's whole vocabulary.
        """
        if self.not_ranked is None or self.first is None or self.over == "rescored":
            return None
        best = max((item.log_prob for item in self.predictions), default=-math.inf)
        rest = 1 - (self.outside or 0.0)
        share = math.log(max(rest, SMALLEST)) if self.over == "candidates" else 0.0
        return self.first if self.first.log_prob > best + share else None

    @property
    def beaten_by(self) -> Prediction | None:
        """`likeliest_outside`, unless it is a word of the query, which a setting excludes."""
        return None if self.not_ranked == GIVEN else self.likeliest_outside

    @property
    def rows(self) -> tuple[Prediction, ...]:
        """The predictions, after the token outside the candidates that beats them, if any."""
        outside = self.likeliest_outside
        return (outside, *self.predictions) if outside else self.predictions

    @property
    def is_right(self) -> bool | None:
        """Whether the gold answer is the first answer.

        The rank among the candidates counts: a likelier token that isn't ranked changes nothing.
        None without a gold answer, and if it would be first, but isn't ranked.
        """
        if self.gold is None:
            return None
        is_first, is_ranked = self.gold.rank == 1, self.gold.in_candidates and self.gold.proposed
        return is_first if is_ranked or not is_first else None

    def why_not_ranked(self) -> str:
        """Return why the token that beats the candidates isn't one; empty if there is none."""
        return self.not_ranked.reason if self.not_ranked and self.likeliest_outside else ""

    def describe_outside(self) -> str:
        """Return the token that beats the candidates, and why it isn't one; empty if none does."""
        if (item := self.likeliest_outside) is None:
            return ""
        return f"{visible(item.token)} {fixed(item.prob, 3)}{NOT_RANKED}{self.why_not_ranked()})"

    def notes(self) -> list[str]:
        """Return notes on how the answers came about, one sentence or two each."""
        notes = []
        if self.over == "rescored" and self.n_over:
            notes.append(
                f"The best of the {self.n_over:,} words that were proposed and rescored with the "
                "whole sentence; other words may fit better."
            )
        if self.n_listed is not None:
            beyond = "; the right answer isn't among them, so its rank is a lower bound"
            notes.append(
                f"Shortened list: the server returns only its {self.n_listed:,} likeliest tokens, "
                f"and only these are ranked{beyond * self.gold_beyond}."
            )
        if self.outside is not None and self.first:
            notes.append(f"{percent(self.outside)} % of the probability is outside the candidates.")
        elif self.first:
            start = f" (start of “{self.first.begins}”)" if self.first.begins else ""
            notes.append(
                "Given the left context only, the likeliest of all tokens: "
                f"{shown_token(self.first.token)}{start} with probability "
                f"{fixed(self.first.prob, 3)}."
            )
        if self.with_full_stop is not None:
            notes.append(
                f"With a full stop at the end of the text, “{self.with_full_stop}” would be first."
            )
        return notes

    def prob_of(self, item: Prediction) -> str:
        """Return what a row's probabilities sum to one over, as text."""
        return self.shown_over() if item.rank else OVER_AS_TEXT["vocabulary"]

    def shown_over(self) -> str:
        """Return the words over which probabilities sum to one, as text."""
        n = self.n_over
        return OVER_AS_TEXT[self.over] if n is None else f"{n:,} {OVER[self.over]}"


@dataclass(frozen=True, slots=True)
class ModelAnswer(AboutModel):
    """One model's answers at each blank.

    Attributes:
        context: The context that the model saw: `left`, or `both` sides of the blank.
        n_candidates: Number of candidates that are one token of the model.
        blanks: The answers at each blank.
        notes: Notes on the model.
    """

    context: Context
    n_candidates: int
    blanks: tuple[BlankAnswer, ...]
    notes: tuple[str, ...] = ()


# White space as `Vocabulary.show` writes it -> in words.
WHITE_SPACE = {"␠": "a space", "\\n": "a line break", "\\n\\n": "two line breaks", "\\t": "a tab"}


def shown_token(token: str) -> str:
    """Return a token in quotes; white space in words."""
    return WHITE_SPACE.get(token, f"“{token}”")


def visible(token: str) -> str:
    """Return a token; white space in words."""
    return WHITE_SPACE.get(token, token)


def marked_answer(word: str, begins: str | None, right: bool | None, outside: str = "") -> str:
    """Return an answer with the longer word that it begins, and ✓ or ✗ if its verdict is known.

    outside: The likelier token that isn't a candidate, as text; empty if there is none.
    """
    mark = {True: " ✓", False: " ✗", None: ""}[right]
    after = f"; likelier: {outside}" if outside else ""
    return f"{visible(word)}{f' → {begins}' if begins else ''}{mark}{after}"


def gold_columns(gold: Gold | None) -> dict[str, Any]:
    """Return the gold answer as columns of a table."""
    names = ("gold", "gold_rank", "gold_log_prob", "gold_proposed")
    if gold is None:
        return dict.fromkeys(names)
    is_ranked = gold.in_candidates and gold.proposed
    return dict(zip(names, (gold.word, gold.rank, gold.log_prob, is_ranked), strict=True))


def blank_json(blank: BlankAnswer) -> dict[str, Any]:
    """Return a blank's answers as JSON values, without optional keys that have no value."""
    optional = {
        "gold": None,
        "n_listed": None,
        "gold_beyond": False,
        "not_ranked": None,
    }
    found = asdict(blank) | {"not_ranked": None}
    if blank.gold and blank.gold.proposed:
        del found["gold"]["proposed"]
    if outside := blank.likeliest_outside:
        found["not_ranked"] = asdict(outside) | {"reason": blank.why_not_ranked()}
    return {name: value for name, value in found.items() if (name, value) not in optional.items()}


def candidates_json(candidates: Candidates, sizes: Mapping[str, int]) -> dict[str, Any]:
    """Return the candidates as JSON values.

    sizes: Model -> number of words that it ranks. If these differ, there is no `size`, but `sizes`.
    """
    words, several = candidates.words, set(sizes.values())
    if words is None and len(several) > 1:
        return {"name": candidates.name, "sizes": dict(sizes)}
    size = len(words) if words is not None else max(several, default=0)
    return {"name": candidates.name, "size": size}


def answer_json(answer: ModelAnswer) -> dict[str, Any]:
    """Return a model's answers as JSON values."""
    blanks = [blank_json(blank) for blank in answer.blanks]
    return {**answer.model_json(), "context": answer.context, "blanks": blanks}


def describe_ranked(answer: ModelAnswer, candidates: Candidates) -> dict[str, str]:
    """Return setting -> value, for what a model's first answers depend on."""
    words = candidates.words
    own = "each model's own words" if candidates.keep else "each model's own tokens"
    size = own if words is None else f"{len(words):,} words"
    return {
        "ranked": f"{candidates.name}, {size}",
        OVER_SETTING: OVER_AS_TEXT[answer.blanks[0].over],
        "context": CONTEXTS[answer.context],
    }


def describe_gold(answer: ModelAnswer) -> str:
    """Return as text the right answer at the first blank and its rank; before, what – means."""
    blank = answer.blanks[0]
    first = f" (blank 1 of {len(answer.blanks)})" if len(answer.blanks) > 1 else ""
    texts = [f"–: not ranked ({blank.why_not_ranked()})" if blank.likeliest_outside else ""]
    if blank.gold:
        where = blank.gold.describe_apart(blank.n_over) or f"rank {blank.gold.rank:,}"
        texts.append(f"Right answer {blank.gold.word}: {where}")
    return "; ".join(filter(None, texts)) + first


def tables_of_blank(blank: BlankAnswer, title: str) -> Iterator[Table | str]:
    """Yield a table of the predictions, best first, with the gold answer's rank; then the notes."""
    rows: list[tuple[object, ...]] = [
        (
            item.rank or "-",
            (f"{item.token} ({item.begins})" if item.begins else item.token)
            + f" (not ranked: {blank.why_not_ranked()})" * (item.rank is None),
            fixed(item.prob, 3),
            fixed(item.log_prob, 2),
        )
        for item in blank.rows
    ]
    if gold := blank.gold:
        is_token = len(gold.pieces) == 1 and not gold.is_changed
        notes = [] if is_token else [" + ".join(gold.pieces)]
        notes += filter(None, [gold.describe_apart(blank.n_over)])
        note = f" ({'; '.join(notes)})" if notes else ""
        rank = gold.rank if gold.proposed else "-"
        rows.append((rank, f"gold: {gold.word}{note}", "", gold.shown_log_prob()))
    value = "prob" if called(blank.over) == "probability" else "share"
    heads = ("rank", "word", f"{value} of {blank.shown_over()}", f"log-{value}")
    yield table_of(heads, rows, title=title)
    yield from blank.notes()


def gold_answers(gold: str | None, n_blanks: int) -> tuple[str | None, ...]:
    """Return the gold answer of each blank, None for blanks without one.

    Args:
        gold: The gold answer; for several blanks one each, separated by `|`.
        n_blanks: Number of blanks.

    Raises:
        UserError: If the numbers of gold answers and blanks differ, or the text is too long.
    """
    if not gold or not gold.strip():
        return (None,) * n_blanks
    check_gold(gold)
    if n_blanks == 1:
        return (gold.strip(),)
    golds = tuple(word.strip() or None for word in gold.split(GOLD_SEPARATOR))
    if len(golds) != n_blanks:
        raise UserError(
            f"The text has {n_blanks} blanks, but there {'are' if len(golds) > 1 else 'is'} "
            f"{len(golds)} right answer{'s' if len(golds) > 1 else ''}: write one for each blank, "
            f"separated by {GOLD_SEPARATOR}."
        )
    return golds


def check_gold(gold: str, what: str = "right answer") -> None:
    """Raise UserError for a gold answer that is too long; what: its name in the message."""
    if len(gold) > MAX_GOLD:
        raise UserError(
            f"The {what} has {len(gold):,} characters; the maximum is {MAX_GOLD:,}. Shorten it."
        )


OnAnswer = Callable[[ModelAnswer], object]


def query_model(
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
    on_first: OnAnswer | None = None,
) -> ModelAnswer:
    """Return one model's best answers at each blank of a text.

    A masked model fills all blanks in one pass. A causal or encoder-decoder model fills them from
    left to right, with its best answers in the earlier blanks. The right context of a causal model
    ends at the next blank; an encoder-decoder model sees the whole text, with later blanks empty.
    Each blank has an equal share of the time, plus the time that earlier blanks didn't use.

    Args:
        model: The model.
        query: The text.
        candidates: The candidates.
        top_k: Number of answers.
        gold: The gold answer, as for `gold_answers`.
        context: The context; None chooses it with `batches.choose_context`.
        renormalise: Whether probabilities sum to one over the candidates.
        n_rescored: Number of words that a causal model rescores with context `both`, in addition
            to the gold answer.
        columns: The candidates' columns, if the caller has them.
        limits: Limits on the cost.
        on_first: Called for each blank for which a causal model rescores more words than fit in
            the first pass, with the answers so far: the last blank's answer ranks the
            first `FIRST_RESCORED` proposed words only, without the gold answer's rank. An exception
            from it ends the query.

    Raises:
        UserError: If the text doesn't fit the model, top_k is out of range, or the time is over
            before the last blank, or before all proposed words are scored.
    """
    if not 1 <= top_k <= MAX_TOP_K:
        raise UserError(f"top-k is {top_k}: choose a number from 1 to {MAX_TOP_K}.")
    used = choose_context(model, query, context)
    columns = columns or candidates.columns(model.vocabulary, places_of(query))
    golds = gold_answers(gold, query.n_blanks)
    scorer = _BlankScorer(
        model, candidates, columns, used, top_k, renormalise, n_rescored, limits, limits.until()
    )
    if KINDS[model.kind].fills_together:
        return scorer.model_answer(scorer.answers(query, golds, to_end=True))
    kind, started = KINDS[model.kind], time.monotonic()
    blanks: list[BlankAnswer] = []

    def report(answer: BlankAnswer) -> None:
        if on_first:
            on_first(scorer.model_answer([*blanks, answer]))

    left = query.parts[0]
    for number, right in enumerate(query.parts[1:]):
        limits.check_time(started, number, query.n_blanks, model.name)
        until = limits.until(started, (number + 1) / query.n_blanks)
        later = query.parts[number + 2 :]
        parts = (left, right, *later) if kind.sees_both else (left, right)
        to_end = kind.sees_both or not later
        with part_of(number, query.n_blanks):
            blanks += replace(scorer, until=until).answers(
                Query(parts), golds[number : number + 1], to_end, on_first and report
            )
        left = left + blanks[-1].predictions[0].token + right
    return scorer.model_answer(blanks)


@dataclass(frozen=True, slots=True)
class _BlankScorer:
    """The settings with which a model answers at blanks; see `query_model`."""

    model: BlankFiller
    candidates: Candidates
    columns: Columns
    context: Context
    top_k: int
    renormalise: bool
    n_rescored: int
    limits: Limits
    until: float

    def model_answer(self, blanks: Sequence[BlankAnswer]) -> ModelAnswer:
        """Return the answers at each blank, with what is true of the model."""
        return ModelAnswer(
            context=self.context,
            n_candidates=len(self.columns.words),
            blanks=tuple(blanks),
            notes=tuple(self.model.notes),
            **model_fields(self.model),
        )

    def answers(
        self,
        query: Query,
        golds: Sequence[str | None],
        to_end: bool,
        on_first: Callable[[BlankAnswer], None] | None = None,
    ) -> list[BlankAnswer]:
        """Return the answers at the first `len(golds)` blanks of a query, from one forward pass.

        golds: The gold answer of each blank to answer; None for a blank without one.
        to_end: Whether the query reaches the end of the text, where a full stop may be missing.
        on_first: Called with the preliminary answer; see `query_model`.
        """
        encoded = self.encode(query, golds)
        last = query.parts[-1].rstrip()
        try_full_stop = to_end and self.context != "left" and not last.endswith(ENDS)
        batch = [encoded]
        if try_full_stop:  # in the same batch, because the model reuses the shared left context
            with_stop = replace(query, parts=(*query.parts[:-1], f"{last}."))
            batch.append(self.encode(with_stop, golds, encoded.proposed))
        if on_first and isinstance(self.model, WordRescorer):

            def report(scores: Scores) -> None:
                on_first(self.answer(query, 0, encoded, _row(scores, 0)))

            all_scores = self.model.rescored_log_probs(batch, self.columns, report)
        else:
            all_scores = self.model.blank_log_probs(batch, self.columns)
        answers = []
        for blank, gold in enumerate(golds):
            scores = _row(all_scores, blank)
            answer = self.answer(query, blank, encoded, scores, *([gold] if gold else ()))
            if not encoded.suffix and isinstance(self.model, WordContinuer):
                # The complete words that the answers of a causal model start.
                items, first = answer.predictions[:N_CONTINUED], answer.first
                table = self.columns.table(encoded.places[blank]).ids
                best = best_candidates(scores.log_probs, len(items)).columns[0]
                forms = [[form for form in row if form >= 0] for row in table[best].tolist()]
                if first and scores.first is not None:
                    forms.append([int(scores.first[0])])
                words = self.model.continue_words([encoded] * len(forms), forms, scores.prefix)
                longer = [
                    replace(item, begins=word) for item, word in zip(items, words, strict=False)
                ]
                answer = replace(
                    answer,
                    predictions=(*longer, *answer.predictions[N_CONTINUED:]),
                    first=replace(first, begins=words[-1]) if first else None,
                )
            if try_full_stop:
                stopped = _row(all_scores, len(golds) + blank)
                column = best_candidates(stopped.log_probs, 1, order=stopped.order).columns[0, 0]
                word = self.columns.words[column]
                if word != answer.predictions[0].token:
                    answer = replace(answer, with_full_stop=word)
            answers.append(answer)
        return answers

    def encode(
        self,
        query: Query,
        golds: Sequence[str | None],
        proposed: tuple[int, ...] | None = None,
    ) -> Encoded:
        """Return the query as tokens, with the column of the gold answer and proposed words.

        proposed: The columns of the proposed words, if they are known.
        """
        encoded = self.model.encode(query, self.context)
        self.limits.check_tokens(len(encoded.token_ids) + encoded.n_suffix, self.model.name)
        encoded = replace(
            encoded, n_rescored=int(min(self.n_rescored, self.limits.rescored)), until=self.until
        )
        if encoded.suffix:
            if proposed is None:
                proposed = proposed_columns(query, self.columns)
            encoded = replace(encoded, proposed=proposed)
        if KINDS[self.model.kind].fills_together or golds[0] is None:
            return encoded
        column = self.columns.find(golds[0], places_of(query)[0])
        return replace(encoded, gold=column) if isinstance(column, int) else encoded

    def answer(
        self, query: Query, blank: int, encoded: Encoded, scores: Scores, *words: str
    ) -> BlankAnswer:
        """Return the answers at one blank, given its scores and its gold answers (`words`).

        Raises:
            UserError: If no candidate has a probability.
        """
        log_probs = scores.log_probs
        n_listed = None if scores.n_listed is None else int(scores.n_listed[0])
        place = places_of(query)[blank]
        listed = {
            word: column
            for word in words
            if isinstance(column := self.columns.find(word, place), int)
        }
        golds = [
            self._gold(query, blank, encoded, scores, word)
            for number, word in enumerate(listed or words[:1])
            if not number or np.isfinite(log_probs[0, listed[word]])
        ]
        gold = min(
            golds,
            key=lambda one: (not (one.in_candidates and one.proposed), one.rank),
            default=None,
        )
        outside, gold_beyond = None, False
        over: Over = "vocabulary"
        n_over: int | None = self.model.vocabulary.size or None
        if encoded.suffix:
            over, n_over = "rescored", int(np.isfinite(log_probs).sum())
        else:
            # A server lists the likeliest tokens only, perhaps without the gold answer.
            gold_beyond = (
                gold is not None
                and scores.floor is not None
                and (gold.log_prob is None or gold.log_prob < float(scores.floor[0]))
            )
            if not self.columns.is_full and n_listed is None:
                outside = max(0.0, 1 - float(np.exp(np.logaddexp.reduce(log_probs[0]))))
            if self.renormalise:
                total = float(np.logaddexp.reduce(log_probs[0]))
                over, n_over = "candidates", log_probs.shape[1]
                log_probs = log_probs - np.float32(total)
                if gold is not None and gold.log_prob is not None:
                    # Over the candidates and itself, if it isn't one of them.
                    is_ranked = gold.in_candidates and gold.proposed
                    own = total if is_ranked else float(np.logaddexp(total, gold.log_prob))
                    gold = replace(gold, log_prob=gold.log_prob - own)
        first, not_ranked = None, None
        if scores.first is not None and not self.columns.is_full:
            token, vocabulary = int(scores.first[0]), self.model.vocabulary
            if scores.first_log_probs is not None:
                value = float(scores.first_log_probs[0])
                first = Prediction(None, token_text(vocabulary, token), value, float(np.exp(value)))
            if not (self.columns.table(encoded.places[blank]).ids == token).any():
                not_ranked = why_not_ranked(self.candidates, vocabulary, token)
        best = best_candidates(log_probs, min(self.top_k, log_probs.shape[1]), order=scores.order)
        ranked = zip(best.columns[0].tolist(), best.log_probs[0].tolist(), strict=True)
        predictions = tuple(
            Prediction(rank, self.columns.words[column], value, float(np.exp(value)))
            for rank, (column, value) in enumerate(ranked, start=1)
            if np.isfinite(value)
        )
        if not predictions:
            raise UserError(
                f"{self.model.name} returned {n_listed or 0:,} tokens, and none of them is a "
                "candidate: choose other candidates, or 'full'."
            )
        return BlankAnswer(
            predictions,
            gold,
            over,
            n_over,
            asked=query.text(),
            outside=outside,
            first=first,
            not_ranked=not_ranked,
            n_candidates=len(self.columns.words),
            n_listed=n_listed,
            gold_beyond=gold_beyond,
        )

    def _gold(self, query: Query, blank: int, encoded: Encoded, scores: Scores, gold: str) -> Gold:
        """Return the rank and log-probability of a gold answer."""
        place, row = places_of(query)[blank], scores.log_probs
        column = self.columns.find(gold, place)
        if isinstance(column, int):
            ids = self.columns.tokens_of(column, place)
            forms = [self.model.vocabulary.show_text([form]) for form in ids]
            pieces = next((form for form in forms if form == (gold,)), forms[0])
            apart = float(scores.gold_log_probs()[0])
            if scores.gold is not None and column == encoded.gold and not math.isnan(apart):
                rank = 1 + int(np.count_nonzero(row[0] >= scores.gold[0]))
                return Gold(gold, rank, apart, pieces, True, proposed=False)
            rank = int(rank_gold(row, np.array([column]), order=scores.order).raw[0])
            return Gold(gold, rank, float(row[0, column]), pieces, True)
        _check_pieces(self.model, gold, place)
        normaliser = 0.0 if scores.normaliser is None else float(scores.normaliser[0])
        score = self.model.word_log_prob(query, blank, gold, self.context, normaliser)
        if not np.isfinite(score.log_prob):
            return Gold(gold, row.shape[1] + 1, None, score.pieces, False)
        others = row[0]
        if encoded.suffix:  # adding a word of probability p multiplies the others' by 1 - p
            with np.errstate(divide="ignore"):
                rest = np.log(-np.expm1(np.float64(min(score.log_prob, -SMALLEST))))
            others = others + np.float32(rest)
        rank = 1 + int(np.count_nonzero(others > score.log_prob))
        return Gold(gold, rank, score.log_prob, score.pieces, False)


def _check_pieces(model: BlankFiller, word: str, place: Place) -> None:
    n_pieces = len(model.vocabulary.pieces(word, place))
    if n_pieces > MAX_PIECES:
        raise UserError(
            f"The right answer has {n_pieces:,} subword tokens for {model.name}; the maximum is "
            f"{MAX_PIECES}. Shorten it."
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
    """Return whether the model rescores words to answer a text with one blank.

    Raises:
        UserError: If the text or the gold answer is too long.
    """
    encoded = model.encode(query, choose_context(model, query, context))
    limits.check_tokens(len(encoded.token_ids) + encoded.n_suffix, model.name)
    place = places_of(query)[0]
    if gold is not None and not isinstance(columns.find(gold, place), int):
        _check_pieces(model, gold, place)
    return bool(encoded.suffix)


def extended_words(
    model: BlankFiller,
    queries: Sequence[Query],
    words: Sequence[str],
    *,
    folded: bool,
) -> list[str | None]:
    """Return the longer word that a causal model makes of each answer by continuing it.

    Args:
        model: The model; if it isn't causal, all results are None.
        queries: Queries with one blank each.
        words: The answer to each query.
        folded: Whether the words are lower-cased, as in `Candidates`.

    Returns:
        The longer words; None for an answer that is complete.
    """
    complete: list[str | None] = [None] * len(words)
    if not isinstance(model, WordContinuer):
        return complete
    spelling = Spelling(model.vocabulary, folded)
    known = {
        number: forms
        for number, (query, word) in enumerate(zip(queries, words, strict=True))
        if (forms := spelling.tokens(word, places_of(query)[0]))
    }
    if known:
        encoded = [model.encode(queries[number], "left") for number in known]
        found = model.continue_words(encoded, list(known.values()))
        for number, longer in zip(known, found, strict=True):
            complete[number] = longer
    return complete


def query_in_batches(
    model: BlankFiller,
    queries: Sequence[Query],
    candidates: Candidates,
    *,
    top_k: int = 1,
    gold: str | Sequence[str | Sequence[str] | None] | None = None,
    context: Context | None = None,
    renormalise: bool = False,
    n_rescored: int = RESCORED,
    columns: Columns | None = None,
    limits: Limits = UNLIMITED,
) -> tuple[ModelAnswer, ...]:
    """Return one model's first answers to each of several texts, computed in batches.

    Only the first answer is completed to a longer word. queries: Texts with one blank each.
    gold: One gold answer for all texts, or a list with one or several for each text: of several,
        the best ranked candidate counts, or else the first.
    Other options as for `query_model`.
    """
    columns = columns or candidates.columns(
        model.vocabulary, (place for query in queries for place in places_of(query))
    )
    contexts = [choose_context(model, query, context) for query in queries]
    scorers = {
        used: _BlankScorer(
            model, candidates, columns, used, top_k, renormalise, n_rescored, limits, math.inf
        )
        for used in contexts
    }
    given = [gold] * len(queries) if gold is None or isinstance(gold, str) else gold
    every = [[one] if isinstance(one, str) else one or () for one in given]
    golds = [tuple(filter(None, map(str.strip, words))) for words in every]
    encoded = [
        scorers[used].encode(query, words[:1] or (None,))
        for query, used, words in zip(queries, contexts, golds, strict=True)
    ]
    # Each text whose words are rescored has the time of a query.
    until = limits.until(share=max(1, sum(bool(one.suffix) for one in encoded)))
    encoded = [replace(one, until=until) for one in encoded]
    found: dict[int, BlankAnswer] = {}
    for batch in plan_batches(encoded):
        scores = model.blank_log_probs([encoded[number] for number in batch], columns)
        for row, number in enumerate(batch):
            found[number] = scorers[contexts[number]].answer(
                queries[number], 0, encoded[number], _row(scores, row), *golds[number]
            )
    left = [number for number, used in enumerate(contexts) if used == "left"]
    firsts = [found[number].predictions[0] for number in left]
    words = extended_words(
        model,
        [queries[number] for number in left],
        [item.token for item in firsts],
        folded=candidates.fold_case,
    )
    for number, item, word in zip(left, firsts, words, strict=True):
        found[number] = replace(
            found[number], predictions=(replace(item, begins=word), *found[number].predictions[1:])
        )
    return tuple(
        scorers[used].model_answer([found[number]]) for number, used in enumerate(contexts)
    )


def _row(scores: Scores, row: int) -> Scores:
    """Return one row of the scores, as `Scores` with a single row."""
    parts: dict[str, Any] = {field.name: getattr(scores, field.name) for field in fields(Scores)}
    prefix = parts.pop("prefix")
    rows = {name: part[row : row + 1] for name, part in parts.items() if part is not None}
    return Scores(**rows, prefix=prefix)
