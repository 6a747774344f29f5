"""Open-book context: a retrieved passage before the sentence, which may contain the answer."""

import streamlit as st

from lama_core.datasets.passages import STARTER, load_corpus
from lama_core.errors import UserError
from lama_core.glossary import explain
from lama_core.paths import corpus_files
from lama_core.rounding import fixed
from lama_core.scoring.retrieval import FoundPassage, is_indexed
from lama_core.types import Query
from pages.ui.shared import cache, url_state, visitors
from pages.ui.shared.messages import plain

CLOSED = "closed"


def choose_book() -> str | None:
    """Draw the choice of a corpus; return its name or path, or None for no context.

    Offers only corpora that have a search index, because building one takes too long here.
    """
    may_type = visitors.may("paths")
    has_starter = bool(corpus_files()) and is_indexed(load_corpus(STARTER))
    if not has_starter and not may_type:
        return None
    chosen = url_state.choose_or_type(
        "Open book",
        (CLOSED, *([STARTER] * has_starter)),
        key="book",
        types=may_type,
        help=f"{explain('Open-book context')} **starter**: the text that minilm-mlm was trained on."
        + " Or type the path of a folder of texts, or of a JSONL file." * may_type,
        refused="URLs can't reference a text on this computer: type it under Options.",
    )
    if chosen in (CLOSED, STARTER):
        return None if chosen == CLOSED else STARTER
    if not is_indexed(load_corpus(chosen)):
        raise UserError(
            f"{chosen} has no search index. Build it with `lama-explorer cloze TEXT --open-book "
            "PATH`."
        )
    return chosen


def draw_passage(query: Query, corpus: str | None) -> FoundPassage | None:
    """Draw and return the best passage for a query; None without a corpus or a match."""
    if corpus is None:
        return None
    found = cache.passage_before(query, corpus)
    if found is None:
        st.caption(
            "Open book: no passage shares a word with the sentence, so it is asked without context."
        )
    else:
        st.markdown(
            f":material/menu_book: **Open-book context** "
            f"({plain(corpus)}, score {fixed(found.score, 2)}): {plain(found.passage)}"
        )
    return found
