"""The charts of a reproduction: our values next to the paper's, curves, and boxes."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from lama_core.metrics.score_tables import box_of
from lama_core.views.figure import Axis, Figure, Shape
from lama_core.views.quartiles import BOX
from lama_papers.tables import ReproducedRow

NUMBERS = (float, int)


def chart(
    shape: Shape,
    title: str,
    rows: Iterable[Mapping[str, Any]],
    by: Axis,
    value: str,
    log: bool = False,
    **more: Any,
) -> Figure:
    """Return a chart.

    Args:
        shape: Its shape.
        title: Its title; a table's charts with the same title become one.
        rows: The marks: `series`, `value`, those that `by` and `more` name, and perhaps `said`.
        by: The axis of the rows or places.
        value: The title of the axis of the values.
        log: Whether that is logarithmic.
        more: Other attributes of the figure.
    """
    made = [
        {"said": f"{row['series']}\n{row[by.column]}: {row['value']:.4g}", **row} for row in rows
    ]
    return Figure(
        shape=shape,
        frame=pd.DataFrame(made),
        by=by,
        value=Axis(column="value", title=value, from_zero=not log, log=log),
        series="series",
        names={row["series"]: row["series"] for row in made},
        title=title,
        **more,
    )


def compared(
    title: str,
    rows: Iterable[ReproducedRow],
    *,
    x: Callable[[ReproducedRow], str] = lambda row: row.what,
    y_title: str,
    x_title: str = "",
    name: Callable[[ReproducedRow], str] = lambda row: row.model,
    published: Callable[[ReproducedRow], bool] = lambda row: True,
) -> Iterator[Figure]:
    """Yield a chart of our values, with their intervals, and the paper's as hollow points.

    Yields nothing if no row has a value; without values of the paper, the chart has bars.

    Args:
        title: Title of the chart.
        rows: The cells to draw.
        x: Name of a cell's row in the chart.
        y_title: Title of the axis of the values.
        x_title: Title of the axis of the rows.
        name: Name of a cell's series, such as the model.
        published: Whether to draw a cell's published value.
    """
    marks = []
    for row in rows:
        low, high = row.interval or (np.nan, np.nan)
        mark = {"series": name(row), "what": x(row), "paper": False, "low": low, "high": high}
        if isinstance(row.ours, NUMBERS):
            marks.append(mark | {"value": row.ours})
        if isinstance(row.published, NUMBERS) and published(row):
            text = f"{name(row)}, in the paper\n{x(row)}: {row.published:.4g}"
            theirs = {"value": row.published, "paper": True, "said": text}
            marks.append(mark | theirs | {"low": np.nan, "high": np.nan})
    if marks:
        more: dict[str, Any] = {"low": "low", "high": "high"}
        both = any(mark["paper"] for mark in marks)
        if both:
            more |= {"hollow": "paper", "hollow_name": "in the paper"}
        axis = Axis(column="what", title=x_title)
        yield chart("points" if both else "bars", title, marks, axis, y_title, **more)


def boxes(
    title: str,
    groups: Iterable[tuple[str, str, Sequence[float]]],
    x_title: str,
    y_title: str,
    **more: Any,
) -> Figure:
    """Return a chart with a box for each group of values.

    Args:
        title: Title of the chart.
        groups: Series, name of the row and values of each box.
        x_title: Title of the axis of the rows.
        y_title: Title of the axis of the values.
        more: As for `chart`.
    """
    marks = []
    for series, what, values in groups:
        box = box_of(np.array(values, dtype=float)) | {"n": len(values)}
        text = "{what}\n{n:,} values\nmean {mean:.4g}, median {median:.4g}".format(what=what, **box)
        marks.append({**box, "series": series, "what": what, "value": box["mean"], "said": text})
    more |= {"low": "low", "high": "high", "caption": BOX}
    return chart("boxes", title, marks, Axis(column="what", title=x_title), y_title, **more)
