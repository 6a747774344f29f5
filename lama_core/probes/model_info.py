"""What every answer says of the model that gave it."""

from dataclasses import dataclass, field
from typing import Any

from lama_core.models.devices import unusual
from lama_core.models.protocols import Kind


@dataclass(frozen=True, slots=True)
class OfModel:
    """One model's answer. precision, device: what it was computed in, and where."""

    name: str
    kind: Kind
    precision: str = field(default="fp32", kw_only=True)
    device: str = field(default="cpu", kw_only=True)

    def model_json(self) -> dict[str, Any]:
        """The model as JSON has it, with precision and device where they are unusual."""
        return {"name": self.name, "kind": self.kind, **unusual(self.precision, self.device)}


def model_fields(model: Any) -> dict[str, Any]:
    """The fields of `OfModel` for a loaded model."""
    return {name: getattr(model, name) for name in ("name", "kind", "precision", "device")}
