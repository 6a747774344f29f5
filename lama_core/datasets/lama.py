"""LAMA as published, and its variants.

Layout (Petroni et al. 2019, data.zip): `relations.jsonl`, `TREx/P*.jsonl`,
`Google_RE/*_test.jsonl`, `ConceptNet/test.jsonl`, `Squad/test.jsonl`. Any of the folders may be
missing, may end in `_UHN` (Poerner et al. 2020), and may be in a common folder. A folder with both
`TREx` and `TREx_UHN` is two datasets: read one of these folders.

Layout of mLAMA (Kassner et al. 2021): a folder for each language, which is one dataset, with
`templates.jsonl` next to the facts of each relation, `P36.jsonl` or `place_of_birth.jsonl`.

Accepted: lines without `evidences` or `judgments`, `sub`/`obj` for `sub_label`/`obj_label`, numbers
as ids, the fields `masked_negations` and `masked_misprimed` (Kassner & Schütze 2020), extra fields.
Excluded: lines without a usable query or answer.

A fact's sentences are its masked sentences, and those of its `evidences` with exactly one blank. If
there are more than `max_sentences`, evidences are drawn at random to reach this number, with the
fact's id as seed.
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
from lama_core.errors import UserError
from lama_core.types import Fact, Relation

SOURCES = ("Google_RE", "TREx", "ConceptNet", "Squad")
MAX_SENTENCES = 10
RELATIONS, TEMPLATES = TEMPLATE_FILES = "relations.jsonl", "templates.jsonl"  # LAMA's, mLAMA's


@dataclass
class _Reading(Reading):
    """The facts and the report of LAMA while it is read.

    described: Name -> line and relation, for each row of relations.jsonl. relations: the relations
    of the facts read so far, by name.
    """

    max_sentences: int = MAX_SENTENCES
    described: dict[str, tuple[int, Relation]] = field(default_factory=dict)
    relations: dict[str, Relation] = field(default_factory=dict)


def find_root(path: Path) -> Path | None:
    """Return the folder at or under `path` that has LAMA's folders or mLAMA's files, or None.

    Raises:
        UserError: If `path` has several datasets with the same facts: LAMA and LAMA-UHN, or mLAMA's
            languages.
    """
    root = find_folder(path, lambda folder: bool(_sources(folder)))
    if root is None:
        return None
    sources = {child.name: source for child in subfolders(root) if (source := _source_of(child))}
    n = Counter(sources.values())
    if names := [name for name, source in sources.items() if n[source] > 1]:
        raise UserError(
            f"{path} has both {names[0]} and {names[1]}, datasets with the same facts: import each "
            "of these folders alone, with --name."
        )
    languages = [child.name for child in subfolders(root.parent) if (child / TEMPLATES).is_file()]
    if root != path and root.name in languages and len(languages) > 1:
        raise UserError(
            f"{path} has a dataset for each of {len(languages)} languages "
            f"({', '.join(languages[:10])}): import the folder of one language, with --name."
        )
    return root


def load(
    path: Path,
    *,
    name: str | None = None,
    relations_file: Path | None = None,
    max_sentences: int = MAX_SENTENCES,
    **about: str,
) -> Dataset:
    """Return the dataset in LAMA's layout at or under the folder `path`.

    Facts are in file order, relations in the order of relations.jsonl.

    Args:
        path: A folder.
        name: Name of the dataset. Default: that of the folder.
        relations_file: The templates, if they aren't in `path` (LAMA-UHN has none).
        max_sentences: Maximum number of sentences of a fact.
        about: `licence` and `citation`.

    Raises:
        UserError: If `path` has none of LAMA's folders or no usable fact.
    """
    missing = f"is not in LAMA's layout: it has no folder {', '.join(SOURCES[:-1])} or Squad"
    reading = _Reading.at(find_root(path), path, missing)
    reading.max_sentences = max_sentences
    root = reading.root
    files = (root / RELATIONS, root / TEMPLATES, root.parent / RELATIONS)
    relations_file = relations_file or next((file for file in files if file.is_file()), None)
    if relations_file is None:
        reading.notes.append("no relations.jsonl: relations have no templates")
    else:
        reading.described = read_rows(reading, relations_file)
    read = {relations_file}
    for source, fact_files in _sources(root):
        for file in fact_files:
            _read_facts(reading, source, file)
            read.add(file)
    for file in files_under(root):  # such as `train.jsonl`
        is_data = file.suffix.lower() == ".jsonl" and file.name not in TEMPLATE_FILES
        if is_data and file not in read:
            shown = reading.shown(file)
            reading.notes.append(f"{shown} is not read: LAMA's layout doesn't have it")
    names = {fact.relation.split(":", 1)[-1] for fact in reading.facts}
    for relation, (line, row) in reading.described.items():
        if relations_file and relation not in names:
            label = f" ({row.label})" if row.label else ""
            where = f"{reading.shown(relations_file)}, line {line}"
            reading.notes.append(f"{where}: {relation}{label} has no facts; skipped")
    with_spaces = Counter(fact.relation for fact in reading.facts if " " in fact.object)
    for relation, n in with_spaces.items():
        reading.notes.append(
            f"{relation}: {n} object(s) have spaces; scoring excludes these facts, "
            "because no model has them as one token"
        )
    if not reading.facts:
        raise reading.nothing(path, "fact")
    relations = _in_order(reading)
    return make_dataset(name or path.name, relations, reading.facts, reading.report, **about)


def _sources(folder: Path) -> list[tuple[str, list[Path]]]:
    """Return (source, files with its facts) in `folder`, in the order of SOURCES."""
    found: dict[str, list[Path]] = {}
    for child in subfolders(folder):
        has_facts = any(path.suffix == ".jsonl" for path in files_under(child))
        if (source := _source_of(child)) and has_facts:
            found.setdefault(source, _fact_files(source, child))
    if not found and (source := _source_of(folder)):
        found[source] = _fact_files(source, folder)
    elif not found and (folder / TEMPLATES).is_file():
        for file in sorted(folder.glob("*.jsonl"), key=_natural_order):
            if file.name != TEMPLATES:
                is_google = _relation_of_file(file) in GOOGLE_RE_RELATIONS
                found.setdefault("Google_RE" if is_google else "TREx", []).append(file)
    return [(source, found[source]) for source in SOURCES if found.get(source)]


def _source_of(folder: Path) -> str:
    """Return the source of a folder with LAMA's name, such as `TREx` or `TREx_UHN`; else empty."""
    name = folder.name.lower().removesuffix("_uhn")
    return next((source for source in SOURCES if source.lower() == name), "")


def _fact_files(source: str, folder: Path) -> list[Path]:
    files = sorted(folder.glob("*.jsonl"), key=_natural_order)
    if source in ("ConceptNet", "Squad"):
        return [path for path in files if path.stem == "test"] or files
    # Some copies have a folder for each relation: P19/test.jsonl.
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
    named = _relation_of_file(file) if source != "Google_RE" else file.stem.removesuffix("_test")
    for number, row in reading.objects(file):
        with reading.dropping(file, number):
            reading.facts.append(_read_fact(reading, source, named, row, lines, number))
    if len(reading.facts) + len(reading.dropped) == n_before:
        reading.notes.append(f"{reading.shown(file)} has no facts")


def _read_fact(
    reading: _Reading, source: str, named: str, row: JsonObject, lines: dict[str, int], number: int
) -> Fact:
    """Return the fact of a line. named: the relation that the file's name gives."""
    name = _relation_name(source, named, row)
    if source == "Squad":
        subject = optional_text(row, "sub_label", "sub") or SQUAD_RELATION
    else:
        subject = required_text(row, "sub_label", "sub")
    obj = required_text(row, "obj_label", "obj")
    masked = lama_facts.sentences(row, "masked_sentences")
    relation = _relation_of(reading, source, name)
    fact_id = lama_facts.make_id(row, f"{relation.name}:", subject, obj, lines, number)
    sentences = lama_facts.with_evidences(masked, row, fact_id, reading.max_sentences)
    if not sentences and not relation.prompts:
        if source in ("ConceptNet", "Squad"):
            raise Rejected(f"no sentence with {BLANK} in 'masked_sentences'")
        raise Rejected(
            f"nothing to query: {relation.name} has no template in relations.jsonl, and this fact "
            f"has no sentence with {BLANK}"
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


def _relation_name(source: str, named: str, row: JsonObject) -> str:
    if source == "ConceptNet":
        return required_text(row, "pred")
    if source == "Squad":
        return SQUAD_RELATION
    stated = optional_text(row, "predicate_id") if source == "TREx" else ""
    if stated and stated != named:
        raise Rejected(f"predicate_id is {stated!r}, but the file is that of {named!r}")
    return named


def _relation_of(reading: _Reading, source: str, plain: str) -> Relation:
    """Return the relation called `plain` in the source's files; create it at its first fact."""
    name, known = plain, reading.relations
    if name in known and known[name].source != source:
        name = f"{source}:{name}"  # two sources use the same name
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


def _in_order(reading: _Reading) -> list[Relation]:
    """Return the relations with facts: by source, then as in relations.jsonl, then as read."""
    used = {fact.relation for fact in reading.facts}
    listed = {name: number for number, name in enumerate(reading.described)}

    def order(relation: Relation) -> tuple[int, int]:
        return SOURCES.index(relation.source), listed.get(relation.name, len(listed))

    return sorted((rel for rel in reading.relations.values() if rel.name in used), key=order)
