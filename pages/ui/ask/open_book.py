"""The open book: a passage of a text before the sentence, so that a model can read the answer."""

import streamlit as st

from lama_core.datasets.passages import STARTER, load_corpus
from lama_core.errors import UserError
from lama_core.glossary import explain
from lama_core.paths import corpus_files
from lama_core.rounding import fixed
from lama_core.scoring.retrieval import Found, is_indexed
from lama_core.types import Query
from pages.ui.shared import cache, url_state, visitors
from pages.ui.shared.messages import plain

CLOSED = "closed"
OF_STARTER = "**starter**: the text that minilm-mlm was trained on."


def choose_book() -> str | None:
    """The corpus that is read, None for none; only what is ready to be searched is offered."""
    typed = visitors.may("paths")
    here = _is_ready(STARTER) if corpus_files() else False
    if not here and not typed:
        return None
    chosen = url_state.choose_or_type(
        "Open book",
        (CLOSED, *([STARTER] * here)),
        key="book",
        types=typed,
        help=f"{explain('Open book')} {OF_STARTER}"
        + " Or type the path of a folder of texts, or of a JSONL file." * typed,
        refused="An address can't name a text of this machine: type it yourself under Options.",
    )
    if chosen in (CLOSED, STARTER):
        return None if chosen == CLOSED else STARTER
    if not _is_ready(chosen):
        raise UserError(
            f"{chosen} is not ready to be searched: `lama-explorer cloze TEXT --open-book "
            "PATH` makes its index."
        )
    return chosen


def _is_ready(reference: str) -> bool:
    """Whether a corpus has its index: making one takes longer than a visitor waits."""
    return is_indexed(load_corpus(reference))


def look_up(query: Query, corpus: str | None) -> Found | None:
    """The passage before a text, which is drawn; None with the book closed."""
    if corpus is None:
        return None
    found = cache.passage_before(query, corpus)
    if found is None:
        st.caption("Open book: no passage shares a word with the sentence, which is asked alone.")
    else:
        st.markdown(
            f":material/menu_book: **Asked behind this passage** "
            f"({plain(corpus)}, score {fixed(found.score, 2)}): {plain(found.passage)}"
        )
    return found
