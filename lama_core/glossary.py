"""What the words of this project mean: docs/glossary.md, which the pages' help texts are from.

A term is a heading of the third level, its meaning the paragraphs under it. The figures of runs say
their own meaning (`figures_text` of the room metrics).
"""

import re
from functools import cache

from lama_core.errors import did_you_mean
from lama_core.files import read_file
from lama_core.paths import DOCS

FILE = "glossary.md"


def explain(term: str) -> str:
    """What a term means, in Markdown, a line a paragraph.

    Raises KeyError for one that the glossary doesn't have.
    """
    meanings = read_terms(glossary_text())
    if term not in meanings:
        raise KeyError(f"docs/{FILE} has no term {term!r}{did_you_mean(term, meanings)}")
    return meanings[term]


@cache
def glossary_text() -> str:
    """docs/glossary.md, as it is."""
    return read_file(DOCS / FILE).decode()


@cache
def read_terms(text: str) -> dict[str, str]:
    """Term -> meaning, of a glossary's text."""
    found = {}
    for part in re.split(r"^### ", text, flags=re.M)[1:]:
        term, _, rest = part.partition("\n")
        paragraphs = rest.partition("\n## ")[0].strip().split("\n\n")
        found[term] = "\n\n".join(" ".join(one.split()) for one in paragraphs)
    return found
