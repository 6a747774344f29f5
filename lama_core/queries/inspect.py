"""Show how models reach their answer at a blank, by one of several lenses (`lenses.table`)."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from textwrap import wrap
from typing import Any

from lama_core.candidates.spelling import places_of
from lama_core.models.protocols import BlankFiller
from lama_core.queries.kind import Answer, Asked, Calls, QueryFunction, QueryKind
from lama_core.queries.lenses.lens import LensResult
from lama_core.queries.lenses.table import LENSES, InspectRequest, inspect_model
from lama_core.scoring.blanks import parse_query
from lama_core.scoring.limits import Limits
from lama_core.tables import Table
from lama_core.types import Query


class InspectKind(QueryKind[InspectRequest, Query, LensResult]):
    """A text with a blank, and the lens to inspect the answer with; each lens has its rows."""

    name = "inspect"
    example = 'inspect "The capital of Norway is ___." --lens tokens --method gradients'
    row = LensResult

    def prepare(self, request: InspectRequest, limits: Limits) -> Query:
        """Return the parsed text. Raises UserError if it has no blank."""
        return parse_query(request.text)

    def answer(
        self, model: BlankFiller, asked: Asked[InspectRequest, Query], calls: Calls
    ) -> LensResult:
        """Return one model's result of the request's lens."""
        query, request = asked.shared, replace(asked.request, on_progress=calls.on_progress)
        columns = asked.candidates.columns(model.vocabulary, places_of(query))
        return inspect_model(model, query, columns, request, calls.limits)

    def rows(self, asked: Asked[InspectRequest, Query], one: LensResult) -> Sequence[LensResult]:
        """Return the result."""
        return (one,)

    def frame_rows(
        self, asked: Asked[InspectRequest, Query], one: LensResult
    ) -> list[dict[str, Any]]:
        """Return the lens's rows."""
        return one.rows()

    def head(self, answer: Answer[InspectRequest, Query, LensResult]) -> dict[str, Any]:
        """Return the text."""
        return {"text": answer.asked.shared.text()}

    def json(self, asked: Asked[InspectRequest, Query], one: LensResult) -> dict[str, Any]:
        """Return what the lens prints."""
        return one.model_json() | one.to_json()

    def tables(self, asked: Asked[InspectRequest, Query], one: LensResult) -> Iterator[Table | str]:
        """Yield the lens's tables and remarks."""
        yield from one.text()
        yield from one.remarks()

    def title(self, request: InspectRequest) -> str:
        """Return the text."""
        return request.text


_ROWS_OF_LENSES = "\n        ".join(
    wrap(" ".join(f"Lens {lens.name}: {lens.rows}." for lens in LENSES.values()), width=92)
)
inspect = QueryFunction(
    InspectRequest,
    InspectKind(),
    f"""Show how models reach their answer, by one of several lenses.

    Returns:
        A DataFrame.
        {_ROWS_OF_LENSES}

    Raises:
        UserError: If the text doesn't have exactly one blank, or a model doesn't support the lens.

    >>> import lama_core as lama
    >>> found = lama.inspect("The capital of Norway is ___.", lens="tokens")
    >>> found[["word", "token", "value"]].round(1)
       word    token  value
    0  oslo      the   -0.0
    1  oslo  capital    1.9
    2  oslo       of    0.0
    3  oslo   norway    4.9
    4  oslo       is    0.0
    5  oslo      ___    NaN
    6  oslo        .    0.0
    """,
)
