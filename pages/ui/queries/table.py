"""The table of the tabs of the page Ask. A new kind of query has a file here and a row.

A plug-in's are behind them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Views:
    """The views of a tab, each with its kind of query; one control chooses.

    label, key: of the control, whose value is in the URL.
    """

    label: str
    key: str
    tabs: Mapping[str, Tab[Any, Any, Any]]


VIEWS: dict[str, Views] = {
    "Sentence": Views(
        "Words to rank",
        "score",
        {"Any word": SENTENCE, ANSWERS.name: ANSWERS, SENTENCES.name: SENTENCES},
    ),
    "Question": Views("", "", {"": QUESTION}),
    "Analogy": Views("What to do", "analogy", {"Solve": ANALOGY, "Score": PAIRS}),
    "Several": Views(
        "What to ask",
        "what",
        {BATCH.name: BATCH, GRID.name: GRID, WORDINGS.name: WORDINGS},
    ),
}
_OWN: dict[type[Request], Tab[Any, Any, Any]] = {
    tab.form.request: tab for views in VIEWS.values() for tab in views.tabs.values()
}


def all_views() -> dict[str, Views]:
    """Title of a tab -> its views, those of plug-ins last."""
    return VIEWS | {
        title: Views("", "", {"": tab})
        for title, tab in plugins.rows("tabs").items()
        if title not in VIEWS
    }


def all_tabs() -> dict[type[Request], Tab[Any, Any, Any]]:
    """The tabs by the class of their requests, those of plug-ins last."""
    return _OWN | {tab.form.request: tab for tab in plugins.rows("tabs").values()}


def tab_of(request: Request) -> Tab[Any, Any, Any]:
    """The tab of a request. Raises KeyError if there is none."""
    return _OWN[type(request)] if type(request) in _OWN else all_tabs()[type(request)]
