"""The table of lenses: each shows how a model reaches its answer at the first blank of a text.

A new lens is a file with its result and its computation, a row in `LENSES` and its name in
`LensName`; its options are fields of `InspectRequest` and rows of `LENSES_OF`. The command line
prints the result's rows unless `cli/queries.py` has a format for it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from lama_core.candidates.columns import Columns
from lama_core.errors import UserError
from lama_core.models.protocols import Attributor, BlankFiller, Kind, LayerReader, PartReader
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


class LensResult(Protocol):
    """The result of a lens for one model, with the fields of `AboutModel`."""

    @property
    def name(self) -> str:
        """The model's name."""
        ...

    @property
    def kind(self) -> Kind:
        """The model's kind."""
        ...

    @property
    def precision(self) -> str:
        """The precision of the computation."""
        ...

    @property
    def device(self) -> str:
        """The device of the computation."""
        ...

    def model_json(self) -> dict[str, Any]:
        """Return the model as JSON values."""
        ...

    def to_json(self) -> dict[str, Any]:
        """Return the lens's values as JSON values."""
        ...

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of the DataFrame."""
        ...


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


def _read_layers(
    model: BlankFiller, query: Query, columns: Columns, request: InspectRequest, limits: Limits
) -> ModelLayers:
    return read_layers(model, query, columns, top_k=request.top_k, gold=request.gold, limits=limits)


def _attribute(
    model: BlankFiller, query: Query, columns: Columns, request: InspectRequest, limits: Limits
) -> ModelAttribution:
    return attribute(
        model,
        query,
        columns,
        request.method,
        word=request.answer,
        steps=request.steps,
        limits=limits,
    )


LENSES: dict[LensName, Lens] = {
    "layers": Lens(LayerReader, _read_layers),
    "tokens": Lens(Attributor, _attribute, "attribution"),
    "trace": Lens(PartReader, trace_answer),
    "logit": Lens(PartReader, divide_logit),
}


@dataclass(frozen=True, slots=True)
class Inspection:
    """The inspection of one model by one lens."""

    lens: LensName
    result: LensResult

    @property
    def layers(self) -> ModelLayers | None:
        """The result of lens layers; None for another lens."""
        return self.result if isinstance(self.result, ModelLayers) else None

    @property
    def attribution(self) -> ModelAttribution | None:
        """The result of lens tokens; None for another lens."""
        return self.result if isinstance(self.result, ModelAttribution) else None

    @property
    def trace(self) -> ModelTrace | None:
        """The result of lens trace; None for another lens."""
        return self.result if isinstance(self.result, ModelTrace) else None

    @property
    def logit(self) -> ModelLogit | None:
        """The result of lens logit; None for another lens."""
        return self.result if isinstance(self.result, ModelLogit) else None

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
