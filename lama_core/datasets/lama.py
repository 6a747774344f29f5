"""LAMA as published, and the variants of it that circulate.

Layout (Petroni et al. 2019, data.zip): `relations.jsonl`, `TREx/P*.jsonl`,
`Google_RE/*_test.jsonl`, `ConceptNet/test.jsonl`, `Squad/test.jsonl`. Any of the folders may be
missing, may end in `_UHN` (Poerner et al. 2020), and the whole may sit in a folder of its own.

Tolerated: no `evidences`, no `judgments`, `sub`/`obj` for `sub_label`/`obj_label`, numbers as ids,
the fields `masked_negations` and `masked_misprimed` (Kassner & Schütze 2020), extra fields.
Refused, line by line: what gives no question or no answer.

Of a fact's `evidences` those with exactly one blank are kept, and of these at most `max_sentences`,
drawn by the fact's id.
Departure: Evidence sentences that are kept
"""

from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

from lama_core.datasets import lama_facts
from lama_core.datasets.dataset import BLANK, SQUAD_RELATION, Dataset, make_dataset
from lama_core.datasets.lama_relations import GOOGLE_RE_RELATIONS, read_rows
from lama_core.datasets.line_reader import (
    JsonObject,
    Reading,
    Rejected,
    optional_text,
    required_text,
)
from lama_core.datasets.nested_folders import files_under, find_folder, subfolders
from lama_core.types import Fact, Relation

SOURCES = ("Google_RE", "TREx", "ConceptNet", "Squad")
MAX_SENTENCES = 10


@dataclass
class _Reading(Reading):
    """described: line and content of relations.jsonl's rows. relations: of the facts."""

    max_sentences: int = MAX_SENTENCES
    described: dict[str, tuple[int, Relation]] = field(default_factory=dict)
    relations: dict[str, Relation] = field(default_factory=dict)


def find_root(path: Path) -> Path | None:
    """The folder at or under `path` that has LAMA's folders, or None."""
    return find_folder(path, lambda folder: bool(_source_folders(folder)))


def load(
    path: Path,
    *,
    name: str | None = None,
    relations_file: Path | None = None,
    max_sentences: int = MAX_SENTENCES,
    **about: str,
) -> Dataset:
    """The dataset in LAMA's layout at or under the folder `path`.

    relations_file: where the templates are, when not in `path` (LAMA-UHN brings none).
    max_sentences: at most so many of a fact's evidences are kept.
    Facts keep the order of their file, relations that of relations.jsonl.
    Raises UserError if the folder has none of LAMA's folders or no usable fact.
    """
    lacking = f"is not in LAMA's layout: it has no folder {', '.join(SOURCES[:-1])} or Squad"
    reading = _Reading.at(find_root(path), path, lacking)
    reading.max_sentences = max_sentences
    root = reading.root
    places = (root / "relations.jsonl", root.parent / "relations.jsonl")
    relations_file = relations_file or next((file for file in places if file.is_file()), None)
    if relations_file is None:
        reading.notes.append("no relations.jsonl: relations have no templates")
    else:
        reading.described = read_rows(reading, relations_file)
    for source, folder in _source_folders(root):
        for file in _fact_files(source, folder):
            _read_facts(reading, source, file)
    if relations_file:
        _report_unused(reading, relations_file)
    with_spaces = Counter(fact.relation for fact in reading.facts if " " in fact.object)
    for relation, n in with_spaces.items():
        reading.notes.append(
            f"{relation}: {n} object(s) have spaces; scoring leaves these facts out, "
            "because no model has them as one token"
        )
    if not reading.facts:
        raise reading.nothing(path, "fact")
    relations = _in_order(reading)
    return make_dataset(name or path.name, relations, reading.facts, reading.report, **about)


def _source_folders(folder: Path) -> list[tuple[str, Path]]:
    """(source, folder) of LAMA's folders in `folder`, in the order of SOURCES."""
    found: dict[str, Path] = {}
    for child in subfolders(folder):
        name = child.name.lower().removesuffix("_uhn")
        source = next((one for one in SOURCES if one.lower() == name), "")
        if source and any(path.suffix == ".jsonl" for path in files_under(child)):
            found.setdefault(source, child)
    return [(source, found[source]) for source in SOURCES if source in found]


def _fact_files(source: str, folder: Path) -> list[Path]:
    files = sorted(folder.glob("*.jsonl"), key=_natural_order)
    if source in ("ConceptNet", "Squad"):
        return [path for path in files if path.stem == "test"] or files
    # Some copies keep a folder a relation: P19/test.jsonl.
    return files or sorted(folder.glob("*/test.jsonl"), key=_natural_order)


def _natural_order(path: Path) -> tuple[str, int, str]:
    name = _relation_of_file(path)
    digits = name[1:] if name[:1] == "P" and name[1:].isdigit() else ""
    return (name[0] if digits else name, int(digits or 0), name)


def _relation_of_file(path: Path) -> str:
    return path.parent.name if path.stem == "test" else path.stem


def _read_facts(reading: _Reading, source: str, file: Path) -> None:
    lines: dict[str, int] = {}
    n_before = len(reading.facts) + len(reading.dropped)
    for number, row in reading.objects(file):
        with reading.line(file, number):
            fact = _read_fact(reading, source, file, row, lines, number)
            reading.facts.append(fact)
    if len(reading.facts) + len(reading.dropped) == n_before:
        reading.notes.append(f"{reading.shown(file)} has no facts")


def _read_fact(
    reading: _Reading, source: str, file: Path, row: JsonObject, lines: dict[str, int], number: int
) -> Fact:
    name = _relation_name(source, file, row)
    if source == "Squad":
        subject = optional_text(row, "sub_label", "sub") or SQUAD_RELATION
    else:
        subject = required_text(row, "sub_label", "sub")
    obj = required_text(row, "obj_label", "obj")
    stated = lama_facts.sentences(row, "masked_sentences")
    relation = _relation_of(reading, source, name)
    fact_id = lama_facts.make_id(row, f"{relation.name}:", subject, obj, lines, number)
    sentences = lama_facts.with_evidences(stated, row, fact_id, reading.max_sentences)
    if not sentences and not relation.prompts:
        if source in ("ConceptNet", "Squad"):
            raise Rejected(f"no sentence with {BLANK} in 'masked_sentences'")
        raise Rejected(
            f"{relation.name} has no template in relations.jsonl and this fact has no sentence "
            f"with {BLANK}: there is nothing to ask"
        )
    labelled = "sub_label" in row and "obj_label" in row
    return Fact(
        id=fact_id,
        subject=subject,
        relation=relation.name,
        object=obj,
        source=source,
        subject_id=optional_text(row, "sub_uri") or (optional_text(row, "sub") if labelled else ""),
        object_id=optional_text(row, "obj_uri") or (optional_text(row, "obj") if labelled else ""),
        sentences=sentences,
        negated_sentences=lama_facts.sentences(row, "masked_negations"),
        misprimed_sentences=lama_facts.sentences(row, "masked_misprimed"),
        judgments=lama_facts.judgments(row),
        origin=optional_text(row, "origin"),
    )


def _relation_name(source: str, file: Path, row: JsonObject) -> str:
    if source == "ConceptNet":
        return required_text(row, "pred")
    if source == "Squad":
        return SQUAD_RELATION
    if source == "Google_RE":
        return file.stem.removesuffix("_test")
    name = _relation_of_file(file)
    stated = optional_text(row, "predicate_id")
    if stated and stated != name:
        raise Rejected(f"predicate_id is {stated!r}, but the file is {name!r}'s")
    return name


def _relation_of(reading: _Reading, source: str, plain: str) -> Relation:
    """The relation of that source, made on first sight."""
    name, known = plain, reading.relations
    if name in known and known[name].source != source:
        name = f"{source}:{name}"  # two sources that use one name stay apart
    if name not in known:
        if plain in reading.described:
            known[name] = replace(reading.described[plain][1], name=name, source=source)
        elif source == "Google_RE" and plain in GOOGLE_RE_RELATIONS:
            known[name] = GOOGLE_RE_RELATIONS[plain]
        else:
            known[name] = Relation(name, source, SQUAD_RELATION if source == "Squad" else "")
            if source in ("TREx", "Google_RE"):
                reading.notes.append(f"{name} is not in relations.jsonl: it has no template")
    return known[name]


def _report_unused(reading: _Reading, relations_file: Path) -> None:
    used = {fact.relation.split(":", 1)[-1] for fact in reading.facts}
    for name, (line, row) in reading.described.items():
        if name not in used:
            label = f" ({row.label})" if row.label else ""
            where = f"{reading.shown(relations_file)}, line {line}"
            reading.notes.append(f"{where}: {name}{label} has no facts; skipped")


def _in_order(reading: _Reading) -> list[Relation]:
    """Relations with facts: by source, in the order of relations.jsonl, then as they were met."""
    used = {fact.relation for fact in reading.facts}
    listed = {name: place for place, name in enumerate(reading.described)}

    def order(relation: Relation) -> tuple[int, int]:
        return SOURCES.index(relation.source), listed.get(relation.name, len(listed))

    return sorted((one for one in reading.relations.values() if one.name in used), key=order)
