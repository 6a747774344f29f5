"""T-REx as its authors publish it (Elsahar et al. 2018): JSON lists of annotated abstracts.

A document has `text`, `sentences_boundaries` ([start, end] in characters) and `triples`. A triple
has `subject`, `predicate` and `object` (`uri`, `surfaceform`, `boundaries`), and `sentence_id`.

A triple is a fact of the property's relation, with Wikidata's numbers as its identity. Each triple
adds its sentence, with the object's characters as the blank, to the fact's sentences, up to
`MAX_SENTENCES`. The names are the surface forms of the fact's first sentence; a subject that is
written as a pronoun there has the document's title as its name. The facts have no templates.
"""

from dataclasses import replace
from pathlib import Path

from lama_core.datasets.dataset import BLANK, Dataset
from lama_core.datasets.file_search import find_files, head_of
from lama_core.datasets.formats import one_file
from lama_core.datasets.lama import MAX_SENTENCES
from lama_core.datasets.line_reader import JsonObject, Reading, Rejected, as_object, required_text
from lama_core.types import Fact
from lama_more_data.json_items import json_items, named

SOURCE = "T-REx"
PRONOUNS = frozenset(
    ("he", "she", "it", "they", "his", "her", "its", "their", "him", "them", "this")
)
_MARKS = (b'"triples"', b'"sentences_boundaries"')

Key = tuple[str, str, str]


def is_trex(path: Path) -> bool:
    """Return whether a file is a JSON list that begins with an annotated document."""
    head = head_of(path).lstrip()
    return head.startswith(b"[") and any(mark in head for mark in _MARKS) and b'"docid"' in head


def load(path: Path, *, name: str | None = None, **about: str) -> Dataset:
    """Return the facts of T-REx's files at or under `path`, in order of first appearance.

    Raises:
        UserError: If there is no such file, or no usable triple.
    """
    files = find_files(path, is_trex)
    reading = Reading.at(files[0] if files else None, path, "holds no file of T-REx")
    facts: dict[Key, Fact] = {}
    sentences: dict[Key, dict[str, None]] = {}
    for file in files:
        for number, document in json_items(reading, file):
            triples = document.get("triples")
            if not isinstance(triples, list):
                reading.drop(file, 0, f"{named(number)}'triples' is not a list")
                continue
            for triple in triples:
                with reading.dropping(file, 0, named(number)):
                    _add(facts, sentences, document, triple)
    reading.facts = [replace(fact, sentences=tuple(sentences[key])) for key, fact in facts.items()]
    return reading.dataset_of_questions(path, name, SOURCE, "triple", **about)


def _add(
    facts: dict[Key, Fact],
    sentences: dict[Key, dict[str, None]],
    document: JsonObject,
    triple: object,
) -> None:
    """Add a triple's fact, or its sentence to the known fact. Raises Rejected if unusable."""
    row = as_object(triple)
    subject, predicate, obj = (
        as_object(row.get(part)) for part in ("subject", "predicate", "object")
    )
    key = (_number(subject), _number(predicate), _number(obj))
    sentence = _masked(document, row, obj)
    if key not in facts:
        written = required_text(subject, "surfaceform")
        name = written
        if written.lower() in PRONOUNS:
            name = required_text(document, "title")
        facts[key] = Fact(
            f"{key[1]}:{key[0]}|{key[2]}",
            name,
            key[1],
            required_text(obj, "surfaceform"),
            SOURCE,
            subject_id=key[0],
            object_id=key[2],
        )
        sentences[key] = {}
    if len(sentences[key]) < MAX_SENTENCES:
        sentences[key][sentence] = None


def _number(part: JsonObject) -> str:
    """Return the entity or property of an address, such as Q90; a literal's text as it is."""
    return required_text(part, "uri").rsplit("/", 1)[-1]


def _masked(document: JsonObject, row: JsonObject, obj: JsonObject) -> str:
    """Return the triple's sentence with the blank in place of its object."""
    text, bounds = document.get("text"), document.get("sentences_boundaries")
    at = row.get("sentence_id")
    if isinstance(text, str) and isinstance(bounds, list) and isinstance(at, int):
        sentence = _span(bounds[at]) if 0 <= at < len(bounds) else None
        place = _span(obj.get("boundaries"))
        if sentence and place and sentence[0] <= place[0] < place[1] <= sentence[1] <= len(text):
            masked = f"{text[sentence[0] : place[0]]}{BLANK}{text[place[1] : sentence[1]]}"
            return " ".join(masked.split())
    raise Rejected("a triple's object has no place in a sentence")


def _span(value: object) -> tuple[int, int] | None:
    """Return a span [start, end] of characters; None for anything else."""
    if isinstance(value, list) and len(value) == 2:
        start, end = value
        if isinstance(start, int) and isinstance(end, int) and start >= 0:
            return start, end
    return None


TREX = one_file("trex", "T-REx's files", is_trex, load)
