"""Queries with blanks: parsed from typed text, or made from templates.

A blank is `[MASK]`, `<mask>`, `[Y]`, or three or more underscores.
"""

import re
from collections.abc import Callable

from lama_core.datasets.template_syntax import template_fault
from lama_core.errors import UserError
from lama_core.models.protocols import Context
from lama_core.types import Prompt, Query

BLANK = re.compile(r"\[MASK\]|<mask>|\[Y\]|_{3,}", re.IGNORECASE)
BLANKS = "[MASK], <mask>, [Y], or three or more underscores"
NO_BLANK = "The text has no blank: write ___ where the word is missing."
MAX_CHARACTERS = 20_000
MAX_BLANKS = 8


def parse_query(text: str) -> Query:
    """Return the query that a user typed, split at its blanks.

    Raises:
        UserError: If the text is empty or too long, or has no blank or too many.
    """
    if not text.strip():
        raise UserError(f"The text is empty: type a sentence with a blank ({BLANKS}).")
    if len(text) > MAX_CHARACTERS:
        raise UserError(
            f"The text has {len(text):,} characters; the maximum is {MAX_CHARACTERS:,}."
        )
    parts = tuple(BLANK.split(" ".join(text.split())))
    if len(parts) == 1:
        raise UserError(NO_BLANK)
    if len(parts) - 1 > MAX_BLANKS:
        raise UserError(f"The text has {len(parts) - 1} blanks; the maximum is {MAX_BLANKS}.")
    return Query(parts)


def fill(prompt: Prompt | str, subject: str) -> Query:
    """Return the template with the subject filled in and a blank for the object.

    The subject is inserted unchanged; a [Y] in it doesn't become a blank.
    """
    return filler(prompt if isinstance(prompt, str) else prompt.template)(subject)


def filler(template: str) -> Callable[[str], Query]:
    """Return `fill` for the subjects of one template.

    Raises UserError unless it has exactly one [X] and one [Y].
    """
    if fault := template_fault(template):
        raise UserError(f"{fault[0].upper()}{fault[1:]}.")
    left, right = template.split("[Y]")
    return lambda subject: Query((left.replace("[X]", subject), right.replace("[X]", subject)))


def follows_only_punctuation(query: Query, blank: int = 0) -> bool:
    """Return whether only punctuation and spaces follow a blank."""
    return not any(character.isalnum() for character in query.parts[blank + 1])


def shows_subject(template: str, context: Context) -> bool:
    """Return whether a model sees the subject; if not, it sees the same query for all facts."""
    return "[X]" in visible_part(template, context)


def visible_part(template: str, context: Context) -> str:
    """Return the part of a template that a model sees: all of it, or the text before the blank.

    Prompts that differ only in the part that a model doesn't see have the same scores.
    """
    if context == "both":
        return template
    left = template.split("[Y]")[0]
    return left.rstrip() + " " if left[-1:].isspace() else left
