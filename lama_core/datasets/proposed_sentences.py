"""A first template for a relation, proposed from its id, its label or the form of its words."""

import re
from collections.abc import Iterable
from itertools import chain

from lama_core.datasets.column_guess import HINTS
from lama_core.types import Relation

_PROPERTY = re.compile(r"(?<![A-Za-z0-9])P[1-9]\d*(?![A-Za-z0-9])")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")  # between the words of `placeOfBirth`


def _one_of(words: str) -> str:
    return f"(?:{'|'.join(words.split())})"


_AUXILIARY = _one_of("is are was were can has have had does did will may must")
_ARTICLE = _one_of("a an the")
_PREPOSITION = _one_of(
    "of in at on to for from with by after as near into about under over against before between "
    "within through during"
)
# Verbs of relations; other words that end with s may be nouns.
_VERB = _one_of(
    "borders causes consists contains contained creates drinks eats employs goes grows knows likes "
    "lives makes means needs owns plays produces requires sells shares speaks spoke studies "
    "studied teaches uses used wants wears won works worked wrote writes"
)
_PASSIVE = _one_of(
    "awarded born built composed created directed discovered edited established founded invented "
    "killed launched produced published recorded released signed sung written"
)
_PARTICIPLE = _one_of(
    r"\w*ed born built cast found given held known made part shown sung won written"
)
_MAYBE_PLURAL = r"\w*s(?<!ss)(?<!us)(?<!is)(?<!ics)"  # or a verb: `languages`, `barks`
_ENDS = f"(?:.+ )?{_PREPOSITION}"
# The form of a label -> the sentence, of the first form that fits; empty if it is unclear.
_SENTENCES = {
    f"{_AUXILIARY} .+": r"[X] \g<0> [Y].",
    _AUXILIARY: "",
    f"{_VERB}(?: {_ENDS}|)": r"[X] \g<0> [Y].",
    f"{_VERB} {_ARTICLE}(?: .+|)": r"[X] \g<0> [Y].",
    f"({_VERB}) (.+)": r"[X] \1 the \2 [Y].",
    _one_of("belonged collaborated competed died lived participated played served") + f" {_ENDS}": (
        r"[X] \g<0> [Y]."
    ),
    f"{_PASSIVE} {_ENDS}|{_PARTICIPLE} (?:.+ )?by": r"[X] was \g<0> [Y].",
    f"{_PARTICIPLE} {_ENDS}": r"[X] is \g<0> [Y].",
    f"{_MAYBE_PLURAL} of": "",
    f"{_MAYBE_PLURAL} {_PREPOSITION}": r"[X] \g<0> [Y].",
    f".+ {_PREPOSITION}": r"[X] is the \g<0> [Y].",
    f"(?:{_PREPOSITION}|{_PARTICIPLE}|{_ARTICLE}|{_MAYBE_PLURAL})(?: .+|)": "",
    rf"(?:.+ )?(?:\w*ed|{_MAYBE_PLURAL})": "",
    ".+": r"The \g<0> of [X] is [Y].",
}
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
    owned = re.fullmatch("(?:has|have) (.+)", words)
    if owned and not re.fullmatch(_ENDS, owned[1]):
        return _sentence(" ".join(re.sub(rf"\b{_ARTICLE}\b", "", owned[1]).split()))
    fitting = (re.fullmatch(form, words) for form in _SENTENCES)
    return next(found.expand(_SENTENCES[found.re.pattern]) for found in fitting if found)
