"""The hand-written lists in `hand/*.txt`: facts, people, questions, corrections, analogies."""

from collections.abc import Iterator
from dataclasses import dataclass

from tools.starter.model import HERE, StarterFact

ORIGIN = "written by hand"
FOLDER = HERE / "hand"
FACT_FILES = ("works.txt", "places.txt", "commonsense.txt", "more.txt")


@dataclass(frozen=True, slots=True)
class PersonLine:
    """A line of people.txt; a value is None if it is unknown or not used."""

    name: str
    born: str | None
    birthplace: str | None
    deathplace: str | None


def facts() -> Iterator[StarterFact]:
    """Yield the facts of the hand-written lists.

    A section starts with `[P36 by object]` (then lines `object: subject; subject`) or
    `[UsedFor by subject]` (then `subject: object; object`).
    """
    for name in FACT_FILES:
        relation, by_object = "", False
        for line in _lines(name):
            if line.startswith("["):
                relation, order = line.strip("[]").split(" ", 1)
                by_object = order == "by object"
                continue
            key, values = line.split(": ", 1)
            for value in values.split("; "):
                subject, obj = (value, key) if by_object else (key, value)
                yield StarterFact(relation, subject.strip(), obj.strip(), ORIGIN)


def people() -> list[PersonLine]:
    """Return the people in people.txt."""
    found = []
    for line in _lines("people.txt"):
        name, *rest = (cell.strip() for cell in line.split(" | "))
        born, birthplace, deathplace = (None if cell == "-" else cell for cell in rest)
        found.append(PersonLine(name, born, birthplace, deathplace))
    return found


def cloze_questions() -> list[tuple[str, str]]:
    """Return (sentence with [MASK], answer) pairs."""
    pairs = (line.split(" | ") for line in _lines("cloze.txt"))
    return [(sentence.strip(), answer.strip()) for sentence, answer in pairs]


def correction_lines() -> list[list[str]]:
    """Return the cells of each line of corrections.txt; the file's first lines explain them."""
    return [[cell.strip() for cell in line.split(" | ")] for line in _lines("corrections.txt")]


def _lines(name: str) -> Iterator[str]:
    for line in (FOLDER / name).read_text("utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            yield line.strip()


@dataclass(frozen=True, slots=True)
class AnalogySection:
    """A relation of analogies.txt: folder, file and (head, tails joined by slashes) as in BATS."""

    folder: str
    file: str
    pairs: tuple[tuple[str, str], ...]


def analogies() -> list[AnalogySection]:
    """Return the hand-written analogy relations."""
    sections = []
    for line in _lines("analogies.txt"):
        if line.startswith("["):
            folder, file = line[1:-1].split(" | ")
            continue
        pairs = tuple(tuple(pair.split(" ")) for pair in line.split(", "))
        sections.append(AnalogySection(folder, file, tuple((head, tails) for head, tails in pairs)))
    return sections
