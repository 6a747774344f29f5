"""The rows of LAMA's relations.jsonl, and the relations that it leaves out.

A row: relation, template, label, description, type. Our own additions: `paraphrases`,
`negated_template` (or `template_negated`, as negated LAMA has it).
"""

from dataclasses import dataclass
from pathlib import Path

from lama_core.datasets.base import Dropped
from lama_core.datasets.jsonl import (
    JsonObject,
    Rejected,
    iter_objects,
    optional_text,
    required_text,
    text_list,
)
from lama_core.datasets.templates import template_fault
from lama_core.types import Prompt, Relation, RelationType

# Not in relations.jsonl; LAMA's scripts/run_experiments.py holds them.
GOOGLE_RE_RELATIONS = {
    relation.name: relation
    for relation in (
        Relation(
            "place_of_birth",
            "Google_RE",
            "place of birth",
            type="N-1",
            prompts=(Prompt("[X] was born in [Y] ."),),
            negated_template="[X] was not born in [Y] .",
        ),
        Relation(
            "date_of_birth",
            "Google_RE",
            "date of birth",
            type="N-1",
            prompts=(Prompt("[X] (born [Y])."),),
            negated_template="[X] (not born [Y]).",
        ),
        Relation(
            "place_of_death",
            "Google_RE",
            "place of death",
            type="N-1",
            prompts=(Prompt("[X] died in [Y] ."),),
            negated_template="[X] did not die in [Y] .",
        ),
    )
}


@dataclass(frozen=True)
class Described:
    """A row of relations.jsonl; its `source` is only known once facts are found."""

    line: int
    label: str
    description: str
    type: RelationType | None
    prompts: tuple[Prompt, ...]
    negated_template: str | None

    def relation(self, name: str, source: str) -> Relation:
        """The row as a Relation of `source`."""
        return Relation(
            name,
            source,
            self.label,
            self.description,
            self.type,
            self.prompts,
            self.negated_template,
        )


def read_rows(path: Path, shown: str, dropped: list[Dropped]) -> dict[str, Described]:
    """The file's rows by relation. shown: the file's name for what is added to `dropped`."""
    rows: dict[str, Described] = {}
    for number, row in iter_objects(path, shown, dropped):
        try:
            name = required_text(row, "relation")
            if name in rows:
                raise Rejected(f"the relation {name!r} was already on line {rows[name].line}")
            rows[name], faults = _describe(row, number)
        except Rejected as reason:
            dropped.append(Dropped(shown, number, str(reason)))
            continue
        dropped += [Dropped(shown, number, f"{name}: {fault}") for fault in faults]
    return rows


def _describe(row: JsonObject, line: int) -> tuple[Described, list[str]]:
    """A row of relations.jsonl and the faults of its templates, which are left out."""
    faults: list[str] = []

    def usable(template: str) -> bool:
        fault = template_fault(template) if template else None
        if fault:
            faults.append(fault)
        return bool(template) and not fault

    manual = optional_text(row, "template")
    prompts = [Prompt(manual)] if usable(manual) else []
    paraphrases = [text.strip() for text in text_list(row, "paraphrases")]
    prompts += [Prompt(text, "paraphrased") for text in paraphrases if usable(text)]
    negated = optional_text(row, "negated_template", "template_negated")
    type_name = optional_text(row, "type")
    types: dict[str, RelationType] = {"1-1": "1-1", "N-1": "N-1", "N-M": "N-M"}
    if type_name and type_name not in types:
        faults.append(f"the type {type_name!r} is none of 1-1, N-1, N-M; it is left open")
    described = Described(
        line,
        optional_text(row, "label"),
        optional_text(row, "description"),
        types.get(type_name),
        tuple(dict.fromkeys(prompts)),
        negated if usable(negated) else None,
    )
    return described, faults
