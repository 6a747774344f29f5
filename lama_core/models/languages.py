"""Which models read a text: by its script, and the languages that the catalog gives.

Only the script counts: French is written as English is, and gets no note.
"""

import unicodedata
from collections import Counter
from collections.abc import Sequence

from lama_core.models.sources.catalog import Entry

ENGLISH = "English"
LATIN = "LATIN"
# Scripts that set no spaces between words, as the first word of a character's Unicode name.
UNSPACED = frozenset(("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN"))
IN_WORDS = {"CJK": "Chinese characters", "HIRAGANA": "Japanese", "KATAKANA": "Japanese"}


def script_of(character: str) -> str:
    """The script of a letter, as Unicode names it; empty for any other character."""
    if not character.isalpha():
        return ""
    first = unicodedata.name(character, "").split(" ")[0].split("-")[0]
    return LATIN if first in ("FULLWIDTH", "MODIFIER", "MATHEMATICAL") else first


def joins_words(character: str) -> bool:
    """Whether a character next to a blank makes the blank a part of its word."""
    return character.isalnum() and script_of(character) not in UNSPACED


def language_note(text: str, entries: Sequence[Entry]) -> str:
    """Name the models that don't read a text, and the languages that they read.

    text: without its blanks. Returns an empty string where every model may read it: at least half
    of its letters are Latin, or no model's language is known to be English alone.
    """
    english = [entry.title for entry in entries if entry.languages == ENGLISH]
    scripts = Counter(filter(None, map(script_of, text)))
    if not english or not text.strip() or 2 * scripts[LATIN] >= scripts.total() > 0:
        return ""
    if not scripts and any(character.isalnum() for character in text):
        return ""  # numbers alone
    who = english[0] if len(english) == 1 else f"{', '.join(english[:-1])} and {english[-1]}"
    reads = "reads" if len(english) == 1 else "read"
    if not scripts:
        return f"The text has no words: {who} {reads} English, and such answers say nothing."
    kana = scripts["HIRAGANA"] + scripts["KATAKANA"]  # Japanese has Chinese characters, too
    script = "HIRAGANA" if kana else scripts.most_common(1)[0][0]
    what = IN_WORDS.get(script, f"{script.capitalize()} script")
    return f"The text is in {what}, and {who} {reads} English only: such answers say nothing."
