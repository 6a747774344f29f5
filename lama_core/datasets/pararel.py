"""ParaRel's patterns and facts (Elazar et al. 2021).

Layout: `pattern_data/P*.jsonl` or `pattern_data/graphs_json/P*.jsonl` (pattern, lemma,
extended_lemma, tense), `trex_lms_vocab/P*.jsonl` (facts in LAMA's format, whose objects are one
token in BERT, RoBERTa and ALBERT); both in one folder or under `data`.
"""

from pathlib import Path

from lama_core.datasets.dataset import Dataset, make_dataset
from lama_core.datasets.line_reader import Reading, Rejected, optional_text, required_text, usable
from lama_core.datasets.nested_folders import find_folder
from lama_core.types import Fact, Prompt

ORIGIN = "pararel"
PATTERNS, FACTS = "pattern_data", "trex_lms_vocab"
MISSING = f"is not ParaRel: it has neither {PATTERNS} nor {FACTS}"

Patterns = dict[str, tuple[Prompt, ...]]


def find_root(path: Path) -> Path | None:
    """Return the folder at or under `path` with ParaRel's patterns or facts, or None."""
    return find_folder(
        path, lambda folder: (folder / PATTERNS).is_dir() or (folder / FACTS).is_dir()
    )


def load_patterns(path: Path) -> Patterns:
    """Return the paraphrase patterns by relation, in file order."""
    return _read_patterns(Reading.at(find_root(path), path, MISSING))


def load(path: Path, *, name: str | None = None, **about: str) -> Dataset:
    """Return ParaRel's facts, and each relation with its patterns as prompts.

    Without facts, the report has a note. Raises UserError if `path` has neither patterns nor facts.
    """
    reading = Reading.at(find_root(path), path, MISSING)
    patterns = _read_patterns(reading)
    for file in sorted((reading.root / FACTS).glob("*.jsonl")):
        lines: dict[str, int] = {}
        for number, row in reading.objects(file):
            with reading.dropping(file, number):
                subject = required_text(row, "sub_label", "sub")
                obj = required_text(row, "obj_label", "obj")
                fact_id = f"{file.stem}:{optional_text(row, 'uuid') or f'{subject}|{obj}'}"
                fact = Fact(fact_id, subject, file.stem, obj, "TREx")
                reading.fact(fact, number, lines, f"the id {fact_id!r}")
    if not reading.facts:
        reading.notes.append(f"no {FACTS}: patterns without facts")
    relations = reading.relations_of(patterns)
    return make_dataset(name or path.name, relations, reading.facts, reading.report, **about)


def _read_patterns(reading: Reading) -> Patterns:
    folder = reading.root / PATTERNS
    folder = folder / "graphs_json" if (folder / "graphs_json").is_dir() else folder
    patterns: Patterns = {}
    for file in sorted(folder.glob("*.jsonl")):
        found: dict[str, Prompt] = {}
        for number, row in reading.objects(file):
            with reading.dropping(file, number):
                pattern = usable(required_text(row, "pattern"))
                if pattern in found:
                    raise Rejected(f"duplicate pattern {pattern!r}")
                found[pattern] = Prompt(pattern, ORIGIN)
        patterns[file.stem] = tuple(found.values())
    return patterns
