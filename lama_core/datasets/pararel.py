"""ParaRel's patterns and facts (Elazar et al. 2021).

Layout: `pattern_data/P*.jsonl` or `pattern_data/graphs_json/P*.jsonl` (pattern, lemma,
extended_lemma, tense), `trex_lms_vocab/P*.jsonl` (facts in LAMA's form whose objects are one
token in BERT, RoBERTa and ALBERT), the two in one folder or under `data`.
"""

from pathlib import Path

from lama_core.datasets.base import Dataset, Dropped, ReadReport, make_dataset
from lama_core.datasets.folders import find_folder
from lama_core.datasets.jsonl import (
    Rejected,
    iter_objects,
    optional_text,
    required_text,
)
from lama_core.datasets.templates import template_fault
from lama_core.errors import UserError
from lama_core.types import Fact, Prompt, Relation

ORIGIN = "pararel"


def find_root(path: Path) -> Path | None:
    """The folder at or under `path` that holds `pattern_data` or `trex_lms_vocab`, or None."""
    return find_folder(
        path,
        lambda folder: (folder / "pattern_data").is_dir() or (folder / "trex_lms_vocab").is_dir(),
    )


def load_patterns(path: Path) -> tuple[dict[str, tuple[Prompt, ...]], ReadReport]:
    """The paraphrase patterns by relation, in the file's order, and what was left out."""
    root = _root(path)
    folder = root / "pattern_data"
    folder = folder / "graphs_json" if (folder / "graphs_json").is_dir() else folder
    dropped: list[Dropped] = []
    patterns: dict[str, tuple[Prompt, ...]] = {}
    for file in sorted(folder.glob("*.jsonl")):
        shown = file.relative_to(root).as_posix()
        found: dict[Prompt, None] = {}
        for number, row in iter_objects(file, shown, dropped):
            try:
                pattern = required_text(row, "pattern")
                fault = template_fault(pattern)
                if fault:
                    raise Rejected(fault)
                if Prompt(pattern, ORIGIN) in found:
                    raise Rejected(f"the pattern {pattern!r} was there already")
            except Rejected as reason:
                dropped.append(Dropped(shown, number, str(reason)))
                continue
            found[Prompt(pattern, ORIGIN)] = None
        patterns[file.stem] = tuple(found)
    return patterns, ReadReport(tuple(dropped))


def load(path: Path, *, name: str | None = None, licence: str = "", citation: str = "") -> Dataset:
    """ParaRel's facts, each relation with its patterns as prompts; no facts is said in a note.

    Raises UserError if `path` holds neither patterns nor facts.
    """
    root = _root(path)
    patterns, report = load_patterns(root)
    dropped: list[Dropped] = []
    facts: list[Fact] = []
    ids: dict[str, int] = {}
    for file in sorted((root / "trex_lms_vocab").glob("*.jsonl")):
        shown = file.relative_to(root).as_posix()
        for number, row in iter_objects(file, shown, dropped):
            try:
                subject = required_text(row, "sub_label", "sub")
                obj = required_text(row, "obj_label", "obj")
                fact_id = f"{file.stem}:{optional_text(row, 'uuid') or f'{subject}|{obj}'}"
                if fact_id in ids:
                    raise Rejected(f"the id {fact_id!r} was already on line {ids[fact_id]}")
            except Rejected as reason:
                dropped.append(Dropped(shown, number, str(reason)))
                continue
            ids[fact_id] = number
            facts.append(Fact(fact_id, subject, file.stem, obj, "TREx"))
    names = dict.fromkeys([*patterns, *(fact.relation for fact in facts)])
    relations = [Relation(n, "TREx", prompts=patterns.get(n, ())) for n in names]
    notes = () if facts else ("no trex_lms_vocab: patterns without facts",)
    report += ReadReport(tuple(dropped), notes)
    return make_dataset(
        name or path.name, relations, facts, report, licence=licence, citation=citation
    )


def _root(path: Path) -> Path:
    root = find_root(path)
    if root is None:
        raise UserError(f"{path} is not ParaRel: it has neither pattern_data nor trex_lms_vocab")
    return root
