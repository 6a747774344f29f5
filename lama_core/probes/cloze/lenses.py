"""The table of lenses: each shows how a model reaches its answer at the first blank of a text.

A new lens is a file with its result and its computation, a row in `LENSES` and its name in
`LensName`; its options are fields of `InspectRequest` and rows of `LENSES_OF`. `cli/queries.py`
prints the result.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lama_core.candidates.columns import Columns
from lama_core.errors import UserError
from lama_core.models.protocols import Attributor, BlankFiller, LayerReader, PartReader
from lama_core.probes.cloze.inspection import (
    NOT_INSPECTABLE,
    InspectRequest,
    LensName,
    ModelAttribution,
    ModelLayers,
    attribute,
    read_layers,
)
from lama_core.probes.cloze.logit_parts import ModelLogit, divide_logit
from lama_core.probes.cloze.tracing import ModelTrace, trace_answer
from lama_core.scoring.limits import UNLIMITED, Limits
from lama_core.types import Query

LensResult = ModelLayers | ModelAttribution | ModelTrace | ModelLogit


@dataclass(frozen=True, slots=True)
class Lens:
    """A lens.

    Attributes:
        requires: The protocol of the models that support the lens.
        compute: Returns the result for a model, a text, the candidates' columns, a request and
            limits.
        json_key: Key of the result in `--json`; empty if the result's keys join the model's keys.
    """

    requires: type
    compute: Callable[[Any, Query, Columns, InspectRequest, Limits], LensResult]
    json_key: str = ""


LENSES: dict[LensName, Lens] = {
    "layers": Lens(LayerReader, read_layers),
    "tokens": Lens(Attributor, attribute, "attribution"),
    "trace": Lens(PartReader, trace_answer),
    "logit": Lens(PartReader, divide_logit),
}


@dataclass(frozen=True, slots=True)
class Inspection:
    """The inspection of one model by one lens."""

    lens: LensName
    result: LensResult

    def to_json(self) -> dict[str, Any]:
        """Return what `inspect --json` prints of a model."""
        key, values = LENSES[self.lens].json_key, self.result.to_json()
        return self.result.model_json() | ({key: values} if key else values)


@dataclass(frozen=True, slots=True)
class InspectionAnswer:
    """The inspection of all models, for the same text."""

    request: InspectRequest
    text: str
    models: tuple[Inspection, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the object that `inspect --json` prints."""
        return {"text": self.text, "models": [model.to_json() for model in self.models]}

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of all models: plain values, as the lens defines them."""
        return [row for model in self.models for row in model.result.rows()]


def inspect_model(
    model: BlankFiller,
    query: Query,
    columns: Columns,
    request: InspectRequest,
    limits: Limits = UNLIMITED,
) -> Inspection:
    """Return the inspection of one model by the request's lens.

    Raises:
        UserError: If the model doesn't support the lens, or the lens can't be computed.
    """
    lens = LENSES[request.lens]
    if not isinstance(model, lens.requires):
        raise UserError(NOT_INSPECTABLE.format(model.name))
    return Inspection(request.lens, lens.compute(model, query, columns, request, limits))
