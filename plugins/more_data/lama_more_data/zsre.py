"""zsRE's questions (Levy et al. 2017), as KILT and KnowledgeEditor publish them.

JSONL with a row per fact. KILT (Petroni et al. 2021): `input` is "Subject [SEP] relation", `output`
a list of {"answer"}, and `meta.template_questions` the questions, of which the first is used.
KnowledgeEditor (De Cao et al. 2021): `input` is the question itself. There the relation isn't
given, so all facts have the relation `questions`. The subject is the title of the answer's page if
the question contains this title, else the whole question.

The first answer is the fact's object, and the others are its aliases. There are no cloze sentences,
so these facts are for runs of generated answers. KILT's other sets of questions, such as its form
of TriviaQA, have the same layout.
"""

from pathlib import Path

import orjson

from lama_core.datasets.dataset import Dataset
from lama_core.datasets.file_search import find_files, head_of
from lama_core.datasets.formats import one_file
from lama_core.datasets.line_reader import (
    JsonObject,
    Reading,
    Rejected,
    as_object,
    distinct,
    optional_text,
    required_text,
    text_list,
)
from lama_core.types import Fact

SOURCE = "zsRE"
SEPARATOR = "[SEP]"
QUESTIONS = "questions"  # relation of rows without a relation


def is_zsre(path: Path) -> bool:
    """Return whether a file is JSONL and one of its first rows has `input` and `output`."""
    # A row may be broken, so all rows in the first bytes are tried.
    return any(map(_has_fields, head_of(path).splitlines()))


def _has_fields(line: bytes) -> bool:
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return isinstance(row, dict) and "input" in row and isinstance(row.get("output"), list)


def load(path: Path, *, name: str | None = None, **about: str) -> Dataset:
    """Return the facts of the zsRE file `path`, or of all zsRE files in a folder, in file order.

    Raises:
        UserError: If there is no zsRE file, or no usable row.
    """
    files = find_files(path, is_zsre)
    root = path if path.is_file() or not files else files[0].parent
    reading = Reading.at(
        root if files else None, path, "holds no zsRE file: JSONL with input and output"
    )
    lines: dict[str, int] = {}
    for file in files:
        for number, row in reading.objects(file):
            with reading.dropping(file, number):
                reading.fact(_read_fact(row), number, lines)
    return reading.dataset_of_questions(path, name, SOURCE, "row", **about)


def _read_fact(row: JsonObject) -> Fact:
    text = required_text(row, "input")
    outputs = _objects(row, "output")
    answers = distinct(optional_text(one, "answer") for one in outputs)
    if not answers:
        raise Rejected("no answer in 'output'")
    subject, separator, relation = (part.strip() for part in text.partition(SEPARATOR))
    if separator:
        if not subject or not relation:
            raise Rejected(f"'input' is {text[:60]!r}: a side of {SEPARATOR} is empty")
        questions = distinct(text_list(as_object(row.get("meta") or {}), "template_questions"))
        if not questions:
            raise Rejected("no question in 'meta.template_questions'")
        question = questions[0]
    else:
        subject, relation, question = _subject_of(text, outputs), QUESTIONS, text
    stated = optional_text(row, "id") or f"{text}|{answers[0]}"
    return Fact(
        f"{relation}:{stated}",
        subject,
        relation,
        answers[0],
        SOURCE,
        aliases=answers[1:],
        question=question,
    )


def _objects(row: JsonObject, name: str) -> list[JsonObject]:
    values = row.get(name)
    if not isinstance(values, list):
        raise Rejected(f"{name!r} is not a list" if name in row else f"no field {name!r}")
    return [as_object(value) for value in values]


def _subject_of(question: str, outputs: list[JsonObject]) -> str:
    """Return the first title of an answer's page that is in the question, else the question."""
    for output in outputs:
        if isinstance(output.get("provenance"), list):
            for page in _objects(output, "provenance"):
                title = optional_text(page, "title")
                if title and title.lower() in question.lower():
                    return title
    return question


ZSRE = one_file("zsre", "zsRE's lines", is_zsre, load)
