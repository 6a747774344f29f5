"""Results of the harness and of lm-pub-quiz as people have them: other names, other writers."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from data_files import write_lines
from imported_runs import ranks

from lama_core.errors import UserError
from lama_tool_results.formats import recognize
from lama_tool_results.importing import ImportRunRequest, open_results


def choice(number: int, scores: list[float | str], **more: Any) -> dict[str, Any]:
    """A line of a multiple-choice task with the choices A, B, ...; the first one is right."""
    words = [f" {chr(65 + at)}" for at in range(len(scores))]
    return {
        "doc_id": number,
        "doc": {"question": f"question {number}"},
        "target": "0",
        "arguments": [[f"question {number}", word] for word in words],
        "resps": [[[str(one), "False"]] for one in scores],
        "filtered_resps": [[str(one), "False"] for one in scores],
        **more,
    }


def text(number: int, said: str, target: object, right: float, **more: Any) -> dict[str, Any]:
    """A line of a task with generated answers."""
    return {
        "doc_id": number,
        "doc": {"question": f"question {number}"},
        "target": target,
        "arguments": [[f"question {number}", {"until": ["\n"]}]],
        "resps": [[said]],
        "filtered_resps": [said],
        "exact_match": right,
        **more,
    }


@pytest.mark.parametrize(
    "name",
    [
        "pretrained\\=EleutherAI__gpt-j-6B_toy.jsonl",  # of 0.4.0
        "samples_toy.json",  # lines, although it is called .json, until June 2024
        "out",
    ],
)
def test_samples_of_the_harness_are_known_by_their_content(tmp_path: Path, name: str) -> None:
    lines = [choice(0, [-1.0, -2.0], acc=1.0), choice(1, [-3.0, -2.0], acc=0.0)]
    path = write_lines(tmp_path / name, lines)
    form = recognize(path)
    assert form is not None and form.name == "lm-evaluation-harness"
    assert ranks(path) == {"question 0": 1, "question 1": 2}


def test_the_second_filter_of_the_same_answers_doesnt_count(tmp_path: Path) -> None:
    lines = [
        text(number, "42", "42", right, filter=name)
        for name, right in (("strict-match", 0.0), ("flexible-extract", 1.0))
        for number in range(3)
    ]
    path = write_lines(tmp_path / "samples_gsm8k.jsonl", lines)
    (one,) = open_results(ImportRunRequest(str(path), model="toy"))
    assert len(one.finished.rows) == 3
    assert one.precision == (0, 0), "of the first filter"


def test_choices_that_the_document_labels_are_right(tmp_path: Path) -> None:
    labelled = {"question": "Q", "mc2_targets": {"choices": ["A", "B", "C"], "labels": [0, 1, 1]}}
    line = choice(0, [-1.0, -3.0, -2.0], doc=labelled, acc=0.4)
    path = write_lines(tmp_path / "samples_truthfulqa_mc2.jsonl", [line])
    assert ranks(path) == {"Q": 2}, "C, the better one of B and C"


def test_an_accuracy_between_0_and_1_contradicts_a_single_right_choice(tmp_path: Path) -> None:
    lines = [choice(0, [-1.0, -3.0], acc=0.4)]
    path = write_lines(tmp_path / "samples_mc2.jsonl", lines)
    with pytest.raises(UserError, match=r"several choices are right"):
        ranks(path)
    # The accuracy is the model's: without these rows the others aren't a random part.
    path = write_lines(path, [*lines, choice(1, [-1.0, -3.0], acc=1.0)])
    with pytest.raises(UserError, match=r"between 50.0 and 100.0 %.*several choices are right"):
        ranks(path)


@pytest.mark.parametrize("written", [str, list])
def test_aliases_with_apostrophes_are_several_answers(tmp_path: Path, written: Any) -> None:
    target = written(["Côte d'Ivoire", 'The "Ivory" Coast'])
    line = text(0, "Côte d'Ivoire", target, 1.0)
    path = write_lines(tmp_path / "samples_triviaqa.jsonl", [line])
    (one,) = open_results(ImportRunRequest(str(path), model="toy"))
    (row,) = one.finished.rows.to_pylist()
    assert (row["object"], row["rank_raw"]) == ("Côte d'Ivoire", 1)


@pytest.mark.parametrize(
    ("scores", "rank"),
    [
        ([-2.0, -math.inf, -3.0], 1),
        ([-math.inf, -2.0, -3.0], 3),
        ([-2.0, -2.0], 1),  # as the harness' argmax
        ([0.0, 0.0, 0.0], 1),
        (["-2.5", "-1.5"], 2),
    ],
)
def test_choices_are_ranked_as_the_harness_ranks_them(
    tmp_path: Path, scores: list[float | str], rank: int
) -> None:
    line = choice(0, scores, acc=float(rank == 1))
    assert ranks(write_lines(tmp_path / "samples_toy.jsonl", [line])) == {"question 0": rank}


@pytest.mark.parametrize(
    "about",
    [
        {"model_name": "EleutherAI/pythia-160m", "lm_eval_version": "0.4.9"},
        {"config": {"model": "hf", "model_args": "pretrained=EleutherAI/pythia-160m,dtype=auto"}},
    ],
)
def test_undated_samples_are_of_the_model_in_the_results_beside_them(
    tmp_path: Path, about: dict[str, Any]
) -> None:
    path = write_lines(tmp_path / "out" / "out_toy.jsonl", [choice(0, [-1.0, -2.0], acc=1.0)])
    (path.parent / "out.json").write_text(json.dumps({"results": {"toy": {}}, **about}), "utf-8")
    (one,) = open_results(ImportRunRequest(str(path.parent)))
    assert (one.model, one.matched.results.version) == (
        "EleutherAI/pythia-160m",
        about.get("lm_eval_version", ""),
    )
    assert one.finished.relations[0].name == "toy"
