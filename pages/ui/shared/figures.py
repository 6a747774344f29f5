"""Draw a chart given as data (`lama_core.views.figure`) on a page, with Vega-Lite."""

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

import streamlit as st

from lama_core.tables import Line
from lama_core.views import vega
from lama_core.views.figure import Figure
from pages.ui.shared.cache import cached
from pages.ui.shared.style import theme


def draw_figure(
    figure: Figure,
    inks: Mapping[str, str],
    key: str,
    *,
    height: float = 0.0,
    most: float = math.inf,
    legend: bool | None = None,
    enlarged: float = 1.0,
) -> Line | None:
    """Draw a figure; return the row of its frame of the clicked mark, if any.

    Args:
        figure: The figure.
        inks: Series -> colour.
        key: The widget's key.
        height: The least height of rows, and the height of other charts, in pixels.
        most: The greatest height.
        legend: Whether there is a legend; by default if it has several entries.
        enlarged: A factor for the sizes of letters and marks.
    """
    specification, name = _specification(
        figure, dict(inks), theme(), height, most, legend, enlarged
    )
    event = st.vega_lite_chart(
        None,
        specification,
        key=f"{key} {name}",  # else what was clicked in another chart would be clicked in this one
        on_select="rerun",
        selection_mode=vega.CLICKED,
        theme=None,
        alt=figure.title,
    )
    return mark_of(figure, event.selection.get(vega.CLICKED))


@cached(64)
def _specification(
    figure: Figure,
    inks: dict[str, str],
    theme: str,
    height: float,
    most: float,
    legend: bool | None,
    enlarged: float,
) -> tuple[vega.Spec, str]:
    """Return a figure's specification and its digest; theme: that of the page."""
    look = vega.Look(
        size=12 * enlarged,
        dark=theme == "dark",
        page=str(st.get_option(f"theme.{theme}.backgroundColor")),
        font="Source Sans, sans-serif",
        legend=legend,
        height=height,
        most=most,
        clicks=True,
    )
    made = vega.specification(figure, inks, look)
    return made, hashlib.sha256(json.dumps(made).encode()).hexdigest()[:12]


def mark_of(figure: Figure, picked: Any) -> Line | None:
    """Return the row of the figure's frame of the first picked mark; None without one."""
    for one in picked if isinstance(picked, list) else ():
        number = one.get("mark")
        if isinstance(number, int) and 0 <= number < len(figure.frame):
            # As records, whose numbers are Python's: numpy's can't be compared with ().
            return figure.frame.iloc[[number]].to_dict("records")[0]
    return None
