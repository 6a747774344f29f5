"""A format of data: files `*.triples`, with lines `subject | relation | object`."""

from pathlib import Path

from lama_core.datasets.dataset import Dataset, make_dataset
from lama_core.datasets.file_search import find_files
from lama_core.datasets.formats import Format
from lama_core.datasets.line_reader import Reading, Rejected
from lama_core.types import Fact, Prompt, Relation


def is_triples(path: Path) -> bool:
    """Return whether a file is in this format."""
    return path.suffix == ".triples"


def load(path: Path, *, name: str | None = None, **about: str) -> Dataset:
    """Return the facts of the file at or under `path`."""
    file = next(iter(find_files(path, is_triples)), None)
    reading, lines = Reading.at(file, path, "holds no file *.triples"), dict[str, int]()
    for number, line in reading.lines(reading.root):
        with reading.dropping(reading.root, number):  # a bad line is reported, not fatal
            parts = [part.strip() for part in line.split("|")]
            if len(parts) != 3 or not all(parts):
                raise Rejected("not of the form subject | relation | object", line)
            subject, relation, answer = parts
            fact = Fact(f"{relation}:{subject}:{answer}", subject, relation, answer, "triples")
            reading.fact(fact, number, lines)
    if not reading.facts:
        raise reading.nothing(path, "line")
    relations = [
        Relation(one, "triples", label=one, prompts=(Prompt(f"[X] {one} [Y] ."),))
        for one in dict.fromkeys(fact.relation for fact in reading.facts)
    ]
    return make_dataset(name or path.stem, relations, reading.facts, reading.report, **about)


TRIPLES = Format(
    "example",
    "files *.triples",
    "facts",
    lambda folder: next((file.parent for file in find_files(folder, is_triples)), None),
    load,
    is_triples,
)
