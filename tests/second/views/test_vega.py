"""What a figure looks like with Vega-Lite: in files nothing is cut, touches or changes."""

import json
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
import vl_convert
from test_every_view import EVERY
from test_every_view import shown as show_view

from lama_core.views import vega
from lama_core.views.colours import run_colours
from lama_core.views.figure import Axis, Figure
from lama_core.views.figure_files import HEIGHT, POINTS

DRAWN = [(view, fields) for view, fields in EVERY if view.view.has_figure]
Corners = list[tuple[float, float]]
START = {"left": 0.0, "center": -0.5, "right": -1.0}  # of a text, in its widths
TOP = {"top": 0.1, "middle": -0.37, "bottom": -0.9, "alphabetic": -0.74, "line-top": 0.1}


def texts_of(node: Any, x: float, y: float, kind: str = "") -> Iterator[tuple[str, Corners]]:
    """The texts of a scene with the corners of their boxes."""
    kind = node.get("marktype", kind)
    for item in node.get("items", ()):
        if "marktype" in item:
            yield from texts_of(item, x, y)
        elif kind == "group":
            yield from texts_of(item, x + item.get("x", 0), y + item.get("y", 0), kind)
        elif kind == "text" and item["text"] and item["text"] != [""]:
            lines = item["text"] if isinstance(item["text"], list) else [str(item["text"])]
            size, bold = item["fontSize"], item.get("fontWeight") == "bold"
            wide = max(vega._wide(line, size, bold=bold) for line in lines)
            high = 0.74 * size + item.get("lineHeight", size + 2) * (len(lines) - 1)
            left = START[item.get("align", "left")] * wide + item.get("dx", 0)
            top = TOP[item.get("baseline", "alphabetic")] * size + item.get("dy", 0)
            turn = math.radians(item.get("angle") or 0)
            ends = [(left + a * wide, top + b * high) for a, b in ((0, 0), (1, 0), (1, 1), (0, 1))]
            yield (
                " ".join(lines),
                [
                    (
                        x + item.get("x", 0) + a * math.cos(turn) - b * math.sin(turn),
                        y + item.get("y", 0) + a * math.sin(turn) + b * math.cos(turn),
                    )
                    for a, b in ends
                ],
            )


def touch(one: Corners, other: Corners) -> bool:
    """Whether two boxes overlap: no line along a side separates them."""
    for box in (one, other):
        for (x, y), (x2, y2) in zip(box, box[1:] + box[:1], strict=True):
            along = [[a * (y2 - y) - b * (x2 - x) for a, b in each] for each in (one, other)]
            slack = 0.6 * math.hypot(x2 - x, y2 - y)
            if max(along[0]) <= min(along[1]) + slack or max(along[1]) <= min(along[0]) + slack:
                return False
    return True


def check_texts(specification: vega.Spec, width: float) -> list[str]:
    """Nothing is cut or touches; return the texts."""
    scene = vl_convert.vegalite_to_scenegraph(json.dumps(specification, allow_nan=False))
    assert scene["width"] == pytest.approx(width, abs=1.1)
    found = list(texts_of(scene["scenegraph"], *scene["origin"]))
    for text, corners in found:
        for x, y in corners:
            inside = -0.8 <= x <= scene["width"] + 0.8 and -0.8 <= y <= scene["height"] + 0.8
            assert inside, f"{text!r} is cut off: {corners} in {scene['width']}, {scene['height']}"
    for at, (text, corners) in enumerate(found):
        for other, theirs in found[:at]:
            assert not touch(corners, theirs), f"{text!r} touches {other!r}"
    return [text for text, _ in found]


def nameless(specification: vega.Spec) -> list[str]:
    """The graphics that a screen reader would announce without saying what they are."""
    svg = vl_convert.vegalite_to_svg(json.dumps(specification))
    graphics = re.findall(r'<[^>]* role="graphics-symbol"[^>]*>', svg)
    return [one for one in graphics if 'aria-label="' not in one]


def words(texts: list[str]) -> str:
    """The letters of texts without spaces, because a text is broken into lines."""
    return "".join("".join(texts).split())


@pytest.mark.parametrize(("width", "size"), ((6, 8), (8.5, 9), (12, 14), (17, 9)))
@pytest.mark.parametrize(("function", "fields"), DRAWN)
def test_a_file_says_all_and_no_label_is_cut_or_touches_another(
    function: Any, fields: dict[str, Any], width: float, size: float
) -> None:
    shown = show_view(function, fields)
    figure, inks = shown.figure, shown.view.inks(shown, run_colours(shown.infos))
    look = vega.Look(width=width * POINTS, size=size, legend=True)
    pages = vega.pages(figure, inks, look, HEIGHT * POINTS)
    texts = [text for page in pages for text in check_texts(page, width * POINTS)]
    assert not nameless(pages[0])
    assert not nameless(vega.specification(figure, inks, vega.Look(clicks=True)) | {"width": 600})
    names = [figure.names[one] for one in dict.fromkeys(figure.frame[figure.series])]
    bright = [name for name in names if name in inks.values()] or names
    several = f" (1 of {len(pages)})" * (len(pages) > 1)
    upright = figure.shape in ("lines", "columns", "heat map")
    axis = [figure.by.title] if upright else []
    said = [figure.title + several, figure.caption, *axis, *bright]
    said += [] if figure.shape == "heat map" else [figure.value.title]
    said += [str(place) for place in figure.places] if not upright else []
    for text in said:
        assert words([text]) in words(texts), text
    assert figure.caption and any(sign.isdigit() for sign in figure.caption)


def made(shape: Any, places: list[str], names: list[str], values: list[float]) -> Figure:
    """A figure with these names."""
    frame = pd.DataFrame(
        [
            {"by": place, "value": value, "run": number, "said": f"{place}\n{name}"}
            for place, value in zip(places, values, strict=True)
            for number, name in enumerate(names)
        ]
    )
    return Figure(
        shape=shape,
        frame=frame,
        by=Axis(column="by", title="by", order=tuple(places)),
        value=Axis(column="value", title="share of the facts, %", share=True),
        names=dict(enumerate(names)),  # type: ignore[arg-type]
        title=" ".join(names),
        caption="3 facts",
    )


def test_rows_higher_than_a_page_are_divided_and_none_is_lost() -> None:
    places = [f"P{number} relation" for number in range(90)]
    figure = made("bars", places, ["a", "b"], [number / 90 for number in range(90)])
    pages = vega.pages(figure, {}, vega.Look(width=300, size=9, legend=True), 500)
    assert len(pages) > 2 and all(page["height"] <= 500 for page in pages)
    texts = [check_texts(page, 300) for page in pages]
    rows = [text for page in texts for text in page if text.startswith("P") and "relation" in text]
    assert sorted(rows) == sorted(places)
    ends = {json.dumps(page["layer"][-1]["encoding"]["x"]["scale"]) for page in pages}
    assert len(ends) == 1, "the pages have the same axis"


@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize("look", [vega.Look(width=300), vega.Look(clicks=True)])
@pytest.mark.parametrize("shape", ["bars", "points", "lines", "columns"])
def test_a_figure_without_or_with_one_mark_is_drawn(shape: Any, look: vega.Look, n: int) -> None:
    figure = made(shape, ["a"], ["b"], [0.0])
    figure = replace(figure, frame=figure.frame.head(n))
    drawn = json.dumps(vega.specification(figure, {}, look), allow_nan=False)
    assert "<svg" in vl_convert.vegalite_to_svg(drawn)


def test_axes_end_at_100_with_room_for_numbers_or_where_the_figure_says() -> None:
    figure = made("bars", ["a", "b"], ["x"], [0.61, 0.03])
    figure = replace(figure, frame=figure.frame.assign(text=["61.0 %", "3.0 %"]), text="text")

    def x_of(figure: Figure, look: vega.Look) -> Any:
        layers = vega.specification(figure, {}, look)["layer"]
        return next(one for one in layers if one["mark"] != vega.EMPTY["mark"])["encoding"]["x"]

    for look in (vega.Look(clicks=True), vega.Look(width=170, size=8)):
        axis = x_of(figure, look)
        assert max(axis["axis"]["values"]) <= 100
        assert axis["scale"]["domain"][1] > 61, "the numbers have room"
    figure = made("lines", ["1", "2"], ["x"], [0.1, 0.2])
    by = Axis(column="by", title="steps", log=True, ends=(2.0, 900.0), ticks={4.0: "4"})
    figure = replace(figure, frame=figure.frame.assign(by=[3.0, 700.0]), by=by)
    scale = x_of(figure, vega.Look(width=300))["scale"]
    assert scale["domain"] == [2.0, 900.0] and not scale["nice"]
