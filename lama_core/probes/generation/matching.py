"""Matching of a generated text with the right answers and their aliases.

    exact match   the normalised texts are equal (SQuAD, Rajpurkar et al. 2016)
    contains      an answer is part of the text (PopQA, Mallen et al. 2023)
    token F1      overlap of the normalised words (SQuAD, Rajpurkar et al. 2016)
    no answer     the text is empty, or contains one of `REFUSALS`

The first three are the best over all right answers. A text is right (`verdict`) if it contains an
answer, because a chat model answers in a sentence.
"""

import re
import string
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
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


@dataclass(frozen=True, slots=True)
class Match:
    """The comparison of a text with the right answers. token_f1: Between 0 and 1."""

    exact_match: bool
    contains: bool
    token_f1: float
    no_answer: bool

    @property
    def verdict(self) -> Verdict:
        """Return `match` if an answer is part of the text, else `no answer` or `no match`."""
        return "match" if self.contains else "no answer" if self.no_answer else "no match"


def match(text: str, answers: Sequence[str]) -> Match:
    """Compare a text with the right answers; each value is the best over the answers."""
    return Match(
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
