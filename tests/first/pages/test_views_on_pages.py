"""The page shows, draws and exports what a view's command and function give."""

from typing import Any

import pytest
from calling import told
from opening import open_page

import lama_core as lama
from lama_core.requests import arguments, field_values
from lama_core.views.table import VIEWS
from pages.ui.results import draw_view
from pages.ui.results.more import CHARTS

pytestmark = pytest.mark.usefixtures("home")
MODELS = ("minilm-mlm", "smollm2-135m")
# Chart -> parameters of its URL, where the first runs of both models don't suffice.
PARAMS: dict[str, dict[str, Any]] = {
    "Slices": {"slice_by": "origin"},
    "Margins": {"prompts": "statements template 0", "models": ["minilm-mlm"]},
}
# The page of analogy probes offers the commands that make its runs.
OF_RUNS = [one for one in VIEWS if one.view.title in CHARTS and one.view.name != "analogies"]


@pytest.mark.parametrize("function", OF_RUNS, ids=lambda one: one.view.name)
def test_the_page_exports_what_command_and_function_give(
    function: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[Any] = []
    monkeypatch.setattr(draw_view, "draw_export", lambda *given, **_: taken.append(given))
    title = function.view.title
    params: dict[str, Any] = {"models": list(MODELS), "relations": ["P36 capital", "P19"],
                              "p_at": "5", "ranking": "raw"}  # fmt: skip
    app = open_page("results", tab="More", chart=title, **params | PARAMS.get(title, {}))
    assert not app.error and not app.exception
    _, make_table, _, (request, *_) = next(
        one for one in taken if isinstance(one[3][0], function.request)
    )
    frame = getattr(lama, request.python)(**field_values(request))
    assert make_table()[frame.columns].to_json(orient="records") == frame.to_json(orient="records")
    assert told(*arguments(request))
