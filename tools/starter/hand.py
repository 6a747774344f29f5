"""The hand-written lists in `hand/*.txt`: facts, people, questions, corrections, analogies."""

from collections.abc import Iterator

from tools.starter.model import HERE, StarterFact

ORIGIN = "written by hand"
FACT_FILES = ("works.txt", "places.txt", "commonsense.txt", "more.txt")


def facts() -> Iterator[StarterFact]:
    """Yield the facts of the hand-written lists.

    A section starts with `[P36 by object]` (then lines `object: subject; subject`) or
    `[UsedFor by subject]` (then `subject: object; object`).
    """
    for name in FACT_FILES:
        for line in lines(name):
            if line.startswith("["):
                relation, order = line.strip("[]").split(" ", 1)
                continue
            key, values = line.split(": ", 1)
            for value in values.split("; "):
                subject, obj = (value, key) if order == "by object" else (key, value)
                yield StarterFact(relation, subject.strip(), obj.strip(), ORIGIN)


def cells(name: str) -> Iterator[list[str]]:
    """Yield the cells of each line of a table; its first lines explain them."""
    for line in lines(name):
        yield [cell.strip() for cell in line.split(" | ")]


def lines(name: str) -> Iterator[str]:
    """Yield the lines of a list, without comments."""
    for line in (HERE / "hand" / name).read_text("utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            yield line.strip()
