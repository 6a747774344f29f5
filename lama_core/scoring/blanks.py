"""Texts with blanks: reading them from what a user types, and making them from templates.

A blank is `[MASK]`, `<mask>`, `[Y]`, or three or more underscores.
"""

import re
from itertools import pairwise

from lama_core.datasets.template_syntax import template_fault
from lama_core.errors import UserError
from lama_core.models.languages import joins_words
from lama_core.models.protocols import Context
from lama_core.types import Prompt, Query

BLANK = re.compile(r"\[MASK\]|<mask>|\[Y\]|_{3,}", re.IGNORECASE)
BLANKS = "[MASK], <mask>, [Y], or three or more underscores"
MAX_CHARACTERS = 20_000
MAX_BLANKS = 8


def parse_query(text: str) -> Query:
    """The text a user typed, cut at its blanks.

    Raises UserError for an empty or overlong text, no blank, too many, or a blank inside a word.
    """
    if not text.strip():
        raise UserError(f"The text is empty: type a sentence with a blank ({BLANKS}).")
    if len(text) > MAX_CHARACTERS:
        raise UserError(
            f"The text has {len(text):,} characters; at most {MAX_CHARACTERS:,} are taken."
        )
    parts = tuple(BLANK.split(" ".join(text.split())))
    if len(parts) == 1:
        raise UserError(f"The text has no blank: write {BLANKS} where the word is missing.")
    if len(parts) - 1 > MAX_BLANKS:
        raise UserError(f"The text has {len(parts) - 1} blanks; at most {MAX_BLANKS} are taken.")
    for left, right in pairwise(parts):
        if joins_words(left[-1:]) or joins_words(right[:1]):
            inside = f"{left.split(' ')[-1]}___{right.split(' ')[0]}"
            raise UserError(
                f"A blank stands inside a word ({inside[:60]}): set a space between them."
            )
    return Query(parts)


def check_template(template: str) -> str:
    """The template itself. Raises UserError unless it has exactly one [X] and one [Y]."""
    fault = template_fault(template)
    if fault:
        raise UserError(f"{fault[0].upper()}{fault[1:]}.")
    return template


def fill(prompt: Prompt | str, subject: str) -> Query:
    """The template with the subject filled in and a blank for the object.

    The subject is put in as it is, whatever it holds: only the template's own [Y] is a blank.
    """
    template = prompt if isinstance(prompt, str) else prompt.template
    left, right = check_template(template).split("[Y]")
    return Query((left.replace("[X]", subject), right.replace("[X]", subject)))


def follows_only_punctuation(query: Query, blank: int = 0) -> bool:
    """Whether nothing but punctuation and spaces stands right of a blank."""
    return not any(character.isalnum() for character in query.parts[blank + 1])


def shows_subject(template: str, context: Context) -> bool:
    """Whether a model sees the subject in a query, or is asked the same whatever the fact is."""
    return "[X]" in what_is_seen(template, context)


def what_is_seen(template: str, context: Context) -> str:
    """What a model sees of a template: all of it, or what stands left of the blank.

    Prompts that look the same to a model share their blocks.
    """
    if context == "both":
        return template
    left = template.split("[Y]")[0]
    return left.rstrip() + " " if left[-1:].isspace() else left
