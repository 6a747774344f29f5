"""Imported runs are exported for lm-pub-quiz and as tables, with the same numbers."""

import json
from pathlib import Path
from typing import Any

import pytest
from test_results_of_tools import FILES, HARNESS, QUIZ

import lama_core as lama
from lama_core.runs.exporting import UNWRITABLE
from lama_core.runs.find import load_run
from lama_core.runs.info import Run

pytestmark = pytest.mark.usefixtures("home")


def import_all(path: Path, **fields: Any) -> list[Run]:
    return [load_run(name) for name in lama.import_run(str(path), **fields)["run"]]


def accuracies(run: Run) -> dict[str, float]:
    assert run.info.n_excluded == 0
    right = run.facts["rank_raw"] == 1
    return right.groupby(run.facts["relation"].astype(str)).mean().to_dict()


@pytest.mark.parametrize("name", ["lm_pub_quiz_raw", "lm_evaluation_harness"])
def test_an_exported_table_has_the_same_answers(name: str, tmp_path: Path) -> None:
    for number, run in enumerate(import_all(FILES / name)):
        out = lama.export_run(run.info.id, out=tmp_path / str(number))
        (again,) = import_all(out)
        assert accuracies(again) == accuracies(run)
        assert again.facts["rank_raw"].tolist() == run.facts["rank_raw"].tolist()
        assert (again.top.words == run.top.words).all()


def test_choices_and_generated_answers_of_the_harness_count_in_one_run() -> None:
    for run in import_all(HARNESS):
        (file,) = (HARNESS / run.info.model).glob("results_*.json")
        stored = json.loads(file.read_text())["results"]
        assert accuracies(run) == {
            task: one.get("acc,none", one.get("exact_match,strip")) for task, one in stored.items()
        }


def test_an_answer_that_a_model_cannot_write_stays_so(tmp_path: Path) -> None:
    (run,) = import_all(QUIZ)
    out = lama.export_run(run.info.id, out=tmp_path / "quiz", format="lm-pub-quiz")
    file = out / "capital_results.jsonl"
    first = json.loads(file.read_text().splitlines()[0])
    first["pll_scores"][3] = UNWRITABLE
    file.write_text(json.dumps(first))
    (again,) = import_all(out)
    scores = again.scores_of(0)
    assert scores is not None and scores.scores[3] == -float("inf")
    back = lama.export_run(again.info.id, out=tmp_path / "back", format="lm-pub-quiz")
    line = json.loads((back / "capital_results.jsonl").read_text())
    assert line["pll_scores"] == pytest.approx(first["pll_scores"])
