"""Forms: the widgets of a tab, which make its request and the parameters of its URL.

A `Widget` asks for one field of the request. A `Form` has a widget for each field that its page
asks for, and a function that lays them out.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, Generic

from lama_core.requests import SomeRequest

Values = Mapping[str, Any]
# Draws the widget of a field, and returns the field's value.
DrawField = Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class Widget:
    """A widget, or several, for one field of a request.

    Attributes:
        draw: Draws it, and returns the field's value. Its argument has the values of the fields
            whose widgets were drawn before it.
        params: Makes the URL parameters from the request; a parameter is a widget's key.
    """

    draw: Callable[[Values], Any]
    params: Callable[[Any], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Form(Generic[SomeRequest]):
    """A form.

    Attributes:
        request: The class of the request.
        widgets: Field -> its widget.
        layout: Draws all widgets.
    """

    request: type[SomeRequest]
    widgets: Mapping[str, Widget]
    layout: Callable[[DrawField], object]

    def draw(self, **values: Any) -> SomeRequest:
        """Draw the form; return the request. values: fields that have no widget."""

        def draw_field(name: str) -> Any:
            values[name] = self.widgets[name].draw(values)
            return values[name]

        self.layout(draw_field)
        return self.request(**values)

    def params(self, request: SomeRequest) -> dict[str, Any]:
        """The URL parameters of a request; None for a parameter that isn't in the URL."""
        return dict(
            chain.from_iterable(one.params(request).items() for one in self.widgets.values())
        )
