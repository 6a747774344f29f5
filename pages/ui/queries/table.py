"""The table of the tabs of the page Ask. A new kind of query has a file here and a row."""

from typing import Any

from lama_core.requests import Request
from pages.ui.queries.analogy import ANALOGY
from pages.ui.queries.answers import ANSWERS
from pages.ui.queries.batch import BATCH
from pages.ui.queries.cloze import SENTENCE
from pages.ui.queries.grid import GRID
from pages.ui.queries.pairs import PAIRS
from pages.ui.queries.question import QUESTION
from pages.ui.queries.sentences import SENTENCES
from pages.ui.queries.tab import Tab
from pages.ui.queries.wordings import WORDINGS

_TABS: tuple[Tab[Any, Any, Any], ...] = (
    SENTENCE,
    WORDINGS,
    ANSWERS,
    BATCH,
    SENTENCES,
    QUESTION,
    ANALOGY,
    PAIRS,
    GRID,
)
TABS: dict[type[Request], Tab[Any, Any, Any]] = {tab.form.request: tab for tab in _TABS}
