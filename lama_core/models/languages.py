"""Notes for users when a text's script shows that a model can't read its language.

The catalogue says which models read only English. A French text gets no note, because French and
English have the same script.
"""

import unicodedata
from collections import Counter
from collections.abc import Sequence

from lama_core.models.sources.catalog import Entry

ENGLISH = "English"
LATIN = "LATIN"
IN_WORDS = {"CJK": "Chinese characters", "HIRAGANA": "Japanese", "KATAKANA": "Japanese"}


def script_of(character: str) -> str:
    """Return a letter's script by its Unicode name; empty for other characters."""
    if not character.isalpha():
        return ""
    first = unicodedata.name(character, "").split(" ")[0].split("-")[0]
    return LATIN if first in ("FULLWIDTH", "MODIFIER", "MATHEMATICAL") else first


def language_note(text: str, entries: Sequence[Entry]) -> str:
    """Return a note that names the models that don't read a text, and their languages.

    Returns:
        The note. Empty if at least half of the text's letters are Latin, if the text is blank or
        has only numbers, or if none of the models reads only English.
    """
    english = [entry.title for entry in entries if entry.languages == ENGLISH]
    scripts = Counter(filter(None, map(script_of, text)))
    if not english or not text.strip() or 2 * scripts[LATIN] >= scripts.total() > 0:
        return ""
    if not scripts and any(character.isalnum() for character in text):
        return ""  # only numbers
    who = english[0] if len(english) == 1 else f"{', '.join(english[:-1])} and {english[-1]}"
    reads = "reads" if len(english) == 1 else "read"
    if not scripts:
        return f"The text has no words. {who} {reads} English: such answers mean nothing."
    kana = scripts["HIRAGANA"] + scripts["KATAKANA"]  # Japanese also uses Chinese characters
    script = "HIRAGANA" if kana else scripts.most_common(1)[0][0]
    what = IN_WORDS.get(script, f"{script.capitalize()} script")
    return f"The text is in {what}, but {who} {reads} English only: such answers mean nothing."
