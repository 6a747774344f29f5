"""LPAQA's files: prompts (`P19.jsonl` or `P19.txt`) and training pairs (`P19.jsonl`).

A line of a prompt file is `{"template": ..., "weight": ...}` or, in a `.txt`, the template itself;
a line of training pairs is `{"sub_label": ..., "obj_label": ..., "sub_uri": ..., "obj_uri": ...}`.
Lines that can't be read are reported, never skipped in silence.
"""

from pathlib import Path

from lama_core.datasets.base import Dropped, ReadReport
from lama_core.datasets.jsonl import (
    JsonObject,
    Rejected,
    iter_objects,
    iter_text_lines,
    optional_text,
    required_text,
)
from lama_core.errors import UserError, did_you_mean
from lama_core.types import Fact, Prompt

TRAIN = "train"


def read_prompts(folder: Path, relation: str) -> tuple[tuple[Prompt, ...], ReadReport]:
    """The relation's prompts in file order, with their weights; none if there is no file for it.

    Templates are not checked here (see `prompt_sets.make_pool`).
    """
    dropped: list[Dropped] = []
    prompts: list[Prompt] = []
    lines, objects = folder / f"{relation}.txt", folder / f"{relation}.jsonl"
    if lines.is_file():
        prompts += [Prompt(text) for _, text in iter_text_lines(lines, lines.name, dropped)]
    if objects.is_file():
        for number, row in iter_objects(objects, objects.name, dropped):
            try:
                prompts.append(Prompt(required_text(row, "template"), weight=_weight(row)))
            except Rejected as reason:
                dropped.append(Dropped(objects.name, number, str(reason)))
    return tuple(prompts), ReadReport(tuple(dropped))


def read_pairs(
    place: Path, relation: str, *, source: str = "TREx"
) -> tuple[tuple[Fact, ...], ReadReport]:
    """The training pairs of a relation, in file order, each once.

    place: a folder with `<relation>.jsonl`, or the file itself.
    Raises UserError if there is neither, naming the nearest file.
    """
    path = place / f"{relation}.jsonl" if place.is_dir() else place
    if not path.is_file():
        names = [file.stem for file in place.glob("*.jsonl")] if place.is_dir() else []
        raise UserError(
            f"There are no training pairs of {relation}: {path} does not exist"
            f"{did_you_mean(relation, names)}."
        )
    dropped: list[Dropped] = []
    facts: dict[tuple[str, str], Fact] = {}
    n_twice = 0
    for number, row in iter_objects(path, path.name, dropped):
        try:
            subject = required_text(row, "sub_label", "sub")
            object_ = required_text(row, "obj_label", "obj")
            subject_id, object_id = optional_text(row, "sub_uri"), optional_text(row, "obj_uri")
        except Rejected as reason:
            dropped.append(Dropped(path.name, number, str(reason)))
            continue
        fact_id = f"{relation}:{TRAIN}:{number}"
        fact = Fact(fact_id, subject, relation, object_, source, subject_id, object_id)
        n_twice += (subject, object_) in facts
        facts.setdefault((subject, object_), fact)
    notes = (f"{path.name}: {n_twice} pair(s) occur twice and count once",) if n_twice else ()
    return tuple(facts.values()), ReadReport(tuple(dropped), notes)


def _weight(row: JsonObject) -> float | None:
    value = row.get("weight")
    if value is None:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    raise Rejected(f"'weight' is a {type(value).__name__}, not a number")
