"""Charts for notebooks and editors: valid in Altair, drawn as they are, with every text a text."""

import json
import re
from dataclasses import replace
from html import unescape
from typing import Any

import altair
import pandas as pd
import pytest
import vl_convert
from test_every_view import EVERY
from test_every_view import shown as show_view

from lama_core.views import vega
from lama_core.views.figure import Axis, Baseline, Figure
from lama_core.views.view import EDITED

DRAWN = [(view, fields) for view, fields in EVERY if view.view.has_figure]


@pytest.mark.parametrize(("function", "fields"), DRAWN)
def test_a_specification_is_valid_in_altair_and_drawn(
    function: Any, fields: dict[str, Any]
) -> None:
    shown = show_view(function, fields)
    file = json.dumps(vega.specification(shown.figure, shown.inks, EDITED), allow_nan=False)
    read = altair.Chart.from_dict(json.loads(file)).to_dict()  # both check it
    for name in ("continuousHeight", "continuousWidth"):  # defaults of Altair, for other charts
        del read["config"]["view"][name]
    assert read == json.loads(file)
    assert shown.figure.title.split()[0] in vl_convert.vegalite_to_svg(file)


def test_a_text_of_data_is_never_an_expression() -> None:
    texts = ["<b>&amp;", "datum.value", "{'expr':'1'}", "a\\nb", "%$_^", "![x](y)"]
    rows = [
        {"who": text, "run": text, "value": 0.5, "said": text, "bare": 0.1, "at": number}
        for number, text in enumerate(texts)
    ]
    whole = " ".join(texts)
    figure = Figure(
        shape="bars", frame=pd.DataFrame(rows), by=Axis(column="who", title=whole),
        value=Axis(column="value", title=whole), names={text: text for text in texts},
        baselines=(Baseline(column="bare", name=whole, mark="tick"),), title=whole, caption=whole,
    )  # fmt: skip
    for shape in ("bars", "columns", "heat map"):
        made = vega.specification(replace(figure, shape=shape, rows=whole), {}, EDITED)
        drawn = vl_convert.vegalite_to_svg(made)
        words = " ".join(unescape(one) for one in re.findall(r">([^<]+)<", drawn)).split()
        for text in texts:
            assert words.count(text) >= 4, (shape, text)


def test_a_line_breaks_where_a_value_is_unknown() -> None:
    rows = [
        {"k": k, "run": "a", "value": value, "said": str(value)}
        for k, value in enumerate((0.5, 0.6, float("nan"), 0.9, 0.2))
    ]
    figure = Figure(
        shape="lines", frame=pd.DataFrame(rows), by=Axis(column="k", title="k"),
        value=Axis(column="value", title="P@k"), names={"a": "a"}, title="Curve",
    )  # fmt: skip
    drawn = vl_convert.vegalite_to_svg(vega.specification(figure, {"a": "#1f6aa5"}, EDITED))
    lines = re.findall(r'd="(M[^"]*L[^"A]*)" stroke="#1f6aa5"', drawn)
    assert [(line.count("M"), line.count("L")) for line in lines] == [(2, 2)]
