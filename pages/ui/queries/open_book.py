"""Open-book context: a retrieved passage before the sentence, which may contain the answer."""

from lama_core.datasets.passages import STARTER, load_corpus
from lama_core.errors import UserError
from lama_core.glossary import explain
from lama_core.paths import corpus_files
from lama_core.scoring.retrieval import is_indexed
from pages.ui.shared import url_state, visitors

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
