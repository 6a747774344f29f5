"""Which facts' subject and object co-occur in a passage of a training text.

The file is gzipped tab-separated text, in the same folder as the corpus counts (`word_counts`):
subject and object as in the data, and 1 if they co-occur, else 0. It lists every pair that was
searched for; for any other pair, co-occurrence is unknown.
"""

import re
from collections import defaultdict
from collections.abc import Container, Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from lama_core.datasets.dataset import Pair
from lama_core.files import write_gzip_lines
from lama_core.metrics.training_texts import NOT_LOOKED_FOR, label, labels, read_text_file
from lama_core.metrics.word_counts import read_counts

STATED_FILE = "stated_facts.tsv.gz"
MAX_SUBJECT_WORDS = 6
_WORD = re.compile(r"\w+")


class PairIndex:
    """Pairs of a subject and an object to search for in passages.

    Case is ignored, and the object must occur outside the subject. A subject of more than
    MAX_SUBJECT_WORDS words is never found.
    """

    def __init__(self, pairs: Iterable[Pair]) -> None:
        self._by_subject = defaultdict[tuple[str, ...], list[tuple[Pair, tuple[str, ...]]]](list)
        for pair in pairs:
            subject, gold = (tuple(_WORD.findall(name.lower())) for name in pair)
            self._by_subject[subject].append((pair, gold))
        self._first_words = {subject[0] for subject in self._by_subject if subject}

    def find(self, passages: Iterable[str]) -> frozenset[Pair]:
        """Return the pairs that co-occur in at least one passage."""
        found: set[Pair] = set()
        for passage in passages:
            found |= self.pairs_in(passage, known=found)
        return frozenset(found)

    def pairs_in(self, passage: str, known: Container[Pair] = ()) -> set[Pair]:
        """Return the pairs that co-occur in a passage, except those in `known`."""
        found: set[Pair] = set()
        words = _WORD.findall(passage.lower())
        for start in [at for at, word in enumerate(words) if word in self._first_words]:
            for length in range(1, MAX_SUBJECT_WORDS + 1):
                end = start + length
                for pair, gold in self._by_subject.get(tuple(words[start:end]), ()):
                    if pair not in known and (
                        _contains(words[:start], gold) or _contains(words[end:], gold)
                    ):
                        found.add(pair)
        return found


def _contains(words: Sequence[str], wanted: Sequence[str]) -> bool:
    n = len(wanted)
    return bool(n) and any(
        tuple(words[at : at + n]) == tuple(wanted)
        for at, word in enumerate(words)
        if word == wanted[0]
    )


def save_stated(pairs: Iterable[Pair], stated: frozenset[Pair], path: Path) -> None:
    """Write whether each pair co-occurs; the same pairs give the same bytes."""
    known = sorted(set(pairs))
    write_gzip_lines(path, ("\t".join((*one, str(int(one in stated)))) for one in known))


def load_stated(path: Path) -> dict[Pair, bool]:
    """Return searched pair -> whether it co-occurs; raise UserError for another kind of file."""
    rows = read_counts(path, "stated facts")
    return {(subject, gold): bool(is_stated) for subject, gold, is_stated in rows}


def stated_in_texts(facts: pd.DataFrame, models: Sequence[str]) -> pd.Categorical | None:
    """Return a label for each fact: the models in whose training text its pair co-occurs.

    Args:
        facts: Rows with `subject` and `object`.
        models: Names of models.

    Returns:
        Labels [row] (see `training_texts.label`), all possible ones as categories; None if no pair
        was searched for in any text.
    """
    known = {
        name: pairs for name in models if (pairs := read_text_file(name, STATED_FILE, load_stated))
    }
    words = {
        pair: label([name for name, pairs in known.items() if pairs.get(pair)], list(known))
        for every in known.values()
        for pair in every
    }
    if not words:
        return None
    names = labels(list(known))
    codes = np.full(len(facts), names.index(NOT_LOOKED_FOR), np.int8)
    rows = np.flatnonzero(facts["subject"].isin({subject for subject, _ in words}))
    some = facts[["subject", "object"]].iloc[rows].astype("str")
    of_rows = zip(some["subject"], some["object"], strict=True)
    codes[rows] = [names.index(words.get(pair, NOT_LOOKED_FOR)) for pair in of_rows]
    looked_for = (codes != names.index(NOT_LOOKED_FOR)).any()
    return pd.Categorical(np.array(names, dtype=object)[codes], list(names)) if looked_for else None
