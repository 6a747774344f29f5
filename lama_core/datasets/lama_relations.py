"""The rows of LAMA's relations.jsonl, and Google-RE's relations, which aren't in it.

A row has: relation, template, label, description, type. We also read `paraphrases` and
`negated_template` (negated LAMA calls it `template_negated`).
"""

from pathlib import Path

from lama_core.datasets.line_reader import (
    JsonObject,
    Reading,
    Rejected,
    optional_text,
    required_text,
    text_list,
)
from lama_core.datasets.template_syntax import template_fault
from lama_core.types import RELATION_TYPES, Prompt, Relation, RelationType

TYPE_OF_NAME: dict[str, RelationType] = {kind: kind for kind in RELATION_TYPES}
# Template and negated template, from LAMA's scripts/run_experiments.py.
_GOOGLE_RE = {
    "place_of_birth": ("[X] was born in [Y] .", "[X] was not born in [Y] ."),
    "date_of_birth": ("[X] (born [Y]).", "[X] (not born [Y])."),
    "place_of_death": ("[X] died in [Y] .", "[X] did not die in [Y] ."),
}
GOOGLE_RE_RELATIONS = {
    name: Relation(
        name,
        "Google_RE",
        name.replace("_", " "),
        type="N-1",
        prompts=(Prompt(template),),
        negated_template=negated,
    )
    for name, (template, negated) in _GOOGLE_RE.items()
}


def read_rows(reading: Reading, path: Path) -> dict[str, tuple[int, Relation]]:
    """Return relation name -> (line, relation); the relations' `source` is empty."""
    rows: dict[str, tuple[int, Relation]] = {}
    for number, row in reading.objects(path):
        faults: list[str] = []
        with reading.dropping(path, number):
            name = required_text(row, "relation")
            if name in rows:
                raise Rejected(f"duplicate of line {rows[name][0]}: the relation {name!r}")
            rows[name] = number, _describe(name, row, faults)
            for fault in faults:
                reading.drop(path, number, f"{name}: {fault}")
    return rows


def _describe(name: str, row: JsonObject, faults: list[str]) -> Relation:
    """Return a row's relation; adds to `faults` why parts of the row were excluded."""

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
    if type_name and type_name not in TYPE_OF_NAME:
        faults.append(f"unknown type {type_name!r} (expected 1-1, N-1 or N-M), ignored")
    return Relation(
        name,
        "",
        optional_text(row, "label"),
        optional_text(row, "description"),
        TYPE_OF_NAME.get(type_name),
        tuple(dict.fromkeys(prompts)),
        negated if usable(negated) else None,
    )
