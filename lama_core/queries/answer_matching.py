"""Matching of a generated text with the right answers and their aliases.

    right         whole words of the text are an answer; an answer that is part of the question
                  counts only if it is the whole text
    exact match   text and answer are equal (SQuAD, Rajpurkar et al. 2016)
    contains      an answer is part of the text (PopQA, Mallen et al. 2023)
    token F1      overlap of the words (SQuAD, Rajpurkar et al. 2016)
    no answer     the text is empty, or contains one of `REFUSALS`

Each is the best over all right answers. A text's `verdict` is that of `right`, because a chat model
answers in a sentence, and `contains` also counts "Romania" for "Roman" and a text that only repeats
the question. `lama_core.texts` says when texts are equal and which words they have.

Departure: Whole words of a generated answer
Departure: Numbers and signs in a generated answer
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from lama_core.texts import ARTICLES, answer_key, contains_answer, written_key

Verdict = Literal["match", "no match", "no answer"]
# Phrases that count as refusing to answer.
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


def is_right(text: str, answer: str, question: str = "") -> bool:
    """Return whether the text gives the answer in whole words.

    An answer that is part of the question counts only if it is the whole text.
    """
    repeats = contains_answer(question, answer)
    return is_exact(text, answer) if repeats else contains_answer(text, answer)


def is_exact(text: str, answer: str) -> bool:
    """Return whether text and answer are equal."""
    return answer_key(text) == answer_key(answer)


def is_part(text: str, answer: str) -> bool:
    """Return whether the answer is part of the text, as written, in lower case or capitalised."""
    text, answer = written_key(text), written_key(answer)
    return any(form in text for form in (answer, answer.lower(), answer.capitalize()))


def token_f1(text: str, answer: str) -> float:
    """Return the harmonic mean of precision and recall of the words without articles."""
    said, right = (
        [word for word in answer_key(one).split() if word not in ARTICLES] for one in (text, answer)
    )
    n_common = sum((Counter(said) & Counter(right)).values())
    return 2 * n_common / (len(said) + len(right)) if n_common else 0.0


def is_no_answer(text: str) -> bool:
    """Return whether a text is empty or contains one of `REFUSALS`."""
    return not written_key(text) or any(contains_answer(text, phrase) for phrase in REFUSALS)
