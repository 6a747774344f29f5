"""Runs of other facts or models never cut the results that Python returns."""

from pathlib import Path

import pandas as pd
import pytest

import lama_core as lama
from lama_core.runs.find import bundled_dir

pytestmark = pytest.mark.usefixtures("home")
RUN = next(bundled_dir().glob("starter-minilm_mlm-manual-*")).name


def test_a_small_run_of_another_model_never_cuts_the_others(tmp_path: Path) -> None:
    before = lama.results(by="source")
    lines = ["relation,subject,object,rank", "P36,France,Paris,1", "P36,Italy,Rome,1"]
    file = tmp_path / "two.csv"
    file.write_text("\n".join(lines), encoding="utf-8")
    (run,) = lama.import_run(file, model="other", dataset="starter")["run"]
    notes: list[str] = []
    pd.testing.assert_frame_equal(lama.results(by="source", on_note=notes.append), before)
    (note,) = (note for note in notes if run in note)
    assert "2 of 11,892 facts" in note and "Name runs" in note
    assert run in set(lama.results(own=True)["run"])
    limits: list[str] = []
    named = lama.results([run, RUN], on_note=limits.append)
    assert set(named["n"]) == {0, 2} and any(run in note for note in limits)
