"""Queries to models that a test has made."""

from collections.abc import Sequence
from typing import Any

from lama_core.queries.kind import Answer, QueryFunction, ask_models
from lama_core.scoring.limits import UNLIMITED, Limits


def ask_loaded(
    query: QueryFunction[..., Any, Any, Any],
    models: Sequence[Any],
    /,
    *arguments: Any,
    limits: Limits = UNLIMITED,
    **options: Any,
) -> Answer[Any, Any, Any]:
    request: Any = query.request(*arguments, **options)
    request.check()
    return ask_models(query.kind, request, query.kind.prepare(request, limits), models, limits)
