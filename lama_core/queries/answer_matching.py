"""Matching of a generated text with the right answers and their aliases.

    right         whole words of the text are an answer, after normalisation; an answer that stands
                  in the question counts only if it is the whole text
    exact match   the normalised texts are equal (SQuAD, Rajpurkar et al. 2016)
    contains      an answer is part of the text (PopQA, Mallen et al. 2023)
    token F1      overlap of the normalised words (SQuAD, Rajpurkar et al. 2016)
    no answer     the text is empty, or contains one of `REFUSALS`

Each is the best over all right answers. A text's `verdict` is that of `right`, because a chat model
answers in a sentence, and `contains` also counts "Romania" for "Roman" and a text that only repeats
the question.

Departure: Whole words of a generated answer
"""

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["match", "no match", "no answer"]
# Phrases that count as refusing to answer, in lower case.
REFUSALS = (
    "i don't know",
    "i do not know",
    "i'm not sure",
    "i am not sure",
    "i'm sorry",
    "i am sorry",
    "i can't answer",
    "i cannot answer",
    "i'm unable to",
    "i am unable to",
    "there is no information",
    "as an ai",
)
# Scripts whose words aren't separated by spaces (Hangul: particles are written with the word), as
# their characters' Unicode names begin.
UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN")
_PUNCTUATION = re.compile(r"[^\w\s]")
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


@dataclass(frozen=True, slots=True)
class Match:
    """The comparison of a text with the right answers. token_f1: Between 0 and 1."""

    right: bool
    exact_match: bool
    contains: bool
    token_f1: float
    no_answer: bool

    @property
    def verdict(self) -> Verdict:
        """Return `match` if the text is right, else `no answer` or `no match`."""
        return "match" if self.right else "no answer" if self.no_answer else "no match"


def match(text: str, answers: Sequence[str], question: str = "") -> Match:
    """Compare a text with the right answers; each value is the best over the answers."""
    return Match(
        right=any(is_right(text, answer, question) for answer in answers),
        exact_match=any(is_exact(text, answer) for answer in answers),
        contains=any(is_part(text, answer) for answer in answers),
        token_f1=max((token_f1(text, answer) for answer in answers), default=0.0),
        no_answer=is_no_answer(text),
    )


def normalised(text: str) -> str:
    """Return the text in lower case, without punctuation, articles and extra spaces (SQuAD)."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def is_exact(text: str, answer: str) -> bool:
    """Return whether the normalised texts are equal."""
    return normalised(text) == normalised(answer)


def is_right(text: str, answer: str, question: str = "") -> bool:
    """Return whether the text gives the answer in whole words.

    An answer that stands in the question counts only if it is the whole text.
    """
    if has_words(question, answer):
        return is_exact(text, answer)
    return has_words(text, answer)


def has_words(text: str, answer: str) -> bool:
    """Return whether the answer is in the text, in whole words, after normalisation.

    Punctuation is removed, or replaced by spaces: "U.S." is in "the US", "Paris" in "Paris-born".
    Next to a character of an `UNSPACED` script a word can begin or end anywhere. An answer without
    letters and digits is compared as it is written; an answer that is an article isn't removed.
    """
    if not any(map(str.isalnum, answer)):
        return bool(answer) and answer in text
    forms = (normalised, _separated) if normalised(answer) else (_lowered,)
    return any(_is_in(form(text), form(answer)) for form in forms)


def _separated(text: str) -> str:
    """Return the text as `normalised` does, but with spaces in place of punctuation."""
    return " ".join(_ARTICLES.sub(" ", _lowered(text)).split())


def _lowered(text: str) -> str:
    """Return the text in lower case, with spaces in place of punctuation."""
    return " ".join(_PUNCTUATION.sub(" ", text.lower()).split())


def _is_in(text: str, answer: str) -> bool:
    """Return whether a part of the text is the answer and doesn't begin or end inside a word."""
    starts = [found.start() for found in re.finditer(f"(?={re.escape(answer)})", text)]
    return any(
        not _in_one_word(text[max(0, start - 1) : start], answer[0])
        and not _in_one_word(answer[-1], text[start + len(answer) :][:1])
        for start in starts
    )


def _in_one_word(before: str, after: str) -> bool:
    """Return whether two neighbouring characters belong to one word; "" is the text's end."""
    return all(
        one
        and (one.isalnum() or unicodedata.category(one).startswith("M"))
        and not unicodedata.name(one, "").startswith(UNSPACED)
        for one in (before, after)
    )


def is_part(text: str, answer: str) -> bool:
    """Return whether the answer is part of the text, as written, in lower case or capitalised."""
    return any(form in text for form in (answer, answer.lower(), answer.capitalize()))


def token_f1(text: str, answer: str) -> float:
    """Return the harmonic mean of precision and recall of the normalised words, from 0 to 1."""
    said, right = normalised(text).split(), normalised(answer).split()
    n_common = sum((Counter(said) & Counter(right)).values())
    return 2 * n_common / (len(said) + len(right)) if n_common else 0.0


def is_no_answer(text: str) -> bool:
    """Return whether a text is empty or contains one of `REFUSALS`."""
    folded = text.lower().replace("’", "'")
    return not text.strip() or any(phrase in folded for phrase in REFUSALS)
