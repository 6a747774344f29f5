"""The table of the tabs of the page Ask. A new kind of query has a file here and a row.

A plug-in's are behind them.
"""

from collections.abc import Mapping
from typing import Any

from lama_core import plugins
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
_OWN: dict[type[Request], Tab[Any, Any, Any]] = {tab.form.request: tab for tab in _TABS}


def added_tabs() -> Mapping[str, Tab[Any, Any, Any]]:
    """The tabs of plug-ins, by their titles."""
    return plugins.rows("tabs")


def all_tabs() -> dict[type[Request], Tab[Any, Any, Any]]:
    """The tabs by the class of their requests, those of plug-ins last."""
    return _OWN | {tab.form.request: tab for tab in added_tabs().values()}


def tab_of(request: Request) -> Tab[Any, Any, Any]:
    """The tab of a request. Raises KeyError if there is none."""
    return _OWN[type(request)] if type(request) in _OWN else all_tabs()[type(request)]
