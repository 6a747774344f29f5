"""A first template for a relation, proposed from its id, its label or the form of its words."""

import re
from collections.abc import Iterable
from itertools import chain

from lama_core.datasets.column_guess import HINTS
from lama_core.types import Relation

_PROPERTY = re.compile(r"(?<![A-Za-z0-9])P[1-9]\d*(?![A-Za-z0-9])")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")  # between the words of `placeOfBirth`


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_AUXILIARY = _set("is are was were can has have had does did will may must")
_ARTICLE = _set("a an the")
_PREPOSITION = _set(
    "of in at on to for from with by after as near into about under over against before between "
    "within through during"
)
# Verbs of relations; other words that end with s may be nouns.
_VERB = _set(
    "borders causes consists contains contained creates drinks eats employs goes grows knows likes "
    "lives makes means needs owns plays produces requires sells shares speaks spoke studies "
    "studied teaches uses used wants wears won works worked wrote writes"
)
_PASSIVE = _set(
    "awarded born built composed created directed discovered edited established founded invented "
    "killed launched produced published recorded released signed sung written"
)
_IRREGULAR = _set("born built cast found given held known made part shown sung won written")
_ACTIVE = _set("belonged collaborated competed died lived participated played served")
# Names of columns that don't say what the objects are.
_VAGUE = frozenset((*chain(*HINTS.values()), "answers", "value", "label", "name", "text"))


def proposed_template(relation: str, label: str, known: Iterable[Relation]) -> str:
    """Return a template for a relation; empty if no sentence is likely to be right.

    Args:
        relation: Its name, such as `P36`, `capital of` or the name of a column.
        label: Its label in the data, if any.
        known: Relations with labels and templates, of which one with this id or label is used.
    """
    by_name: dict[str, str] = {}
    for one in known:
        for name in (one.name, _words(one.label)) if one.prompts else ():
            by_name.setdefault(name, one.prompts[0].template)
    found = _PROPERTY.search(relation)
    for name in (relation, found[0] if found else "", _words(label), _words(relation)):
        if name in by_name:
            return by_name[name]
    return _sentence(_words(label) or ("" if found else _words(relation)))


def _words(name: str) -> str:
    return " ".join(re.sub(r"[_\-\s]+", " ", _HUMP.sub(" ", name)).lower().split())


def _sentence(words: str) -> str:
    """Return a sentence with the words of a label between subject and object; empty if unclear."""
    if not words.replace(" ", "").isalpha() or words.split()[-1] in _VAGUE:
        return ""
    first, *rest = words.split()
    last = rest[-1] if rest else first
    if first in ("has", "have") and rest and last not in _PREPOSITION:
        return _sentence(" ".join(word for word in rest if word not in _ARTICLE))
    if first in _AUXILIARY:
        return f"[X] {words} [Y]." if rest else ""
    if first in _VERB and (not rest or last in _PREPOSITION):
        return f"[X] {words} [Y]."
    if first in _VERB:
        named = rest if rest[0] in _ARTICLE else ["the", *rest]
        return f"[X] {first} {' '.join(named)} [Y]."
    is_participle = first.endswith("ed") or first in _IRREGULAR
    if last in _PREPOSITION and rest:
        if first in _ACTIVE:
            return f"[X] {words} [Y]."
        if is_participle:
            was = first in _PASSIVE or last == "by"
            return f"[X] {'was' if was else 'is'} {words} [Y]."
        if _may_be_plural(first) and len(rest) == 1:
            return f"[X] {words} [Y]." if last != "of" else ""
        return f"[X] is the {words} [Y]."
    if first in _PREPOSITION:
        return ""
    is_unclear = is_participle or first in _ARTICLE or last.endswith("ed")
    return (
        ""
        if is_unclear or _may_be_plural(first) or _may_be_plural(last)
        else f"The {words} of [X] is [Y]."
    )


def _may_be_plural(word: str) -> bool:
    """Whether a word may be a plural or a verb: `languages`, `barks`."""
    return word.endswith("s") and not word.endswith(("ss", "us", "is", "ics"))
