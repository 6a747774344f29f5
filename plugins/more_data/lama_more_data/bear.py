"""BEAR's relations, answer spaces and facts (Wiland et al. 2024), and its larger BEAR-big.

Layout: `metadata_relations.json` (relation -> `templates`, `answer_space_labels`, and `domains` in
some copies) and `P*.jsonl` (sub_label, obj_label, their ids, and answer_idx, which counts the
labels from 0). BEAR-big lists no answer spaces: there, a relation's objects in file order are used.
`relation_info.json` (relation -> `domains`) may be next to these files or in the folder above.

Duplicate templates are kept, so that templates keep their numbers.
"""

from collections.abc import Iterator
from pathlib import Path

import orjson

from lama_core.datasets.dataset import MAX_ANSWERS, MAX_LETTERS, Dataset, make_dataset
from lama_core.datasets.formats import Format
from lama_core.datasets.line_reader import (
    JsonObject,
    Reading,
    Rejected,
    as_object,
    as_text,
    optional_text,
    required_text,
    text_list,
)
from lama_core.datasets.nested_folders import find_folder
from lama_core.datasets.template_syntax import template_fault
from lama_core.errors import UserError
from lama_core.files import read_file
from lama_core.types import Fact, Prompt, Relation

SOURCE = "BEAR"
RELATIONS_FILE = "metadata_relations.json"
DOMAINS_FILE = "relation_info.json"
MAX_BYTES = 64 << 20  # of each JSON file; BEAR's are below 0.1 MB

Texts = tuple[str, ...]


def find_root(path: Path) -> Path | None:
    """Return the folder at or under `path` that has `metadata_relations.json`, or None."""
    return find_folder(path, lambda folder: (folder / RELATIONS_FILE).is_file())


def load(path: Path, *, name: str | None = None, **about: str) -> Dataset:
    """Return the dataset: all facts, and the relations that have facts.

    Both are in the order of the relations in `metadata_relations.json`.
    Raises UserError if that file is missing or unreadable, or no fact is usable.
    """
    missing = f"is not in BEAR's layout: it has no {RELATIONS_FILE}"
    reading = Reading.at(find_root(path), path, missing)
    described = _read_relations(reading)
    for file in sorted(reading.root.glob("*.jsonl")):
        if file.stem in described:
            _read_facts(reading, file, *described[file.stem])
        else:
            reason = f"{file.stem} is not in {RELATIONS_FILE}: add its templates there"
            reading.drop(file, 0, reason)
    if not reading.facts:
        raise reading.nothing(path, "fact")
    order = {relation: at for at, relation in enumerate(described)}
    facts = sorted(reading.facts, key=lambda fact: order[fact.relation])
    kept = dict.fromkeys(fact.relation for fact in facts)
    reading.notes += [f"{name} has no facts; skipped" for name in described if name not in kept]
    relations = [described[name][0] for name in kept]
    return make_dataset(name or path.name, relations, facts, reading.report, **about)


def _read_object(path: Path) -> JsonObject:
    """Return the object in a JSON file. Raises UserError if the file has anything else."""
    try:
        return as_object(orjson.loads(read_file(path, MAX_BYTES)))
    except orjson.JSONDecodeError as error:
        where = f"{error.msg}, line {error.lineno}"
        raise UserError(f"{path} is not valid JSON ({where}): download it again") from error
    except Rejected as reason:
        raise UserError(f"{path}: {reason}. Its keys should be relation names") from reason


def _read_domains(reading: Reading) -> dict[str, Texts]:
    """Return relation -> domains, from `relation_info.json` if it is there."""
    found: dict[str, Texts] = {}
    for path in (reading.root / DOMAINS_FILE, reading.root.parent / DOMAINS_FILE):
        if path.is_file():
            for relation, row in _read_object(path).items():
                with reading.dropping(path, 0, f"{relation}: "):
                    found[relation] = _domains(as_object(row))
            break
    return found


def _domains(row: JsonObject) -> Texts:
    texts = (text.strip() for text in text_list(row, "domains"))
    return tuple(dict.fromkeys(text for text in texts if text))


def _read_relations(reading: Reading) -> dict[str, tuple[Relation, Texts]]:
    """Return relation name -> (relation, its answers by index, including excluded answers)."""
    domains = _read_domains(reading)
    path = reading.root / RELATIONS_FILE
    found = {}
    for name, value in _read_object(path).items():
        with reading.dropping(path, 0, f"{name}: "):
            row = as_object(value)
            about = _domains(row) or domains.get(name, ())
            templates = [text.strip() for text in text_list(row, "templates")]
            labels = _labels(row)
            for fault in filter(None, map(template_fault, templates)):
                reading.drop(path, 0, f"{name}: {fault}")
            prompts = tuple(Prompt(text) for text in templates if not template_fault(text))
            if not prompts:
                raise Rejected("no usable template: add one with [X] and [Y]")
            for fault in _faults(labels):
                reading.drop(path, 0, f"{name}: {fault}")
            answers = tuple(text for text in dict.fromkeys(labels) if 0 < len(text) <= MAX_LETTERS)
            relation = Relation(name, SOURCE, prompts=prompts, answers=answers, domains=about)
            found[name] = relation, labels
    return found


def _faults(labels: Texts) -> Iterator[str]:
    """Yield the reason for each excluded answer, as a clause."""
    first: dict[str, int] = {}
    for at, label in enumerate(labels):
        if not label:
            yield f"answer {at} is empty"
        elif len(label) > MAX_LETTERS:
            yield f"answer {at} is longer than {MAX_LETTERS} letters"
        elif first.setdefault(label, at) < at:
            yield f"answer {at}, {label!r}, is the same as answer {first[label]}"


def _labels(row: JsonObject) -> Texts:
    """Return the stripped answers in file order; empty if the file lists none."""
    labels = row.get("answer_space_labels")
    if labels is None:
        return ()
    if not isinstance(labels, list):
        raise Rejected("'answer_space_labels' is not a list of texts")
    if len(labels) > MAX_ANSWERS:
        raise Rejected(f"{len(labels):,} answers: give at most {MAX_ANSWERS:,}")
    return tuple(as_text(label, "answer_space_labels") for label in labels)


def _read_facts(reading: Reading, file: Path, relation: Relation, labels: Texts) -> None:
    """Add the facts of a relation's file, in file order; labels: the answers by index."""
    answers = frozenset(relation.answers)
    lines: dict[str, int] = {}
    for number, row in reading.objects(file):
        with reading.dropping(file, number):
            subject = required_text(row, "sub_label")
            indexed = _indexed(row, labels)
            obj = optional_text(row, "obj_label") or indexed or required_text(row, "obj_label")
            if indexed is not None and indexed != obj:
                raise Rejected(
                    f"answer_idx {row['answer_idx']} is {indexed!r}, but obj_label is {obj!r}"
                )
            subject_id, object_id = optional_text(row, "sub_id"), optional_text(row, "obj_id")
            fact_id = f"{relation.name}:{subject_id or subject}|{object_id or obj}"
            fact = Fact(fact_id, subject, relation.name, obj, SOURCE, subject_id, object_id)
            if answers and fact.object not in answers:
                raise Rejected(f"{fact.object!r} is not among the {len(answers):,} answers")
            reading.fact(fact, number, lines)


def _indexed(row: JsonObject, labels: Texts) -> str | None:
    """Return the answer at the row's index; None without an index."""
    at = row.get("answer_idx")
    if at is None or not labels:
        return None
    if not isinstance(at, int) or isinstance(at, bool) or not 0 <= at < len(labels):
        raise Rejected(f"answer_idx is {str(at)[:60]!r}, but there are {len(labels):,} answers")
    return labels[at]


BEAR = Format("bear", "BEAR's folder", "facts", find_root, load)
