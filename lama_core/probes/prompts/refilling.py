"""A prompt's own words, refilled by a language model: paraphrases, and LM-aware refinement.

    P(w_i | prompt without word i) = mean over pairs of P(w_i | x, prompt without word i, y)

refine: each word in turn, left to right, becomes the likeliest one, until nothing changes
(Jiang et al. 2020, section 6.1). paraphrase: the same probabilities give the n best words in each
place; one and two words changed, ranked by the mean of the log-probabilities of the new words
relative to the old (ours: it needs no download). paraphrase_by_translation: B candidates there and
B back again, so B^2, ranked by log P(there | prompt) + log P(back | there); the same text reached
twice counts with its best round trip (section 3.2: English - German - English, B = 7).

What a word is, and by what it is refilled (`Form`):

    paper   every word and sign between the placeholders, by any word or sign of the model's tokens
    words   every word of the prompt that holds a letter or a digit, by words of letters alone

A new word is always one token that stands on its own; the placeholders stay.

Departure: Refining a prompt
Departure: Paraphrases of prompts
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lama_core.candidates.columns import Candidates, Columns
from lama_core.datasets.prompt_sets import check_templates, normalise_template
from lama_core.datasets.template_syntax import template_fault
from lama_core.errors import UserError
from lama_core.models.auxiliary.translator import Translator
from lama_core.models.protocols import KINDS, BlankFiller
from lama_core.scoring.batches import score_cloze
from lama_core.types import Fact, Query

Form = Literal["paper", "words"]

MAX_PAIRS = 50  # of the form `words`
MAX_ROUNDS = 10
N_WORDS = 7
N_KEPT = 40
N_BEAMS = 7  # of a translation
PLACEHOLDER = re.compile(r"\[\s*([XYxy])\s*\]")


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


@dataclass(frozen=True, slots=True)
class Refined:
    """A refined prompt. steps: every template on the way, the first and the last included."""

    template: str
    steps: tuple[str, ...]
    converged: bool


class Refiller:
    """Refills places of prompts with one model, on some facts; the form `words` uses 50."""

    def __init__(self, model: BlankFiller, pairs: Sequence[Fact], *, form: Form = "words") -> None:
        """Raises UserError without pairs, or for a causal model, which sees no right side."""
        if not KINDS[model.kind].sees_both:
            raise UserError(
                f"{model.name} is a causal model and sees no words on the right: choose a masked "
                "or encoder-decoder model to refill prompts."
            )
        if not pairs:
            raise UserError("There are no pairs to fill the prompt with: give facts of a relation.")
        self.model = model
        self.form = form
        self.pairs = tuple(pairs[:MAX_PAIRS] if form == "words" else pairs)
        words = tuple(
            word
            for word in model.vocabulary.forms("after space")
            if word.isalpha() or form == "paper"
        )
        self.columns: Columns = Candidates(form, words).columns(model.vocabulary)

    def places(self, template: str) -> tuple[int, ...]:
        """Positions of the words that can be refilled."""
        words = template.split()
        held = [at for at, word in enumerate(words) if "[X]" in word or "[Y]" in word]
        if self.form == "paper":
            return tuple(range(held[0] + 1, held[-1]))
        return tuple(
            at
            for at, word in enumerate(words)
            if at not in held and any(character.isalnum() for character in word)
        )

    def log_probs(self, template: str, place: int) -> NDArray[np.float32]:
        """Log of the mean probability of every word in a place, float32 [word of `columns`]."""
        words = template.split()
        left, right = " ".join(words[:place]), " ".join(words[place + 1 :])
        queries = []
        for fact in self.pairs:
            sides = [
                text.replace("[X]", "\0").replace("[Y]", fact.object).replace("\0", fact.subject)
                for text in (left, right)
            ]
            queries.append(Query((f"{sides[0]} " if left else "", f" {sides[1]}" if right else "")))
        total = np.full(len(self.columns.words), -np.inf, np.float64)
        for block in score_cloze(self.model, queries, self.columns, context="both"):
            total = np.logaddexp(total, np.logaddexp.reduce(block.log_probs.astype(float), axis=0))
        return np.asarray(total - np.log(len(queries)), dtype=np.float32)

    def log_prob_of(self, scores: NDArray[np.float32], word: str) -> float:
        """A word's own value in `log_probs`; the lowest of all if it is no single token."""
        column = self.columns.index.get(self.columns.spelling.key(word))
        return float(scores.min() if column is None else scores[column])

    def with_word(self, template: str, place: int, column: int) -> str:
        """The template with another word in a place; at the start it keeps the old one's case."""
        words = template.split()
        new = self.columns.words[column]
        words[place] = new.capitalize() if not place and words[place][:1].isupper() else new
        return " ".join(words)


def _places(template: str, refiller: Refiller) -> tuple[int, ...]:
    """The places to refill. Raises UserError for what is no template, or has none."""
    check_templates([template])
    places = refiller.places(template)
    if not places:
        raise UserError(f"The prompt {template!r} has no word that could be refilled.")
    return places


def refine(template: str, refiller: Refiller) -> Refined:
    """Return the prompt that the model itself would write, word by word."""
    _places(template, refiller)
    steps = [template]
    for _ in range(MAX_ROUNDS):
        before = current = steps[-1]
        for place in refiller.places(current):
            scores = refiller.log_probs(current, place)
            best = int(scores.argmax())
            old = refiller.log_prob_of(scores, current.split()[place])
            if scores[best] > old:
                current = refiller.with_word(current, place, best)
                steps.append(current)
        if current == before:
            return Refined(current, tuple(steps), True)
    return Refined(steps[-1], tuple(steps), False)


def paraphrase_by_refilling(
    template: str, refiller: Refiller, *, n_words: int = N_WORDS, n_kept: int = N_KEPT
) -> Paraphrases:
    """Return paraphrases with one or two words changed, best first."""
    places = _places(template, refiller)
    first = [found for place in places for found in _changed(template, place, refiller, n_words)]
    first.sort(key=lambda one: -one.log_prob)
    best = {normalise_template(one.template): one for one in reversed(first)}
    n_tried = len(first)
    for one in first[:n_words]:
        for place in places:
            if one.template.split()[place] != template.split()[place]:
                continue
            for two in _changed(one.template, place, refiller, n_words):
                n_tried += 1
                joined = Paraphrase(two.template, one.log_prob + two.log_prob, one.template)
                key = normalise_template(joined.template)
                if key not in best or joined.log_prob > best[key].log_prob:
                    best[key] = joined
    best.pop(normalise_template(template), None)
    ranked = sorted(best.values(), key=lambda one: -one.log_prob)
    return Paraphrases(tuple(ranked[:n_kept]), n_tried, n_tried - len(best))


def _changed(template: str, place: int, refiller: Refiller, n_words: int) -> list[Paraphrase]:
    """The template with each of the best other words in a place."""
    scores = refiller.log_probs(template, place)
    old = template.split()[place]
    own = refiller.log_prob_of(scores, old)
    best = np.argsort(-scores, kind="stable")[: n_words + 1].tolist()
    others = [at for at in best if refiller.columns.words[at].lower() != old.lower()]
    return [
        Paraphrase(refiller.with_word(template, place, at), float(scores[at]) - own, template)
        for at in others[:n_words]
    ]


def paraphrase_by_translation(
    template: str,
    there: Translator,
    back: Translator,
    *,
    n_beams: int = N_BEAMS,
    n_kept: int = N_KEPT,
) -> Paraphrases:
    """Return paraphrases, ranked by the probability of the round trip."""
    check_templates([template])
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
