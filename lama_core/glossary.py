"""The glossary, docs/glossary.md: the pages' help texts are its entries.

Each third-level heading is a term; the paragraphs under it are its meaning. Metrics of runs are
explained in `metrics.relation_figures` (`figures_text`) instead.
"""

import re
from functools import cache

from lama_core.errors import did_you_mean
from lama_core.files import read_file
from lama_core.paths import DOCS

FILE = "glossary.md"


def explain(term: str) -> str:
    """Return the meaning of a term in Markdown, one line per paragraph.

    Raises:
        KeyError: If the glossary doesn't have the term.
    """
    meanings = read_terms(glossary_text())
    if term not in meanings:
        raise KeyError(f"docs/{FILE} has no term {term!r}{did_you_mean(term, meanings)}")
    return meanings[term]


@cache
def glossary_text() -> str:
    """Return the text of docs/glossary.md."""
    return read_file(DOCS / FILE).decode()


@cache
def read_terms(text: str) -> dict[str, str]:
    """Return the meaning of each term in a glossary's text."""
    meanings = {}
    for section in re.split(r"^### ", text, flags=re.M)[1:]:
        term, _, rest = section.partition("\n")
        paragraphs = rest.partition("\n## ")[0].strip().split("\n\n")
        meanings[term] = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    return meanings
