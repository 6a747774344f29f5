"""The chart Training on Results, on made-up checkpoints."""

from pathlib import Path
from typing import Any

import pytest
from chart_marks import charts
from opening import open_page, said
from series_fakes import STEPS, make_series
from streamlit.testing.v1 import AppTest

from lama_core.metrics.training import training_of
from lama_core.runs.info import Run
from pages.ui.shared import figures, screens


@pytest.fixture
def runs(home: Path) -> tuple[Run, ...]:
    return make_series(home / "data" / "runs", home / "toy")


def open_training(**params: str) -> AppTest:
    return open_page("results", data="toy", tab="More", chart=screens.TRAINING, **params)


def test_the_chart_says_what_is_learned_and_forgotten(runs: tuple[Run, ...]) -> None:
    found = training_of(runs, STEPS)
    app = open_training()
    assert (
        f"lab/tiny: {found.n_learned} of {len(found.facts)} facts of "
        f"{found.facts['relation'].nunique()} relations are right at the last step; half of these "
        "stay right from step 16 on"
    ) in said(app)
    assert f"{found.n_forgotten} are forgotten: right at an earlier step only" in said(app)
    assert "4 checkpoints from step 0 to step 16" in said(app)
    order, facts = (one.value for one in app.dataframe[:2])
    assert order["forgotten"].tolist() == found.relations()["n_forgotten"].tolist()
    assert len(facts) == found.n_forgotten and "last right at" in facts
    boxes = open_page("results", data="toy").multiselect
    assert [one.placeholder for one in boxes if one.label == "Models"] == ["All 1 with a run"]


def test_every_measure_and_line_can_be_drawn(runs: tuple[Run, ...]) -> None:
    for line, label in (("source", "mean rank"), ("relation", "log-probability")):
        app = open_training(lines=line, training_measure=label)
        assert any(label.capitalize() in chart.title for chart in charts(app))


def test_a_point_leads_to_the_facts_at_its_step(
    runs: tuple[Run, ...], gone: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    at = STEPS.index(4)  # of the first relation
    monkeypatch.setattr(
        figures, "draw_figure", lambda figure, *_, **__: figures.mark_of(figure, [{"mark": at}])
    )
    open_training(lines="relation")
    assert gone[-1]["runs"] == [runs[STEPS.index(4)].info.id]
    assert gone[-1]["relations"] == ["P19 place of birth"]
    assert gone[-1]["tab"] == "Wrong answers"


def test_the_chart_needs_two_checkpoints(home: Path) -> None:
    make_series(home / "data" / "runs", home / "toy", steps=(4,))
    assert "Needs: runs of at least two checkpoints" in said(open_training())
