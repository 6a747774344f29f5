"""The table of lenses, and the request of `inspect`.

A new lens is a file and a row in `LENSES`. If it has further options, `InspectRequest` also
inherits from its request.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from lama_core.candidates.columns import Columns
from lama_core.errors import UserError
from lama_core.models.protocols import KINDS, BlankFiller
from lama_core.queries.blank_answers import check_gold
from lama_core.queries.lenses import layers, logit, tokens, trace
from lama_core.queries.lenses.lens import (
    TRACKED_ANSWER,
    Inspection,
    Lens,
    LensResult,
    check_inspectable,
)
from lama_core.requests import option, request_fields
from lama_core.scoring.blanks import follows_only_punctuation
from lama_core.scoring.limits import UNLIMITED, Limits
from lama_core.types import Query

# In the order of the help and of the page.
_ROWS: tuple[Lens[Any], ...] = (
    layers.LENS,
    tokens.LENS,
    trace.LENS,
    logit.LENS,
)
LENSES = {lens.name: lens for lens in _ROWS}
DEFAULT = layers.LENS.name
if TYPE_CHECKING:  # a type checker can't read the table
    LensName = str
else:
    LensName = Literal[tuple(LENSES)]


@dataclass(frozen=True, kw_only=True)
class InspectRequest(
    layers.LayerRequest,
    tokens.AttributionRequest,
    trace.TracedRequest,
    logit.LogitRequest,
    command="inspect",
    python="inspect",
):
    """The fields of `inspect`: a text with a blank, and the lens to inspect the answer with."""

    lens: Annotated[
        LensName, option(" ".join(f"{lens.name}: {lens.about}." for lens in LENSES.values()))
    ] = DEFAULT

    def check(self) -> None:
        """Raise UserError if a field has a wrong value, or belongs to another lens.

        All lenses accept the default lens's fields, so that one form serves all of them.
        """
        super().check()
        for choice in request_fields(type(self)):
            users = [
                name
                for name, lens in LENSES.items()
                if choice.name in lens.options.__dataclass_fields__
            ]
            if {self.lens, DEFAULT}.isdisjoint(users) and (
                getattr(self, choice.name) != choice.default
            ):
                raise UserError(f"--{choice.name} needs --lens {' or '.join(users)}.")
        LENSES[self.lens].check(self)
        if self.answer:
            check_gold(self.answer, TRACKED_ANSWER)


def inspect_model(
    model: BlankFiller,
    query: Query,
    columns: Columns,
    request: InspectRequest,
    limits: Limits = UNLIMITED,
) -> LensResult:
    """Return the inspection of one model by the request's lens.

    Raises:
        UserError: If the model doesn't support the lens, or the lens can't be computed.
    """
    lens = LENSES[request.lens]
    check_inspectable(model, lens.requires)
    notes = ["Only the first blank is inspected."] if query.n_blanks > 1 else []
    context = KINDS[model.kind].contexts[0]
    seen = query
    if context == "left":
        seen = Query(query.parts[:2])
        if not follows_only_punctuation(seen):
            notes.append("The model sees only the text to the left of the blank.")
    encoded = model.encode(seen, context)
    limits.check_tokens(len(encoded.token_ids), model.name)
    return lens.compute(Inspection(model, query, columns, request, limits, encoded, tuple(notes)))
