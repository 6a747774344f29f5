"""The chart Causal traces on Results, on the bundled runs."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from opening import open_page, said
from statement_fakes import make_ways
from streamlit.testing.v1 import AppTest

from lama_core.errors import UserError
from lama_core.probes.kinds import request_of
from lama_core.probes.tracing.request import TraceRequest
from lama_core.probes.tracing.traces import ALL_FACTS, read_traces, trace_runs
from lama_core.runs.info import Run
from pages.ui.shared import screens

RUNS = trace_runs("starter")
if not RUNS:
    pytest.skip("no traces come with this version", allow_module_level=True)
RUN = Run(next(run for run in RUNS if run.prompts == "trace states"))
RELATION = max(RUN.info.relations, key=lambda one: one.n)


def open_traces(**params: str) -> AppTest:
    return open_page("results", data="starter", tab="More", chart=screens.TRACES, **params)


def test_the_chart_names_the_largest_effect_and_its_facts(home: Path) -> None:
    app = open_traces(trace_relation=RELATION.name)
    found = read_traces(RUN, RELATION.name)
    best, (first, last) = found.largest, found.best_layers
    assert best.role != "blank"
    layers = f"one of the layers {first} to {last}" if last > first else f"layer {first}"
    assert f"restoring {layers} at the {best.role} raises" in said(app)
    assert f"restoring layer {found.at_blank.layer} at the blank by" in said(app)
    assert f"means over {RELATION.n} facts" in said(app)
    facts = app.dataframe[0].value
    assert len(facts) == best.n
    assert facts["effect"].mean() == pytest.approx(best.effect, abs=1e-4)
    assert f"means over {RUN.info.n} facts" in said(open_traces(trace_relation=ALL_FACTS))
    assert read_traces(RUN).effects["n"].max() == RUN.info.n
    make_ways(home, home / "data" / "runs")
    without = open_page("results", data="stated", tab="More", chart=screens.TRACES)
    assert "Needs: a run of causal traces on this data" in said(without)


def test_layers_with_the_same_effect_are_named_together() -> None:
    found = read_traces(RUN, RELATION.name)
    effects = pd.DataFrame(
        {"role": "subject, last token", "layer": range(1, 7), "low": 0.0, "high": 1.0, "n": 9}
    ).assign(
        relation=RELATION.name, model="m", restore="states",
        effect=[0.1, 0.395, 0.4, 0.392, 0.2, 0.399],
    )  # fmt: skip
    assert replace(found, effects=effects).best_layers == (2, 4)


def test_a_run_without_options_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(RUN.info)
    monkeypatch.setitem(run.__dict__, "details", {"reasons": {}})
    with pytest.raises(UserError, match="Delete the run and make it again"):
        read_traces(run)
    request = request_of(RUN.info)
    assert isinstance(request, TraceRequest)
    assert (request.restore, request.draws, request.limit) == ("states", 3, 60)
