"""Imported runs are exported for lm-pub-quiz and as tables, with the same numbers."""

import json
from pathlib import Path
from typing import Any

import pytest
from calling import told
from test_results_of_tools import HARNESS, QUIZ
from written_statements import write_bear

import lama_core as lama
from lama_core.runs.find import load_run
from lama_core.runs.info import Run
from lama_tool_results.exporting import UNWRITABLE

pytestmark = pytest.mark.usefixtures("home")


def import_all(path: Path, **fields: Any) -> list[Run]:
    return [load_run(name) for name in lama.import_run(str(path), **fields)["run"]]


def accuracies(run: Run) -> dict[str, float]:
    assert run.info.n_excluded == 0
    right = run.facts["rank_raw"] == 1
    return right.groupby(run.facts["relation"].astype(str)).mean().to_dict()


def test_lm_pub_quiz_opens_an_exported_run(tmp_path: Path) -> None:
    from lm_pub_quiz import DatasetResults

    stored = {
        relation: one["metric_values"]["accuracy"]
        for relation, one in json.loads((QUIZ / "metadata_results.json").read_text()).items()
    }
    (run,) = import_all(QUIZ)
    assert accuracies(run) == stored
    out = tmp_path / "quiz"
    done = told("runs", "export", run.info.id, "--format", "lm-pub-quiz", "--out", str(out))
    assert (done["n"], done["n_excluded"]) == (11, 0)
    theirs = DatasetResults.from_path(out).get_metrics(["accuracy"], accumulate=False)
    assert theirs["accuracy"].to_dict() == stored
    about = json.loads((out / "metadata_results.json").read_text())["capital"]
    assert about["made_by"].startswith("lm-pub-quiz 0.3.3, imported by LAMA Explorer")
    (again,) = import_all(out, model="again")
    assert again.facts["log_prob"].tolist() == run.facts["log_prob"].tolist()


def test_lm_pub_quiz_opens_an_exported_run_of_statements(tmp_path: Path) -> None:
    from lm_pub_quiz import DatasetResults

    facts = [("France", "Paris"), ("India", "New Delhi"), ("Japan", "Tokyo")]
    data = write_bear(tmp_path / "toy", facts, [answer for _, answer in facts])
    run = lama.statements(dataset=str(data), models=["minilm-mlm"]).runs[0]
    out = lama.export_run(run.info.id, out=tmp_path / "quiz", format="lm-pub-quiz")
    theirs = DatasetResults.from_path(out).get_metrics(["accuracy"], accumulate=False)
    assert theirs["accuracy"].to_dict() == accuracies(run)
    (again,) = import_all(out, model="again")
    assert again.facts["rank_raw"].tolist() == run.facts["rank_raw"].tolist()


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
