"""Plotly charts as plain dictionaries.

Plotly's own objects check and copy all their parts when one is added, and again whenever they are
drawn: a chart of ten runs takes a tenth of a second.
"""

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from plotly import io
from plotly.basedatatypes import BaseFigure

if TYPE_CHECKING:
    import plotly.graph_objects as go

Style = dict[str, Any]  # properties of Plotly's traces and layouts
# Plotly's names with an underscore; in others, it separates a property from its parent.
WHOLE = {"error_x", "error_y", "paper_bgcolor", "plot_bgcolor"}


class PlotlyChart:
    """Traces and a layout, as in Plotly's JSON.

    Properties can be named as in Plotly's Python library: `marker_color` is the `color` of
    `marker`.
    """

    def __init__(self) -> None:
        self.data: list[Style] = []
        self.layout: Style = {}

    def add(self, kind: str, **style: Any) -> None:
        """Add a trace. kind: its type, such as `bar`."""
        self.data.append(merged({"type": kind}, style))

    def add_line(self, x: float, **line: Any) -> None:
        """Add a vertical line through the whole chart."""
        shape = {"type": "line", "x0": x, "x1": x, "y0": 0, "y1": 1, "yref": "y domain"}
        self.layout.setdefault("shapes", []).append(shape | {"xref": "x", "line": line})

    def update(self, **layout: Any) -> "PlotlyChart":
        """Change properties of the layout, and keep the others; return the chart."""
        merged(self.layout, layout)
        return self

    @property
    def figure(self) -> "go.Figure":
        """The chart as Plotly's object; raises ValueError for unknown properties or values."""
        import plotly.graph_objects as go

        return go.Figure({"data": self.data, "layout": self.layout})

    @property
    def unchecked(self) -> "UncheckedFigure":
        """The chart for Streamlit, with Plotly's default template; the chart is finished."""
        layout = {"template": _template(io.templates.default)} | self.layout
        return UncheckedFigure({"data": [*self.data], "layout": layout})


class UncheckedFigure(BaseFigure):
    """A chart that Streamlit takes for one of Plotly's, without its checks and copies.

    Tests check all charts that they draw with `PlotlyChart.figure`.
    """

    def __init__(self, specification: Style) -> None:
        # Not Plotly's `__init__`, which checks.
        self._specification = specification

    def to_dict(self) -> Style:
        """Return the chart's properties, as Plotly's JSON has them."""
        return self._specification


@cache
def _template(name: str) -> Style:
    """Return one of Plotly's templates: Streamlit's, unless another is the default."""
    found: Style = io.templates[name].to_plotly_json()
    return found


def merged(style: Style, more: Mapping[str, Any]) -> Style:
    """Change the properties `more` of a style and return it; the other properties are kept.

    None removes a property.
    """
    for name, value in more.items():
        parents = [] if name in WHOLE else name.split("_")[:-1]
        last = name if name in WHOLE else name.rpartition("_")[2]
        place = style
        for parent in parents:
            place = _inside(place, parent)
        if isinstance(value, Mapping):
            merged(_inside(place, last), value)
        elif last == "title" and isinstance(value, str):
            _inside(place, last)["text"] = value
        elif value is None:
            place.pop(last, None)
        else:
            place[last] = value
    return style


def _inside(style: Style, name: str) -> Style:
    """Return the properties inside a property, which is added if need be."""
    if not isinstance(style.get(name), dict):
        style[name] = {}
    found: Style = style[name]
    return found
