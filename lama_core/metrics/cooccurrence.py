"""Which facts' pairs co-occur in a training text: subject and object in one passage.

The file is tab-separated text in gzip, next to the counts of `counts`: subject and object as the
data has them, and 1 where they co-occur, else 0. It names every pair that was looked for, so that
nothing is said of others.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import pandas as pd

from lama_core.files import write_gzip_lines
from lama_core.metrics.training_texts import NOT_LOOKED_FOR, label, labels, text_file
from lama_core.metrics.word_counts import read_counts

STATED_FILE = "stated_facts.tsv.gz"
MAX_SUBJECT_WORDS = 6
_WORD = re.compile(r"\w+")

Pair = tuple[str, str]


class PairIndex:
    """Pairs of a subject and an object to look for in passages.

    Words are compared without case, and the object stands outside the subject. A subject of more
    than MAX_SUBJECT_WORDS words is never found.
    """

    def __init__(self, pairs: Iterable[Pair]) -> None:
        self._by_subject: dict[tuple[str, ...], list[tuple[Pair, tuple[str, ...]]]]
        self._by_subject = defaultdict(list)
        for pair in pairs:
            subject, gold = (tuple(_WORD.findall(name.lower())) for name in pair)
            self._by_subject[subject].append((pair, gold))
        self._first_words = {subject[0] for subject in self._by_subject if subject}

    def find(self, passages: Iterable[str]) -> frozenset[Pair]:
        """Return the pairs that stand together in a passage."""
        found: set[Pair] = set()
        by_subject, first_words = self._by_subject, self._first_words
        for passage in passages:
            words = _WORD.findall(passage.lower())
            for start in [at for at, word in enumerate(words) if word in first_words]:
                for length in range(1, MAX_SUBJECT_WORDS + 1):
                    end = start + length
                    for pair, gold in by_subject.get(tuple(words[start:end]), ()):
                        if pair not in found and (
                            _stands_in(gold, words[:start]) or _stands_in(gold, words[end:])
                        ):
                            found.add(pair)
        return frozenset(found)


def find_stated(pairs: Iterable[Pair], passages: Iterable[str]) -> frozenset[Pair]:
    """Return the pairs that stand together in a passage; see `PairIndex`."""
    return PairIndex(pairs).find(passages)


def _stands_in(wanted: Sequence[str], words: Sequence[str]) -> bool:
    n = len(wanted)
    return bool(n) and any(
        tuple(words[at : at + n]) == tuple(wanted)
        for at, word in enumerate(words)
        if word == wanted[0]
    )


def save_stated(pairs: Iterable[Pair], stated: frozenset[Pair], path: Path) -> None:
    """Write which of the pairs are stated; the same give the same bytes."""
    known = sorted(set(pairs))
    write_gzip_lines(path, ("\t".join((*one, str(int(one in stated)))) for one in known))


def load_stated(path: Path) -> dict[Pair, bool]:
    """Of each pair that was looked for, whether it is stated. Raises UserError for another file."""
    rows = read_counts(path, "stated facts")
    return {(subject, gold): bool(is_stated) for subject, gold, is_stated in rows}


def stated_in_texts(facts: pd.DataFrame, models: Sequence[str]) -> tuple[str, ...] | None:
    """Return in which of the models' training texts each fact's pair co-occurs, in words, [row].

    facts: with `subject` and `object`. None where no model's text is known for any of them.
    """
    known = {name: pairs for name in models if (pairs := _of_model(name))}
    rows = list(zip(facts["subject"].astype(str), facts["object"].astype(str), strict=True))
    words = {row: _in_words(row, known) for row in dict.fromkeys(rows)}
    if set(words.values()) <= {NOT_LOOKED_FOR}:
        return None
    return tuple(words[row] for row in rows)


def pair_labels(models: Sequence[str]) -> tuple[str, ...]:
    """Return all labels that `stated_in_texts` gives for these models."""
    return labels([name for name in models if _of_model(name)])


def _in_words(pair: Pair, known: Mapping[str, Mapping[Pair, bool]]) -> str:
    if not any(pair in pairs for pairs in known.values()):
        return NOT_LOOKED_FOR
    return label([name for name, pairs in known.items() if pairs.get(pair)], list(known))


def _of_model(name: str) -> Mapping[Pair, bool]:
    """What was looked for in a model's text; nothing of models without such a file."""
    path = text_file(name, STATED_FILE)
    return _read(path, path.stat().st_mtime_ns) if path is not None else {}


@lru_cache(maxsize=8)
def _read(path: Path, _changed: int) -> Mapping[Pair, bool]:
    return load_stated(path)
