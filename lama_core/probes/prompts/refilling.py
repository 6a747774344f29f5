"""Paraphrase and refine prompts by replacing their words with a language model's predictions.

    P(w_i | prompt without word i) = mean over pairs of P(w_i | x, prompt without word i, y)

refine                       LM-aware refinement: replaces each word, from left to right, with the
                             most probable one, until no word changes (Jiang et al. 2020, section
                             6.1)
paraphrase_by_refilling      replaces one or two words by the n most probable words, ranked by the
                             gain in log-probability over the old words, summed over the changes
                             (ours: it needs no download)
paraphrase_by_translation    B translations, and B back-translations of each, ranked by
                             log P(there | prompt) + log P(back | there); a text that is reached
                             twice keeps its best round trip (section 3.2: English - German -
                             English, B = 7)

`RefillForm` is which words are replaced, and by which words:

    paper   all words and punctuation marks between the placeholders, by any single-token word or
            punctuation mark
    words   all words of the prompt with a letter or digit, by single-token words of letters only

The placeholders are never replaced.

Departure: Refining a prompt
Departure: Paraphrases of prompts
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
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
from lama_core.texts import word_key
from lama_core.types import Fact, Query

RefillForm = Literal["paper", "words"]

MAX_PAIRS = 50  # facts, with the form `words`
by_log_prob = attrgetter("log_prob")
PLACEHOLDER = re.compile(r"\[\s*([XYxy])\s*\]")


@dataclass(frozen=True, slots=True)
class Paraphrase:
    """A paraphrase of a template.

    log_prob: The score for ranking. via: The intermediate template or translation.
    """

    template: str
    log_prob: float
    via: str


class Refiller:
    """Predicts words of prompts with one model; probabilities are means over facts.

    With the form `words`, only the first `MAX_PAIRS` facts are used.
    """

    def __init__(
        self, model: BlankFiller, pairs: Sequence[Fact], *, form: RefillForm = "words"
    ) -> None:
        """Raise UserError without pairs, or for a causal model."""
        if not KINDS[model.kind].sees_both:
            raise UserError(
                f"{model.name} is a causal model and can't see the words after a blank. Choose a "
                "masked or encoder-decoder model to paraphrase or refine prompts."
            )
        if not pairs:
            raise UserError("Cannot fill the prompt without facts. Give facts of a relation.")
        self.model = model
        self.form = form
        self.pairs = tuple(pairs[:MAX_PAIRS] if form == "words" else pairs)
        words = tuple(
            word for word in model.vocabulary.single_words() if word.isalpha() or form == "paper"
        )
        self.columns: Columns = Candidates(form, words).columns(model.vocabulary)

    def places(self, template: str) -> tuple[int, ...]:
        """Return the positions of the words that can be replaced."""
        words = template.split()
        fixed = [at for at, word in enumerate(words) if "[X]" in word or "[Y]" in word]
        if self.form == "paper":
            return tuple(range(fixed[0] + 1, fixed[-1]))
        return tuple(
            at
            for at, word in enumerate(words)
            if at not in fixed and any(character.isalnum() for character in word)
        )

    def log_probs(self, template: str, place: int) -> NDArray[np.float32]:
        """Return the log of the mean probability of each word at a position, float32 [column]."""
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
        """Return a word's value in `log_probs`; the lowest value if it is not a single token."""
        column = self.columns.find(word)
        return float(scores[column] if isinstance(column, int) else scores.min())

    def with_word(self, template: str, place: int, column: int) -> str:
        """Return the template with a new word at a position; a first word keeps its capital."""
        words = template.split()
        new = self.columns.words[column]
        words[place] = new.capitalize() if not place and words[place][:1].isupper() else new
        return " ".join(words)


def _places(template: str, refiller: Refiller) -> tuple[int, ...]:
    """Return the positions to replace. Raises UserError if the template is invalid or has none."""
    check_templates([template])
    places = refiller.places(template)
    if not places:
        raise UserError(f"The prompt {template!r} has no replaceable word. Give another prompt.")
    return places


def refine(template: str, refiller: Refiller) -> tuple[str, ...]:
    """Replace each word by the model's most probable one, until no word changes.

    Returns:
        All templates, from the original one to the refined one.
    """
    _places(template, refiller)
    steps = [template]
    for _ in range(10):
        before = current = steps[-1]
        for place in refiller.places(current):
            scores = refiller.log_probs(current, place)
            best = int(scores.argmax())
            if scores[best] > refiller.log_prob_of(scores, current.split()[place]):
                current = refiller.with_word(current, place, best)
                steps.append(current)
        if current == before:
            break
    return tuple(steps)


def paraphrase_by_refilling(
    template: str, refiller: Refiller, *, n_words: int, n_kept: int
) -> tuple[Paraphrase, ...]:
    """Return paraphrases with one or two words changed, best first."""
    places = _places(template, refiller)
    singles = [
        changed for place in places for changed in _change_word(template, place, refiller, n_words)
    ]
    singles.sort(key=by_log_prob, reverse=True)
    best = {normalise_template(single.template): single for single in reversed(singles)}
    for single in singles[:n_words]:
        for place in places:
            if single.template.split()[place] != template.split()[place]:
                continue
            for double in _change_word(single.template, place, refiller, n_words):
                log_prob = single.log_prob + double.log_prob
                _keep_best(best, Paraphrase(double.template, log_prob, single.template))
    best.pop(normalise_template(template), None)
    return tuple(sorted(best.values(), key=by_log_prob, reverse=True)[:n_kept])


def _keep_best(best: dict[str, Paraphrase], found: Paraphrase) -> None:
    key = normalise_template(found.template)
    if key not in best or found.log_prob > best[key].log_prob:
        best[key] = found


def _change_word(template: str, place: int, refiller: Refiller, n_words: int) -> list[Paraphrase]:
    """Return the template with each of the n most probable other words at a position."""
    scores = refiller.log_probs(template, place)
    old = template.split()[place]
    old_score = refiller.log_prob_of(scores, old)
    others = [
        at
        for at in np.argsort(-scores, kind="stable")[: n_words + 1].tolist()
        if word_key(refiller.columns.words[at]) != word_key(old)
    ]
    return [
        Paraphrase(refiller.with_word(template, place, at), float(scores[at]) - old_score, template)
        for at in others[:n_words]
    ]


def paraphrase_by_translation(
    template: str,
    there: Translator,
    back: Translator,
    *,
    n_beams: int,
    n_kept: int = 40,
) -> tuple[Paraphrase, ...]:
    """Return paraphrases, ranked by the probability of the round trip."""
    check_templates([template])
    outward = there.translate([template], n_beams)[0]
    returned = back.translate([translation.text for translation in outward], n_beams)
    best: dict[str, Paraphrase] = {}
    original = normalise_template(template)
    for first, seconds in zip(outward, returned, strict=True):
        for second in seconds:
            text = repair_placeholders(second.text)
            if not template_fault(text) and normalise_template(text) != original:
                _keep_best(best, Paraphrase(text, first.log_prob + second.log_prob, first.text))
    return tuple(sorted(best.values(), key=by_log_prob, reverse=True)[:n_kept])


def repair_placeholders(text: str) -> str:
    """Restore placeholders that a translator changed, such as `[ x ]` to `[X]`."""
    return PLACEHOLDER.sub(lambda match: f"[{match.group(1).upper()}]", " ".join(text.split()))
