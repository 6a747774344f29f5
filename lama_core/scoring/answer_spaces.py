"""Answer spaces: the words and phrases of any length that are ranked at a fact's blank.

relation     the dataset's list of the relation's answers; without a list, the relation's objects in
             file order
file:PATH    the user's list, one answer per line, for every relation
"""

from collections.abc import Iterable

from lama_core.candidates.columns import Candidates, Columns
from lama_core.candidates.lists import FILE, read_lines
from lama_core.candidates.spelling import OpenVocabulary, Spelling
from lama_core.datasets import Dataset, relation_objects
from lama_core.datasets.dataset import MAX_ANSWERS, MAX_LETTERS
from lama_core.errors import UserError
from lama_core.files import user_path
from lama_core.texts import written_key

RELATION = "relation"


def named_space(name: str) -> Candidates:
    """Return an answer space by name. Raises UserError for an unknown name or an invalid file."""
    if name == RELATION:
        return Candidates(RELATION, None, per_relation=True)
    if not name.startswith(FILE):
        raise UserError(f"Unknown answers {name[:60]!r}: choose {RELATION}, or {FILE}PATH.")
    path = user_path(name.removeprefix(FILE))
    return Candidates(name, check_answers(read_lines(path, "list of answers", "answer")))


def check_answers(answers: Iterable[str]) -> tuple[str, ...]:
    """Return the answers, stripped.

    Raises:
        UserError: If there are none or too many, or one is empty, too long or a duplicate.
    """
    stripped = tuple(answer.strip() for answer in answers)
    if not stripped:
        raise UserError("Answers are missing: add at least one.")
    if len(stripped) > MAX_ANSWERS:
        raise UserError(
            f"There are {len(stripped):,} answers; the maximum is {MAX_ANSWERS:,}. Remove some."
        )
    seen: set[str] = set()
    for number, answer in enumerate(stripped, start=1):
        if not answer:
            raise UserError(f"Answer {number} is empty: remove it.")
        if len(answer) > MAX_LETTERS:
            raise UserError(f"Answer {number} is longer than {MAX_LETTERS} letters: shorten it.")
        if written_key(answer) in seen:
            raise UserError(f"The answer {answer[:60]!r} occurs twice: remove one.")
        seen.add(written_key(answer))
    return stripped


def answers_of(space: Candidates, dataset: Dataset, relation: str) -> tuple[str, ...]:
    """Return the answers that are ranked for one relation."""
    if not space.per_relation:
        return space.words or ()
    return dataset.relation(relation).answers or relation_objects(dataset, relation)


def answer_columns(answers: tuple[str, ...]) -> Columns:
    """Return answers as columns of a table of scores, independent of a model's tokens."""
    return Columns(answers, Spelling(OpenVocabulary()))
