"""EntityQuestions (Sciavolino et al. 2021): questions about entities, in a file per relation.

Layout: `test/P*.test.json` next to `train` and `dev`, each a list of {"question", "answers"}. The
test set is read; to read another set, give its folder, such as `dataset/dev`.

The first answer is the fact's object, and the others are its aliases. All questions of a relation
have the same words around the subject, so the subject is a question without the beginning and end
that all questions of its file share. If they share no beginning, the whole question is the subject.
There are no cloze sentences, so these facts are for runs of generated answers.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path

from lama_core.datasets.dataset import Dataset
from lama_core.datasets.formats import Format
from lama_core.datasets.line_reader import (
    Reading,
    Rejected,
    distinct,
    required_text,
    text_list,
)
from lama_core.datasets.nested_folders import find_folder
from lama_core.types import Fact
from lama_more_data.json_items import json_items, named

SOURCE = "EntityQuestions"
TEST = "test"
_FILE = re.compile(r"(P\d+)\.(?:train|dev|test)\.json")
LACKING = "is not EntityQuestions: it has no files such as test/P19.test.json"


def find_root(path: Path) -> Path | None:
    """Return the folder at or under `path` with question files in it or its `test`, or None."""
    return find_folder(path, lambda folder: bool(_files(folder)))


def is_file(path: Path) -> bool:
    """Return whether a file is named as in EntityQuestions, such as `P19.test.json`."""
    return _FILE.fullmatch(path.name) is not None


def load(path: Path, *, name: str | None = None, **about: str) -> Dataset:
    """Return the facts of all relations, in the order of the relations' numbers.

    Raises:
        UserError: If `path` has no EntityQuestions files, or no usable question.
    """
    root = path if path.is_file() else find_root(path)
    reading = Reading.at(root, path, LACKING)
    files = [reading.root] if path.is_file() else _files(reading.root)
    ids: set[str] = set()
    for file in files:
        relation = _relation_of(file)
        facts: list[Fact] = []
        for number, row in json_items(reading, file):
            with reading.dropping(file, 0, named(number)):
                question = required_text(row, "question")
                answers = distinct(text_list(row, "answers"))
                if not answers:
                    raise Rejected("no field 'answers' with a text")
                fact_id = f"{relation}:{question}|{answers[0]}"
                fact = Fact(
                    fact_id,
                    question,
                    relation,
                    answers[0],
                    SOURCE,
                    aliases=answers[1:],
                    question=question,
                )
                if fact.id in ids:
                    raise Rejected(f"duplicate question: {fact.question!r} with {fact.object!r}")
                ids.add(fact.id)
                facts.append(fact)
        subjects = subjects_of([fact.question for fact in facts])
        reading.facts += [
            replace(fact, subject=subject) for fact, subject in zip(facts, subjects, strict=True)
        ]
    others = [one for one in ("train", "dev") if (reading.root / one).is_dir()]
    if others:
        reading.notes.append(f"only {TEST} is read, not {' and '.join(others)}")
    return reading.dataset_of_questions(path, name, SOURCE, "question", **about)


def _files(folder: Path) -> list[Path]:
    """Return the files in the folder's `test` folder; if there are none, those in the folder."""
    for place in (folder / TEST, folder):
        found = [file for file in place.glob("P*.json") if is_file(file)]
        if found:
            return sorted(found, key=lambda file: (int(_relation_of(file)[1:]), file.name))
    return []


def _relation_of(file: Path) -> str:
    return file.name.split(".", 1)[0]


def subjects_of(questions: Sequence[str]) -> list[str]:
    """Return the subject of each question: the text between the shared beginning and end.

    The beginning and the end are shortened to word boundaries. The questions themselves are
    returned if they share no beginning, or if a question has no text in between.
    """
    start = _shared_start(questions)
    start = start[: start.rfind(" ") + 1]
    end = _shared_start([question[::-1] for question in questions])[::-1]
    while end[:1].isalnum():
        end = end[1:]
    subjects = [question[len(start) : len(question) - len(end)] for question in questions]
    return subjects if start and all(one.strip() for one in subjects) else list(questions)


def _shared_start(texts: Sequence[str]) -> str:
    """Return the characters with which all texts begin."""
    first, last = min(texts, default=""), max(texts, default="")
    same = (a == b for a, b in zip(first, last, strict=False))
    return first[: sum(takewhile(bool, same))]


ENTITY_QUESTIONS = Format(
    "entity-questions", "EntityQuestions' folders", "facts", find_root, load, is_file
)
