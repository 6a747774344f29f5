"""Lens logit: what the embedding, each attention and each MLP add to the answer's logit.

`models.hf.logit_parts` has the formulas.
Departure: Parts of a logit
"""

from dataclasses import asdict, dataclass
from typing import Any

from lama_core.candidates.columns import Columns
from lama_core.models.protocols import HeadPart, LogitPart, NeuronPart, PartReader
from lama_core.probes.cloze.inspection import (
    InspectRequest,
    choose_answer,
    encode_first_blank,
)
from lama_core.probes.model_info import AboutModel, model_fields
from lama_core.scoring.limits import UNLIMITED, Limits
from lama_core.types import Query


@dataclass(frozen=True, slots=True)
class ModelLogit(AboutModel):
    """The parts of the logit of one model's answer; the parts sum to the logit.

    Attributes:
        answer: The answer.
        against: Another answer, whose logit and parts are subtracted; None to subtract nothing.
        logit: The logit of `answer`, minus that of `against` if given.
        parts: The embedding, each layer's attention and MLP, the remainder and the bias.
        heads: The heads of all layers; their values are also included in the attention parts.
        neurons: The neurons with the largest effects; they are also included in the MLP parts.
        notes: Notes for users.
    """

    answer: str
    against: str | None
    logit: float
    parts: tuple[LogitPart, ...]
    heads: tuple[HeadPart, ...]
    neurons: tuple[NeuronPart, ...]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return what `inspect --lens logit --json` prints of a model."""
        return {
            "answer": self.answer,
            **({} if self.against is None else {"against": self.against}),
            "logit": self.logit,
            "parts": [asdict(part) for part in self.parts],
            "heads": [asdict(head) for head in self.heads],
            "neurons": [asdict(neuron) for neuron in self.neurons],
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return a row per part."""
        about = {"model": self.name, "answer": self.answer, "against": self.against}
        return [about | asdict(part) | {"logit": self.logit} for part in self.parts]


def divide_logit(
    model: PartReader,
    query: Query,
    columns: Columns,
    request: InspectRequest,
    limits: Limits = UNLIMITED,
) -> ModelLogit:
    """Return the parts of the logit of one model's answer.

    Raises:
        UserError: If the model's family isn't supported, the text is too long, or the model can't
            write an answer.
    """
    encoded, notes = encode_first_blank(model, query, limits)
    answer, forms, note = choose_answer(model, encoded, columns, request.answer)
    against, others, other_note = None, None, ""
    if request.against:
        against, others, other_note = choose_answer(model, encoded, columns, request.against)
    found = model.logit_parts(encoded, forms, others)
    return ModelLogit(
        answer=answer,
        against=against,
        logit=found.logit,
        parts=found.parts,
        heads=found.heads,
        neurons=found.neurons,
        notes=tuple(filter(None, (*notes, note, other_note))),
        **model_fields(model),
    )
