"""Lens logit: what the embedding, each attention and each MLP add to the answer's logit.

`models.hf.logit_parts` has the formulas.
Departure: Parts of a logit
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from lama_core.models.protocols import HeadPart, LogitPart, NeuronPart, PartReader
from lama_core.queries.blank_answers import check_gold
from lama_core.queries.lenses.lens import (
    TRACKED_ANSWER,
    AnswerRequest,
    Inspection,
    Lens,
    LensResult,
)
from lama_core.requests import option
from lama_core.rounding import fixed
from lama_core.tables import Table, table_of

N_HEADS = 10  # attention heads to show


@dataclass(frozen=True, kw_only=True)
class LogitRequest(AnswerRequest):
    """The fields of lens logit."""

    against: Annotated[
        str | None,
        option("Lens logit: another answer, whose logit is subtracted from the explained one's."),
    ] = None


def _check(request: LogitRequest) -> None:
    if request.against:
        check_gold(request.against, TRACKED_ANSWER)


@dataclass(frozen=True, slots=True)
class ModelLogit(LensResult):
    """The parts of the logit of one model's answer; the parts sum to the logit.

    Attributes:
        answer: The answer.
        against: Another answer, whose logit and parts are subtracted; None to subtract nothing.
        logit: The logit of `answer`, minus that of `against` if given.
        parts: The embedding, each layer's attention and MLP, the remainder and the bias.
        heads: The heads of all layers; their values are also included in the attention parts.
        neurons: The neurons with the largest effects; they are also included in the MLP parts.
    """

    answer: str
    against: str | None
    logit: float
    parts: tuple[LogitPart, ...]
    heads: tuple[HeadPart, ...]
    neurons: tuple[NeuronPart, ...]

    def strongest_heads(self) -> list[HeadPart]:
        """Return the heads with the largest effects, the largest first."""
        return sorted(self.heads, key=lambda one: -abs(one.value))[:N_HEADS]

    def to_json(self) -> dict[str, Any]:
        return {
            "answer": self.answer,
            **({} if self.against is None else {"against": self.against}),
            "logit": self.logit,
            "parts": [asdict(part) for part in self.parts],
            "heads": [asdict(head) for head in self.heads],
            "neurons": [asdict(neuron) for neuron in self.neurons],
        }

    def rows(self) -> list[dict[str, Any]]:
        about = {"model": self.name, "answer": self.answer, "against": self.against}
        return [about | asdict(part) | {"logit": self.logit} for part in self.parts]

    def text(self) -> Iterator[Table | str]:
        of_layers = {(part.layer, part.part): part.value for part in self.parts}
        rows = [
            (
                layer,
                fixed(of_layers[layer, "attention"], 3, signed=True),
                fixed(of_layers[layer, "mlp"], 3, signed=True),
            )
            for layer in sorted({part.layer for part in self.parts if part.layer}, reverse=True)
        ]
        against = f" minus that of {self.against}" if self.against else ""
        title = f"{self.name}: logit of {self.answer}{against}: {fixed(self.logit, 3)}"
        yield table_of(("layer", "attention adds", "MLP adds"), rows, title=title + self.computed)
        others = ", ".join(
            f"{part.part} {fixed(part.value, 3, signed=True)}"
            for part in self.parts
            if part.part not in ("attention", "mlp")
        )
        yield f"Also: {others}."
        neurons = [
            (one.layer, one.neuron, fixed(one.value, 3, signed=True), ", ".join(one.promoted))
            for one in self.neurons
        ]
        heads = ("layer", "neuron", "adds", "promotes")
        yield table_of(heads, neurons, title="Strongest MLP neurons")
        shown = ", ".join(
            f"{one.layer}.{one.head} {fixed(one.value, 3, signed=True)}"
            for one in self.strongest_heads()
        )
        yield f"Strongest attention heads (layer.head): {shown}."


def divide_logit(inspection: Inspection[LogitRequest]) -> ModelLogit:
    """Return the parts of the logit of one model's answer.

    Raises:
        UserError: If the model's family isn't supported, the text is too long, or the model can't
            write an answer.
    """
    model: PartReader = inspection.model
    answer, forms, note = inspection.choose_answer(inspection.request.answer)
    against, others, other_note = None, None, ""
    if inspection.request.against:
        against, others, other_note = inspection.choose_answer(inspection.request.against)
    found = model.logit_parts(inspection.encoded, forms, others)
    return ModelLogit(
        answer=answer,
        against=against,
        logit=found.logit,
        parts=found.parts,
        heads=found.heads,
        neurons=found.neurons,
        **inspection.about(note, other_note),
    )


LENS = Lens(
    name="logit",
    title="Parts of the logit",
    about="what each attention and MLP adds to the answer's logit",
    rows="a row for each model and part of the logit (layer 0: the embeddings); the values add up "
    "to the logit",
    caption="The logit is the score from which the answer's probability is computed: the parts add "
    "up to it. A layer's attention and MLP add to the hidden state at the blank; the scales of the "
    "norms are fixed at their values for this sentence.",
    options=LogitRequest,
    requires=PartReader,
    compute=divide_logit,
    check=_check,
)
