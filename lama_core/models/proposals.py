"""Words that are proposed for a blank inside a sentence, for a causal model to rescore.

A causal model can only score a word at such a blank exactly by scoring the whole sentence with it,
one pass for each word, so that only some words are scored. They are proposed by several sources in
turn, because words that are likely after the left context are poor proposals if it says little:

    left:    the model's next words after the text left of the blank
    turned:  its next words after `turned_text`, in which it has read the right part, too
    others:  the best words after `turned_text` among a masked model's words (queries), or among the
             objects of the fact's relation (runs)

The gold answer is never a source.
"""

from collections.abc import Sequence
from itertools import chain, zip_longest

PUNCTUATION = " .,;:!?\"'()…。！？"


def turned_text(left: str, right: str) -> str:
    """Return a text that ends where the blank is, after the text that is right of it.

    >>> turned_text("The ", " is the longest river in Africa.")
    'Is the longest river in Africa: The'
    """
    after = right.strip(PUNCTUATION)
    return f"{after[:1].upper()}{after[1:]}: {left.rstrip()}".rstrip()


def merge(sources: Sequence[Sequence[int]], n: int) -> list[int]:
    """Return the first n different words of several sources, which propose in turn."""
    turns = chain.from_iterable(zip_longest(*sources))
    return [word for word in dict.fromkeys(turns) if word is not None][:n]
