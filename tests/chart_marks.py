"""What a chart of a page shows, read from its Vega-Lite specification."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from streamlit.testing.v1 import AppTest

from lama_core.views import vega
from lama_core.views.figure import Figure

LIGHT = vega.Look(clicks=True, page="#ffffff")
DARK = vega.Look(clicks=True, dark=True, page="#12161c")


def _widest(value: Any) -> Any:
    """A property on the widest page, whose texts are broken least."""
    if not isinstance(value, dict):
        return value
    if "expr" not in value:
        return value.get("value")
    text = str(value["expr"])
    choice = text.split("? ", 1)[1] if text.startswith("width + ") else text
    return json.JSONDecoder().raw_decode(choice)[0]


def _joined(lines: Any) -> str:
    return " ".join(lines) if isinstance(lines, list) else str(lines or "")


@dataclass(frozen=True)
class Drawn:
    """A specification."""

    spec: vega.Spec

    def layers(self, *kinds: str) -> Iterator[vega.Spec]:
        """Its layers with marks of these kinds, such as `rect`; all without one."""
        for layer in self.spec["layer"]:
            if layer["mark"] != vega.EMPTY["mark"] and (
                not kinds or layer["mark"]["type"] in kinds
            ):
                yield layer

    def marks(self, *kinds: str) -> list[dict[str, Any]]:
        """The data of marks of these kinds, from back to front; without kinds, of all."""
        return [
            mark
            for layer in self.layers(*kinds)
            for mark in layer.get("data", {}).get("values", [])
        ]

    @property
    def title(self) -> str:
        return _joined(_widest(self.spec["title"]["text"]))

    @property
    def caption(self) -> str:
        return _joined(_widest(self.spec["title"]["subtitle"]))

    def parameter(self, name: str) -> list[str]:
        """The texts of `names` (rows), `words` (places) or `keys` (the legend)."""
        found = (one for one in self.spec["params"] if one["name"] == name)
        return [_joined(one) for one in _widest(next(found, {"value": []}))]

    @property
    def keys(self) -> dict[str, dict[str, Any]]:
        (legend,) = (one for one in self.spec["layer"] if one["mark"] == vega.EMPTY["mark"])
        looks = {
            channel: encoding["scale"]["range"] for channel, encoding in legend["encoding"].items()
        }
        return {
            name: {channel: values[at] for channel, values in looks.items()}
            for at, name in enumerate(self.parameter("keys"))
        }

    def axis(self, channel: str) -> dict[str, Any]:
        """The axis of x or y, with its scale as `scale`."""
        for layer in self.layers():
            encoding = layer["encoding"].get(channel, {})
            if "axis" in encoding:
                return {**encoding["axis"], "scale": encoding["scale"]}
        raise AssertionError(f"no axis {channel}")

    def axis_title(self, channel: str) -> str:
        return _joined(self.axis(channel).get("title"))


def drawn(figure: Figure, inks: dict[str, str], look: vega.Look = LIGHT) -> Drawn:
    return Drawn(vega.specification(figure, inks, look))


def charts(app: AppTest) -> list[Drawn]:
    return [Drawn(json.loads(one.proto.spec)) for one in app.get("vega_lite_chart")]
