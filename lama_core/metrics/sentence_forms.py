"""Sentence forms: which wordings a training text uses, and where probe sentences occur in it.

A sentence form is a sentence with slots for names and values: `* lies on continent of *`. Forms
ignore case, punctuation, articles, and the tense and number of "be". Adjacent slots are merged.

Two forms match if they have the same words between two neighbouring slots, including a word that
isn't a function word (`FUNCTION_WORDS`): "[X] lies on the continent of [Y]" and "{city} lies on the
continent of {continent}". If there are only function words between the slots ("is", "is in"), the
whole forms must be equal: "The genre of [X] is [Y]" and "The genre of {name} is {style}".

The file is gzipped tab-separated text, in the same folder as the corpus counts (`word_counts`):
source, form, and the number of times that the source's program writes it (always 1).
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lama_core.files import write_gzip_lines
from lama_core.grouping import grouped
from lama_core.metrics.training_texts import NOT_LOOKED_FOR, label, labels, read_text_file
from lama_core.metrics.word_counts import read_counts

FORMS_FILE = "sentence_forms.tsv.gz"
SLOT = "*"
ARTICLES = frozenset(("a", "an", "the"))
# Forms of "be", "have" and "do", "called" (a copula, too); modal verbs; prepositions; conjunctions,
# pronouns, adverbs.
_FUNCTION_WORDS = """
is are was were be been being am has have had having do does did called
can could may might will would shall should must
of in on at to from by for with as into onto than about over under within through between
and or but nor not that which who whose whom where when while if because
it its he his she her they their them this these there here then so also only s t
"""
FUNCTION_WORDS = ARTICLES | frozenset(_FUNCTION_WORDS.split())
_WORD = re.compile(r"\w+")
_TENSES = dict.fromkeys(("are", "was", "were"), "is")


def normal_words(text: str) -> list[str]:
    """Return the words of a text in lower case, without punctuation and articles."""
    return [word for word in _WORD.findall(text.lower()) if word not in ARTICLES]


def form_of(parts: Iterable[str | None]) -> str:
    """Return the form of a sentence, given as a sequence of texts and None for slots."""
    words: list[str] = []
    for part in parts:
        if part is None:
            words += [] if words[-1:] == [SLOT] else [SLOT]
        else:
            words += [_TENSES.get(word, word) for word in normal_words(part)]
    return " ".join(words)


def template_form(template: str) -> str:
    """Return the form of a template with [X] and [Y]."""
    first, *others = re.split(r"\[[XY]\]", template)
    return form_of((first, *(part for other in others for part in (None, other))))


def query_template(query: str, subject: str) -> str:
    """Return a query with its subject (ignoring case) replaced by [X] and its blank by [Y].

    "" if the query doesn't contain the subject.
    """
    return _without_subject(query, subject).replace("[MASK]", "[Y]", 1)


def _without_subject(query: str, subject: str) -> str:
    """Return `query_template` with the blank unchanged."""
    if subject and subject in query:
        return query.replace(subject, "[X]", 1)
    lower, wanted = query.lower(), subject.lower()
    same_lengths = len(lower) == len(query) and len(wanted) == len(subject)
    at = lower.find(wanted) if subject and same_lengths else -1
    return "" if at < 0 else f"{query[:at]}[X]{query[at + len(subject) :]}"


@dataclass(frozen=True)
class SentenceForms:
    """The sentence forms of a training text.

    by_source: name of a source -> its forms; {} for a source of natural text.
    """

    by_source: Mapping[str, frozenset[str]]

    @cached_property
    def _sources(self) -> dict[str, tuple[str, ...]]:
        """Key of a form (see `_keys`) -> the sources with this key."""
        found = grouped(
            (key, source)
            for source, forms in self.by_source.items()
            for key in {key for form in forms for key in _keys(form)}
        )
        return {key: tuple(sources) for key, sources in found.items()}

    def sources_of(self, form: str) -> tuple[str, ...]:
        """Return the sources that have a matching form, in the order of `by_source`."""
        matching = {source for key in _keys(form) for source in self._sources.get(key, ())}
        return tuple(source for source in self.by_source if source in matching)


def _keys(form: str) -> list[str]:
    """Return the keys of a form; two forms match if they share a key."""
    words = form.split(" ")
    slots = [at for at, word in enumerate(words) if word == SLOT]
    between = [words[left + 1 : right] for left, right in pairwise(slots)]
    specific = [group for group in between if not FUNCTION_WORDS.issuperset(group)]
    return [*(f"{SLOT} {' '.join(group)} {SLOT}" for group in specific), f"={form}"]


def save_forms(forms: SentenceForms, path: Path) -> None:
    """Write the forms; the same forms give the same bytes."""
    rows = [(source, form) for source, own in forms.by_source.items() for form in sorted(own)]
    write_gzip_lines(path, (f"{source}\t{form}\t1" for source, form in rows))


def load_forms(path: Path) -> SentenceForms:
    """Read the forms from a file, or raise UserError for another kind of file."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for source, form, _ in read_counts(path, "sentence forms"):
        found[source].add(form)
    return SentenceForms({source: frozenset(forms) for source, forms in found.items()})


def wordings_in_texts(facts: pd.DataFrame, models: Sequence[str]) -> pd.Categorical | None:
    """Return a label for each row: the models in whose training text its wording occurs.

    A wording occurs in a text if a source of the text has a matching sentence form. A query that
    doesn't contain its subject has no wording.

    Args:
        facts: Rows with `relation`, `prompt`, `subject` and `query`.
        models: Names of models.

    Returns:
        Labels [row] (see `training_texts.label`), all possible ones as categories; None if no
        model's training text is known.
    """
    texts = {name: read_text_file(name, FORMS_FILE, load_forms) for name in models}
    known = {name: forms for name, forms in texts.items() if forms is not None}
    if not known:
        return None
    names = labels(list(known))
    codes, templates = pd.factorize(_templates(facts))
    by_template = []
    for template in templates:
        form = template_form(template.replace("[MASK]", "[Y]", 1))
        found = [name for name, forms in known.items() if forms.sources_of(form)]
        by_template.append(names.index(label(found, list(known)) if template else NOT_LOOKED_FOR))
    of_rows = np.array(by_template, np.int8)[codes]
    return pd.Categorical(np.array(names, dtype=object)[of_rows], list(names))


def _templates(facts: pd.DataFrame) -> NDArray[np.object_]:
    """Return `_without_subject` of each row, object [row].

    Rows of a prompt have one template. It is taken from their first row, and only the rows whose
    query isn't this template with their subject are read one by one.
    """
    found = np.full(len(facts), "", dtype=object)
    for rows in facts.groupby(["relation", "prompt"], observed=True).indices.values():
        some = facts[["query", "subject"]].iloc[rows].astype("str")
        queries, subjects = (pa.array(some[name], pa.string()) for name in some)
        template = _without_subject(queries[0].as_py(), subjects[0].as_py())
        before, slot, after = template.partition("[X]")
        filled = pc.binary_join_element_wise(before, subjects, after, "")
        same = pc.equal(filled, queries).to_numpy(zero_copy_only=False) & bool(slot)
        found[rows] = template
        others = np.flatnonzero(~same)
        pairs = zip(
            queries.take(others).to_pylist(), subjects.take(others).to_pylist(), strict=True
        )
        found[rows[others]] = [_without_subject(*pair) for pair in pairs]
    return found


class SentenceIndex:
    """Sentences to search for in passages; the passages are read once and not stored."""

    def __init__(self, sentences: Iterable[str]) -> None:
        self._by_start: dict[tuple[str, str], dict[int, dict[tuple[str, ...], list[str]]]] = {}
        for sentence in dict.fromkeys(sentences):
            words = tuple(normal_words(sentence))
            if len(words) > 1:
                by_length = self._by_start.setdefault((words[0], words[1]), {})
                by_length.setdefault(len(words), {}).setdefault(words, []).append(sentence)

    def find(self, passages: Iterable[str]) -> tuple[set[str], set[str]]:
        """Return the sentences that occur completely within a passage.

        Returns:
            The sentences that occur exactly, beginning at the start of a word; those that occur
            when case, punctuation and articles are ignored, which include the first.
        """
        verbatim: set[str] = set()
        almost: set[str] = set()
        for passage in passages:
            words = normal_words(passage)
            for at, start in enumerate(pairwise(words)):
                for length, by_words in self._by_start.get(start, {}).items():
                    for sentence in by_words.get(tuple(words[at : at + length]), ()):
                        almost.add(sentence)
                        place = passage.find(sentence)
                        while place > 0 and passage[place - 1].isalnum():
                            place = passage.find(sentence, place + 1)
                        if place >= 0:
                            verbatim.add(sentence)
        return verbatim, almost
