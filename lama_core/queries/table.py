"""The table of the kinds of query. A new kind is a file and a row, here or of a plug-in."""

from typing import Any

from lama_core import plugins
from lama_core.queries import (
    analogy,
    answers,
    batch,
    cloze,
    grid,
    inspect,
    pairs,
    question,
    sentences,
    wordings,
)
from lama_core.queries.kind import QueryFunction, QueryKind
from lama_core.requests import Request

QUERIES: tuple[QueryFunction[..., Any, Any, Any], ...] = (
    cloze.fill,
    answers.rank,
    sentences.sentences,
    question.ask,
    wordings.relation,
    batch.batch,
    analogy.analogy,
    pairs.score_analogies,
    inspect.inspect,
    grid.grid,
)
_KINDS = {query.request: query.kind for query in QUERIES}


def kind_of(request: Request) -> QueryKind[Any, Any, Any]:
    """Return the kind of a request. Raises KeyError if it isn't a query's."""
    if type(request) not in _KINDS:
        added = plugins.find("queries", request.python)
        if added is None or added.request is not type(request):
            raise KeyError(type(request))
        return added.kind
    return _KINDS[type(request)]
