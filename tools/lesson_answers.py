"""Record the answers of models that aren't part of the project to the queries of the lessons.

    python -m tools.lesson_answers

The lessons show recorded answers where such a model isn't installed; here it must be installed.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import msgspec

from lama_core.files import write_text_atomically
from lama_core.lessons.lesson import N_BEST, list_lessons
from lama_core.lessons.stored_answers import RECORDED, Recorded
from lama_core.models.sources.catalog import find_model
from lama_core.queries.analogy import SolveRequest, analogy
from lama_core.queries.cloze import ClozeRequest, fill
from lama_core.queries.kind import QueryKind, ask_models
from lama_core.scoring.limits import UNLIMITED
from lama_core.scoring.shared_fields import load_models


@cache
def loaded(names: tuple[str, ...]) -> list[Any]:
    """Return models, loaded once."""
    return [*load_models(ClozeRequest("___", models=names))]


def recorded(request: ClozeRequest | SolveRequest, name: str) -> Recorded:
    """Return a model's answer to a query, as a lesson shows it where the model is installed."""
    names, is_analogy = tuple(request.models), isinstance(request, SolveRequest)
    kind: QueryKind[Any, Any, Any] = analogy.kind if is_analogy else fill.kind
    best = replace(request, top_k=N_BEST)
    shared = kind.prepare(best, UNLIMITED)
    found = ask_models(kind, best, shared, loaded(names)).models
    one = (found[names.index(name)].answer if is_analogy else found[names.index(name)]).blanks[0]
    query = request.question().query if isinstance(request, SolveRequest) else shared.query
    return Recorded(name, names, request.context, query.text(), one)


def answers() -> Iterator[Recorded]:
    """Yield the answers to all queries of the project's lessons and of those of plug-ins."""
    for lesson in list_lessons().lessons:
        for request in (request for step in lesson.steps for request in step.requests.values()):
            for name in request.models:
                if find_model(name).source.how != "assets":
                    yield recorded(request, name)


if __name__ == "__main__":
    lines = dict.fromkeys(msgspec.json.encode(one).decode() for one in answers())
    write_text_atomically(RECORDED, "[\n" + ",\n".join(lines) + "\n]\n")
