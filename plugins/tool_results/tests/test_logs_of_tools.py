"""Logs of Inspect, HELM and OpenCompass have the tools' verdicts, or are refused with the way out.

The contents follow logs of inspect_ai 0.3.285 (its mock model), and the writers of crfm-helm 0.5.16
and opencompass 0.5.4.
"""

import json
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lama_core.errors import UserError
from lama_core.progress import ignore
from lama_core.runs.importers.results import ImportedResults, ReadOptions
from lama_tool_results.formats import recognize

ABOUT = {
    "eval_id": "1",
    "task": "capitals",
    "model": "mockllm/model",
    "created": "2026-11-29T08:36:30+00:00",
    "dataset": {"sample_ids": [1, 2]},
    "packages": {"inspect_ai": "0.3.285"},
}


def sample(number: int = 1, value: object = "C", **fields: object) -> dict[str, Any]:
    scores = {"match": {"value": value, "answer": "Paris"}}
    row = {"id": number, "epoch": 1, "input": f"Capital {number}?", "target": "Paris"}
    return row | {"scores": scores, "output": {"completion": "Paris"}} | fields


def log(folder: Path, *samples: object, form: str = "json") -> Path:
    header = {"version": 2, "status": "error", "eval": ABOUT}
    path = folder / f"log.{form}"
    if form == "json":
        put(path, header | {"samples": samples})
        return path
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for number, one in enumerate(samples):
            packed.writestr(f"samples/{number}_epoch_1.json", json.dumps(one))
        packed.writestr("header.json", json.dumps(header))
    return path


def read(path: Path, name: str) -> ImportedResults:
    form = recognize(path)
    assert form is not None and form.name == name
    (found,) = form.read(path, ReadOptions(), ignore)
    return found


def put(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")


@pytest.mark.parametrize("form", ["json", "eval"])
def test_an_inspect_log_has_a_verdict_for_each_sample(form: str, tmp_path: Path) -> None:
    choice = sample(2, "I", target=["B"], choices=["Paris", "Lima"])
    choice["scores"]["match"]["answer"] = "A"
    found = read(log(tmp_path, sample(), choice, form=form), "inspect")
    assert (found.model, found.version, found.dropped) == ("mockllm/model", "0.3.285", ())
    rows = found.rows.select(["subject", "object", "correct", "predictions"]).to_pylist()
    assert [list(row.values()) for row in rows] == [
        ["Capital 1?", "Paris", True, ["Paris"]],
        ["Capital 2?", "Lima", False, ["Paris"]],
    ]


def test_a_log_packed_with_zstandard_is_read(tmp_path: Path) -> None:
    path = log(tmp_path, form="eval")
    text = json.dumps(sample()).encode()
    small = pa.Codec("zstd").compress(text, asbytes=True)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("samples/1_epoch_1.json", small)
        archive.getinfo("samples/1_epoch_1.json").file_size = len(text)
        archive.getinfo("samples/1_epoch_1.json").compress_type = 93
    assert read(path, "inspect").rows["correct"].to_pylist() == [True]
    path.write_bytes(path.read_bytes().replace(small, b"x" * len(small)))
    with pytest.raises(UserError, match="inspect log convert"):
        read(path, "inspect")


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"value": 0.5}, "neither right nor wrong"),
        ({"value": {"a": 1}}, "neither right nor wrong"),
        ({"scores": None}, "inspect score"),
        ({"error": {"message": "x"}}, "ended with an error"),
    ],
)
def test_a_sample_without_a_verdict_counts_as_one_of_the_answer(
    changed: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    (drop,) = read(log(tmp_path, sample(), sample(2, **changed)), "inspect").dropped
    assert drop.of_answer and drop.n == 1
    assert reason in drop.reason


def test_samples_that_an_interrupted_log_lacks_are_counted(tmp_path: Path) -> None:
    (drop,) = read(log(tmp_path, sample()), "inspect").dropped
    assert (drop.n, drop.of_answer) == (1, True) and "status is error" in drop.reason


def test_the_first_scorer_counts_and_others_are_named_also_next_to_nan(tmp_path: Path) -> None:
    scores = {"match": {"value": "C"}, "f1": {"value": float("nan")}}
    path = log(tmp_path, sample(scores=scores), sample(2))
    assert "NaN" in path.read_text(encoding="utf-8")
    found = read(path, "inspect")
    assert found.rows["correct"].to_pylist() == [True, True]
    assert [one.reason for one in found.dropped] == ["another scorer of the same answers (f1)"]


def test_later_epochs_are_excluded_and_no_answer_is_wrong(tmp_path: Path) -> None:
    found = read(log(tmp_path, sample(), sample(2, "N"), sample(epoch=2)), "inspect")
    assert found.rows["correct"].to_pylist() == [True, False]
    assert [(one.n, one.of_answer) for one in found.dropped] == [(1, False)]


def helm(folder: Path, **stats: float) -> Path:
    tags: dict[str, list[str]] = {"Lima": [], "Paris": ["correct"]}
    references = [{"output": {"text": text}, "tags": of} for text, of in tags.items()]
    about = {"input": {"text": "Capital?"}, "references": references, "split": "test"}
    answer = {"predicted_text": " B", "mapped_output": "Paris", "train_trial_index": 0}
    trials = [answer | {"instance_id": "id1", "stats": stats}]
    trials += [
        trials[0] | {"perturbation": {"name": "typos"}},
        trials[0] | {"train_trial_index": 1},
    ]
    put(folder / "instances.json", [about | {"id": "id1"}])
    put(folder / "display_predictions.json", trials)
    model = {"adapter_spec": {"model": "openai/gpt2"}}
    put(folder / "run_spec.json", model | {"name": "mmlu:subject=x,model=openai_gpt2"})
    return folder


def test_a_run_of_helm_counts_each_instance_once(tmp_path: Path) -> None:
    found = read(helm(tmp_path / "run", exact_match=1.0, f1=0.5), "helm")
    assert (found.model, found.dataset) == ("openai/gpt2", "mmlu:subject=x")
    (row,) = found.rows.select(["subject", "object", "correct", "predictions"]).to_pylist()
    assert list(row.values()) == ["Capital?", "Paris", True, ["Paris"]]
    assert all(one.n == 1 and not one.of_answer for one in found.dropped)


def test_a_run_of_helm_without_a_verdict_or_display_files_is_not_scored(tmp_path: Path) -> None:
    (drop, *_) = read(helm(tmp_path / "run", f1=0.5), "helm").dropped
    assert drop.of_answer and "exact_match" in drop.reason
    (tmp_path / "run/display_predictions.json").unlink()
    put(tmp_path / "run/scenario_state.json", {})
    with pytest.raises(UserError, match="helm-summarize"):
        read(tmp_path / "run", "helm")


ANSWERS = [{"pred": "Paris", "answer": "Paris", "correct": True}, {"pred": "x", "correct": False}]
OLD = {str(at): {"predictions": one["pred"], **one} for at, one in enumerate(ANSWERS)}
NEW = [{"example_abbr": f"c_{at}", "predictions": [one]} for at, one in enumerate(ANSWERS)]


@pytest.mark.parametrize("details", [OLD | {"type": "GEN"}, NEW])
def test_results_of_opencompass_have_the_questions_of_its_predictions(
    details: object, tmp_path: Path
) -> None:
    put(tmp_path / "o/results/my-model/c.json", {"accuracy": 50.0, "details": details})
    for at, prompt in enumerate(["Shots\n\nQ1", [{"role": "HUMAN", "prompt": "Q2"}]]):
        asked = {"origin_prompt": prompt, "prediction": "x", "gold": ["Paris"]}
        put(tmp_path / f"o/predictions/my-model/c_{at}.json", {"0": asked})
    found = read(tmp_path / "o", "opencompass")
    assert (found.model, found.dropped) == ("my-model", ())
    rows = found.rows.select(["relation", "subject", "object", "correct"]).to_pylist()
    assert [list(row.values()) for row in rows] == [
        ["c", "Q1", "Paris", True],
        ["c", "Q2", "Paris", False],
    ]


def test_opencompass_without_details_is_refused_with_the_option(tmp_path: Path) -> None:
    put(tmp_path / "o/predictions/m/c.json", {"0": {"origin_prompt": "Q", "prediction": "x"}})
    for path in (tmp_path / "o", tmp_path / "o/predictions/m/c.json"):
        with pytest.raises(UserError, match="--dump-eval-details"):
            read(path, "opencompass")
