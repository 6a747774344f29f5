"""Corrections of facts from the sources; `hand/corrections.txt` gives the reason of each."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from lama_core.errors import UserError
from tools.starter import hand
from tools.starter.model import StarterFact

EXCLUDED = "-"


def corrected(facts: Iterable[StarterFact]) -> Iterator[StarterFact]:
    """Yield the facts with the names and objects of `hand/corrections.txt`.

    A line corrects a subject, or the object of a fact with the corrected subject; the value `-`
    excludes a fact. A new object changes the origin to "written by hand".

    Raises:
        UserError: After the last fact, for the first correction that wasn't used.
    """
    right = {tuple(wrong): value for _, *wrong, value, _why in hand.cells("corrections.txt")}
    unused = dict(right)
    for fact in facts:
        if name := right.get((fact.subject,)):
            unused.pop((fact.subject,), None)
            fact = replace(fact, subject=name)
        key = (fact.relation, fact.subject, fact.object)
        if obj := right.get(key):
            unused.pop(key, None)
            fact = replace(fact, object=obj, origin=hand.ORIGIN)
        if EXCLUDED not in (fact.subject, fact.object):
            yield fact
    for wrong in unused:
        raise UserError(f"corrections.txt: no source has '{' '.join(wrong)}': delete the line")
