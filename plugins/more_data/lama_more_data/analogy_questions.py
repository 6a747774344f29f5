"""Multiple-choice analogy questions: SAT, U2, U4 and others in their two forms.

A question has a stem, a pair of words, and two or more pairs to choose from, one of which is right.

Turney's text (SAT, Turney et al. 2003): for each question a header line, the stem and the choices
as lines `word word n:v` (the parts of speech are not used), and a line with the letter of the right
choice. Ushio et al. 2021: objects with `stem` (two words), `choice` (a list of pairs), `answer`
(the index of the right choice, from 0) and `prefix`; as JSON lines, a JSON list or Parquet. Both
are recognised by their content. Underscores are read as spaces.

Questions are grouped by their header or `prefix`: the source of SAT's questions, the level of U2's
and U4's. If a folder has several files, the name of a group begins with that of its file.

A question with a line that can't be read is excluded as a whole, because its letter would mean
another choice. If the right choice is given twice, both are right.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from lama_core.datasets.dataset import (
    MAX_WORD,
    ChoiceQuestion,
    Pair,
    QuestionDataset,
    make_questions,
)
from lama_core.datasets.file_search import head_of
from lama_core.datasets.formats import Format
from lama_core.datasets.line_reader import Reading, Rejected, optional_text
from lama_core.datasets.nested_folders import files_under
from lama_core.datasets.records import has_table_name, lowered, read_records
from lama_core.datasets.user_table import first_names

FIELDS = frozenset(("stem", "answer", "choice"))
MAX_CHOICES = 100
LACKING = (
    "has no multiple-choice analogy questions: expected objects with stem, choice and answer, or "
    "lines `word word n:v` with a letter below them"
)
NO_LETTER = "no letter of the right choice"
_PAIR = re.compile(r"(\S+)\s+(\S+)\s+[a-z]+:[a-z]+", re.IGNORECASE)
_LETTER = re.compile(r"[a-z]", re.IGNORECASE)


def is_questions(path: Path) -> bool:
    """Whether a file has multiple-choice questions in one of the two forms."""
    return _is_text(path) or {name.lower() for name in first_names(path)} >= FIELDS


def find_root(folder: Path) -> Path | None:
    """Return the folder itself if a file in or under it has questions, else None."""
    return folder if _files(folder) else None


def load(path: Path, *, name: str | None = None, **about: str) -> QuestionDataset:
    """Return the questions in the file `path`, or in all files in and under a folder.

    Raises:
        UserError: If there is no such file, or no usable question.
    """
    files = _files(path)
    reading = Reading.at(path if files else None, path, LACKING)
    questions: list[ChoiceQuestion] = []
    for file in files:
        part = Reading(file)
        found = list(_read_text(part) if _is_text(file) else _read_objects(part))
        if len(files) > 1:
            shown = reading.shown(file).partition(".")[0]
            found = [
                replace(one, group=f"{shown}: {one.group}" if one.group else shown) for one in found
            ]
        questions += found
        reading.dropped += [replace(one, file=reading.shown(file)) for one in part.dropped]
    if path.is_dir():
        reading.notes += [
            f"{reading.shown(file)} is not read: it has no analogy questions"
            for file in files_under(path)
            if has_table_name(file.name) and file not in files
        ]
    if not questions:
        raise reading.nothing(path, "question")
    return make_questions(name or path.stem, questions, reading.report, **about)


def _files(path: Path) -> list[Path]:
    files = [path] if path.is_file() else files_under(path) if path.is_dir() else ()
    return [file for file in files if not file.name.startswith(".") and is_questions(file)]


def _is_text(path: Path) -> bool:
    """Whether a file begins like Turney's: at least three lines of pairs, then a letter."""
    n_pairs = 0
    for line in head_of(path).decode("utf-8", "replace").splitlines():
        if _LETTER.fullmatch(line.strip()) and n_pairs >= 3:
            return True
        n_pairs = n_pairs + 1 if _PAIR.fullmatch(line.strip()) else 0
    return False


@dataclass
class _Open:
    """A question of Turney's text whose letter isn't read yet.

    Attributes:
        group: The last header.
        first: Number of its first line; 0 before it.
        pairs: The stem and the choices.
        has_header: Whether its header is read.
        fault: Why it is excluded; empty for a right question so far.
    """

    group: str = ""
    first: int = 0
    pairs: list[Pair] = field(default_factory=list)
    has_header: bool = False
    fault: str = ""

    def spoil(self, number: int, reason: str) -> None:
        """Exclude the question because of a line, unless another line has excluded it."""
        self.first = self.first or number
        self.fault = self.fault or f"line {number}: {reason}"


def _read_text(reading: Reading) -> Iterator[ChoiceQuestion]:
    file = reading.root
    headers: set[str] = set()
    one, before, is_started = _Open(), 0, False
    for number, line in reading.lines(file, stripped=False):
        text = line.strip()
        pair = _PAIR.fullmatch(text)
        is_started = is_started or pair is not None
        if number != before + 1:  # a line that can't be read, which is reported already
            one.spoil(number - 1, "it can't be read")
        before = number
        if _LETTER.fullmatch(text):
            with reading.dropping(file, one.first or number):
                if one.fault:
                    raise Rejected(one.fault)
                if not one.pairs:
                    raise Rejected(f"the letter {text!r} without a question above it")
                stem, *choices = (_pair(words, "a pair") for words in one.pairs)
                yield _question(stem, choices, ord(text.lower()) - ord("a"), one.group)
            one = _Open(one.group)
        elif text in headers and one.first:  # of the next question
            reading.drop(file, one.first, one.fault or NO_LETTER)
            one = _Open(text, has_header=True)
        elif pair:
            if not one.has_header:  # so the stem may be missing, too
                one.spoil(number, "a pair without a header above its question")
            one.first = one.first or number
            one.pairs.append((pair[1], pair[2]))
        elif one.pairs or (one.has_header and (text or is_started)):
            shown = repr(text[:60]) if text else "an empty line"
            one.spoil(number, f"{shown} instead of a pair such as 'ostrich bird n:n'")
        elif text:
            headers.add(text)
            one.group, one.has_header = text, True
        elif not is_started:  # the lines above are about the file
            one = _Open()
    if one.first:
        reading.drop(file, one.first, one.fault or NO_LETTER)


def _read_objects(reading: Reading) -> Iterator[ChoiceQuestion]:
    for number, values in read_records(reading, alone=True).rows:
        with reading.dropping(reading.root, number):
            row = lowered(values)
            choices = row.get("choice")
            if not isinstance(choices, list):
                raise Rejected("'choice' is not a list of pairs")
            answer = row.get("answer")
            if isinstance(answer, float) and answer.is_integer():  # of a column with empty cells
                answer = int(answer)
            if isinstance(answer, bool) or not isinstance(answer, int):
                raise Rejected("'answer' is not the index of a choice, counted from 0")
            yield _question(
                _pair(row.get("stem"), "'stem'"),
                [_pair(choice, "an item of 'choice'") for choice in choices],
                answer,
                optional_text(row, "prefix"),
            )


def _pair(value: object, what: str) -> Pair:
    """Return two words without extra spaces. Raises Rejected for anything else."""
    words = value if isinstance(value, list | tuple) else ()
    cleaned = [" ".join(w.replace("_", " ").split()) for w in words if isinstance(w, str)]
    if len(words) != 2 or len(cleaned) != 2 or not all(cleaned):
        raise Rejected(f"{what} is not two words: {str(value)[:60]}")
    if long := next((word for word in cleaned if len(word) > MAX_WORD), ""):
        raise Rejected(f"{what} has a word of {len(long):,} characters; at most {MAX_WORD}")
    return cleaned[0], cleaned[1]


def _question(stem: Pair, choices: list[Pair], answer: int, group: str) -> ChoiceQuestion:
    """Return a question. Raises Rejected if it has too few choices or the answer is not one."""
    if not 2 <= len(choices) <= MAX_CHOICES:
        raise Rejected(f"{len(choices)} choices; expected 2 to {MAX_CHOICES}")
    if not 0 <= answer < len(choices):
        raise Rejected(f"the right choice is number {answer + 1} of {len(choices)}")
    return ChoiceQuestion(stem, tuple(choices), choices.index(choices[answer]), group)


QUESTIONS = Format(
    "questions",
    "multiple-choice analogy questions (SAT, U2, U4)",
    "questions",
    find_root,
    load,
    is_questions,
)
