"""The fields of every answer that describe its model."""

from dataclasses import dataclass, field
from typing import Any

from lama_core.models.devices import nondefault_settings, settings_text
from lama_core.models.protocols import Kind


@dataclass(frozen=True, slots=True)
class AboutModel:
    """One model's answer, with the precision and device that computed it."""

    name: str
    kind: Kind
    precision: str = field(default="fp32", kw_only=True)
    device: str = field(default="cpu", kw_only=True)

    @property
    def computed(self) -> str:
        """The end of a title: `, bf16 on cuda:0`; empty for fp32 on a CPU."""
        text = settings_text(self.precision, self.device)
        return f", {text}" if text else ""

    def model_json(self) -> dict[str, Any]:
        """Return the model as JSON values; default precision and device are omitted."""
        return {
            "name": self.name,
            "kind": self.kind,
            **nondefault_settings(self.precision, self.device),
        }


def model_fields(model: Any) -> dict[str, Any]:
    """Return the fields of `AboutModel` for a loaded model."""
    return {name: getattr(model, name) for name in ("name", "kind", "precision", "device")}
