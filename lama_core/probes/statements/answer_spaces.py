"""Answer spaces: what is ranked at a fact's blank, words and phrases of any length.

relation     the data's own list of the relation's answers, else its objects in file order
file:PATH    a list of the user's, one answer a line, for every relation
"""

from collections.abc import Iterable

from lama_core.candidates.columns import Candidates, Columns
from lama_core.candidates.lists import FILE, read_lines
from lama_core.candidates.spelling import Spelling
from lama_core.datasets import Dataset, relation_objects
from lama_core.datasets.dataset import MAX_ANSWERS, MAX_LETTERS
from lama_core.errors import UserError
from lama_core.files import given_path

RELATION = "relation"


def named_space(name: str) -> Candidates:
    """Return the answers that a user means by a name. Raises UserError for an unknown one."""
    if name == RELATION:
        return Candidates(RELATION, None, per_relation=True)
    if not name.startswith(FILE):
        raise UserError(f"Unknown answers {name[:60]!r}: choose {RELATION}, or {FILE}PATH.")
    path = given_path(name.removeprefix(FILE))
    return Candidates(name, check_answers(read_lines(path, "list of answers", "answer")))


def check_answers(answers: Iterable[str]) -> tuple[str, ...]:
    """Return the answers without spaces around them. Raises UserError for empty or double ones."""
    found = tuple(answer.strip() for answer in answers)
    if not found:
        raise UserError("There is no answer to rank: give at least one.")
    if len(found) > MAX_ANSWERS:
        raise UserError(f"{len(found):,} answers are too many: give at most {MAX_ANSWERS:,}.")
    seen: set[str] = set()
    for number, answer in enumerate(found, start=1):
        if not answer:
            raise UserError(f"Answer {number} is empty: leave it out.")
        if len(answer) > MAX_LETTERS:
            raise UserError(f"Answer {number} is longer than {MAX_LETTERS} letters: shorten it.")
        if answer in seen:
            raise UserError(f"The answer {answer[:60]!r} is there twice: leave one out.")
        seen.add(answer)
    return found


def answers_of(space: Candidates, dataset: Dataset, relation: str) -> tuple[str, ...]:
    """The answers that are ranked for one relation."""
    if not space.per_relation:
        return space.words or ()
    return dataset.relation(relation).answers or relation_objects(dataset, relation)


def as_columns(answers: tuple[str, ...]) -> Columns:
    """Answers as the columns of a table of scores: each is itself, whatever tokens write it."""
    return Columns(answers, {}, Spelling(cased=True, folded=False, forms={}))
