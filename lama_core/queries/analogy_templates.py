"""Analogy templates: texts with the four slots [A], [B], [C] and [D], each once.

Source: Ushio et al. 2021, worded as in their released code (asahi417/analogy-language-model), with
two differences: `what-to` follows Rezaee and Camacho-Collados ("What A is to B, C is to D."), and a
query with a blank gets a final full stop if it has none.
Departure: Words of the analogy templates
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from lama_core.datasets.dataset import MAX_WORD
from lama_core.errors import UserError, did_you_mean
from lama_core.requests import option
from lama_core.scoring.blanks import BLANK, parse_query
from lama_core.types import Query

SLOT = re.compile(r"\[([ABCD])\]")
SLOTS = ("A", "B", "C", "D")
TEMPLATES: dict[str, str] = {
    "to-what": "[A] is to [B] what [C] is to [D]",
    "to-as": "[A] is to [B] as [C] is to [D]",
    "rel-same": (
        "The relation between [A] and [B] is the same as the relation between [C] and [D]"
    ),
    "what-to": "What [A] is to [B], [C] is to [D].",
    "she-as": "She explained to him that [A] is to [B] as [C] is to [D].",
    "as-what": (
        "As I explained earlier, what [A] is to [B] is essentially the same as what [C] is to [D]."
    ),
}
DEFAULT_TEMPLATE = "what-to"  # the paper's
TEMPLATE_HELP = f"{', '.join(TEMPLATES)}, or your own with [A] [B] [C] [D]."
TemplateChoice = Annotated[str, option(TEMPLATE_HELP)]
MAX_TEMPLATE = 500
# Maximum words in a slot; a sentence with more is treated as free text.
MAX_PARTS = 3
# Longer texts (in characters) are not matched with the templates, because it would take too long.
MAX_MATCHED = 600


@dataclass(frozen=True, slots=True)
class Sentence:
    """A filled template. spans: character ranges of A, B, C and D, [start, end)."""

    text: str
    spans: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class AnalogyQuestion:
    """An analogy with one word missing.

    words: A, B, C and D, with None at the blank; None if the text does not match a template.
    template: The template's name or the user's text; None if the text does not match a template.
    """

    query: Query
    words: tuple[str | None, ...] | None
    template: str | None

    @property
    def given(self) -> tuple[str, ...]:
        """The given words, in the order A to D; empty for free text."""
        return tuple(word for word in self.words or () if word is not None)

    @property
    def blank(self) -> int | None:
        """Position of the missing word, 0 to 3; None for free text."""
        return self.words.index(None) if self.words else None


def resolve_template(name_or_text: str) -> str:
    """Return a named template's text, or the user's own text.

    Raises UserError for an unknown name, or a text that lacks a slot or has it more than once.
    """
    if name_or_text in TEMPLATES:
        return TEMPLATES[name_or_text]
    text = " ".join(name_or_text.split())
    if "[" not in text:
        near = did_you_mean(name_or_text, TEMPLATES)
        raise UserError(
            f"Unknown template {name_or_text[:60]!r}{near}: choose {', '.join(TEMPLATES)}, "
            "or write your own with [A], [B], [C] and [D]."
        )
    if len(text) > MAX_TEMPLATE:
        raise UserError(f"The template has {len(text):,} characters. Use at most {MAX_TEMPLATE}.")
    found = SLOT.findall(text)
    for slot in SLOTS:
        if found.count(slot) != 1:
            count = "no" if slot not in found else "more than one"
            raise UserError(
                f"The template {text[:60]!r} has {count} [{slot}]. Write each of [A], [B], [C] and "
                "[D] once."
            )
    return text


def begins_with_candidate(name_or_text: str) -> bool:
    """Whether a template begins with a word of the candidate pair, which is C and D."""
    return resolve_template(name_or_text).startswith(("[C]", "[D]"))


def template_name(name_or_text: str) -> str:
    """Return the name of a known template, or the user's own text."""
    text = resolve_template(name_or_text)
    return next((name for name, known in TEMPLATES.items() if known == text), text)


def check_word(word: str) -> str:
    """Return the word without extra spaces. Raises UserError if it is empty or too long."""
    cleaned = " ".join(word.split())
    if not cleaned:
        raise UserError("A word is empty. An analogy needs three words and a blank.")
    if len(cleaned) > MAX_WORD:
        raise UserError(
            f"The word {cleaned[:20] + '…'!r} has {len(cleaned):,} characters. Use at most "
            f"{MAX_WORD}."
        )
    return cleaned


def fill_template(template: str, words: Sequence[str]) -> Sentence:
    """Fill in A, B, C and D; slots inside the words are not replaced."""
    text = ""
    spans = {}
    for number, part in enumerate(SLOT.split(template)):
        shown = words[SLOTS.index(part)] if number % 2 else part  # each second part is a slot
        spans[number % 2, part] = (len(text), len(text) + len(shown))
        text += shown
    return Sentence(text, tuple(spans[1, slot] for slot in SLOTS))


def template_label(name: str) -> str:
    """Return a template's name with its text; the user's own text unchanged."""
    return f"{name}: {TEMPLATES[name]}" if name in TEMPLATES else name


def make_analogy_question(
    words: Sequence[str | None], template: str = DEFAULT_TEMPLATE
) -> AnalogyQuestion:
    """Return the question for A, B, C and D, one of which must be None or a blank.

    Raises UserError for an invalid template, or unless exactly one word is missing.
    """
    cleaned = tuple(
        None if word is None or BLANK.fullmatch(word.strip()) else check_word(word)
        for word in words
    )
    n_given = sum(word is not None for word in cleaned)
    if len(cleaned) != 4 or n_given < 3:
        raise UserError(
            f"An analogy needs three words and a blank, but got {min(n_given, len(cleaned))} "
            "words. Write A B C ___, with the blank in any of the four positions."
        )
    if n_given == 4:
        raise UserError("All four words are given. Replace one of them by a blank (___).")
    filled = fill_template(resolve_template(template), [word or "" for word in cleaned])
    at = filled.spans[cleaned.index(None)][0]
    parts = _with_full_stop((filled.text[:at], filled.text[at:]))
    return AnalogyQuestion(Query(parts), cleaned, template_name(template))


def parse_analogy(text: str) -> AnalogyQuestion:
    """Parse an analogy that a user typed as a sentence with one blank.

    A sentence that matches none of the six templates is used as free text, without words.
    Raises UserError without exactly one blank, or with fewer than three other words.
    """
    query = parse_query(text)
    if query.n_blanks != 1:
        raise UserError(
            f"The analogy has {query.n_blanks} blanks. Replace exactly one of the four words by "
            "a blank."
        )
    n_words = sum(len(re.findall(r"\w+", part)) for part in query.parts)
    if n_words < 3:
        raise UserError(
            f"An analogy needs three words and a blank, but got {n_words} words. Write, for "
            "example, 'Paris is to France as Rome is to ___'."
        )
    plain = query.text("___")
    if len(plain) <= MAX_MATCHED:
        # Longest template first, because she-as contains to-as.
        for name in sorted(TEMPLATES, key=lambda name: -len(TEMPLATES[name])):
            pattern = "".join(
                f"(?P<{part}>[^,]+?)" if number % 2 else re.escape(part)
                for number, part in enumerate(SLOT.split(TEMPLATES[name].rstrip(" .")))
            )
            match = re.fullmatch(rf"{pattern}\s*[.?!]?", plain, re.IGNORECASE)
            found = [match[slot].strip() for slot in SLOTS] if match else []
            if found.count("___") == 1 and all(len(word.split()) <= MAX_PARTS for word in found):
                words = tuple(None if word == "___" else check_word(word) for word in found)
                return AnalogyQuestion(Query(_with_full_stop(query.parts)), words, name)
    return AnalogyQuestion(query, None, None)


def _with_full_stop(parts: Sequence[str]) -> tuple[str, ...]:
    last = parts[-1].rstrip()
    return (*parts[:-1], last if last.endswith((".", "!", "?")) else last + ".")
