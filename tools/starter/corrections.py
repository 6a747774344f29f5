"""Corrections of facts from the sources; `hand/corrections.txt` gives the reason of each."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from lama_core.errors import UserError
from tools.starter import hand
from tools.starter.model import StarterFact

EXCLUDED = "-"


@dataclass(slots=True)
class Corrections:
    """Corrections of names and objects; the value `-` excludes a fact.

    Attributes:
        names: Wrong subject -> right subject.
        objects: Relation, subject and object of a fact -> right object.
        used: Keys of `names` and `objects` that were applied so far.
    """

    names: dict[str, str]
    objects: dict[tuple[str, str, str], str]
    used: set[str | tuple[str, str, str]] = field(default_factory=set)

    def apply(self, facts: Iterable[StarterFact]) -> Iterator[StarterFact]:
        """Yield the corrected facts; a new object changes the origin to "written by hand"."""
        for fact in facts:
            name = self.names.get(fact.subject)
            if name is not None:
                self.used.add(fact.subject)
                fact = replace(fact, subject=name)
            key = (fact.relation, fact.subject, fact.object)
            obj = self.objects.get(key)
            if obj is not None:
                self.used.add(key)
                fact = replace(fact, object=obj, origin=hand.ORIGIN)
            if EXCLUDED not in (fact.subject, fact.object):
                yield fact

    def check_used(self) -> None:
        """Raise UserError for the first correction that wasn't used."""
        for key in (*self.names, *self.objects):
            if key not in self.used:
                what = key if isinstance(key, str) else " ".join(key)
                raise UserError(f"corrections.txt: no source has '{what}': delete the line")


def load() -> Corrections:
    """Return the corrections of `hand/corrections.txt`.

    Lines that correct an object contain the corrected subject.
    """
    names, objects = {}, {}
    for kind, *cells in hand.correction_lines():
        if kind == "name":
            wrong, right, _why = cells
            names[wrong] = right
        else:
            relation, subject, obj, right, _why = cells
            objects[relation, subject, obj] = right
    return Corrections(names, objects)
