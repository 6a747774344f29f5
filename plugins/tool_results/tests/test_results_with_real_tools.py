"""Runs of the real lm-pub-quiz, imported: the accuracies are theirs."""

import json
from pathlib import Path
from typing import Any

import pytest
from calling import told
from data_files import write_lines

import lama_core as lama
from lama_core.errors import UserError
from lama_core.models.sources.catalog import find_model
from lama_core.models.sources.locations import locate
from lama_core.runs.find import load_run
from lama_core.runs.info import Run

RELATIONS: dict[str, tuple[list[str], list[str], dict[str, int]]] = {
    "capital": (
        ["The capital of [X] is [Y].", "[Y] is the capital of [X]."],
        ["Paris", "Berlin", "New Delhi", "Sydney", "Canberra"],
        {"France": 0, "India": 2, "Australia": 4},
    ),
    "language": (
        ["[X] speaks [Y]."],
        ["French", "Czech", "German"],
        {"Victor Hugo": 0, "Comenius": 1, "Goethe": 2},
    ),
    "continent": (
        ["[X] is in [Y]."],
        ["Europe", "Asia", "Africa"],
        {"Kenya": 2, "Nepal": 1, "Russia": 0},
    ),
}


def write_bear(folder: Path) -> Path:
    folder.mkdir()
    about = {}
    for name, (templates, answers, facts) in RELATIONS.items():
        ids = [f"{name}-{number}" for number in range(len(answers))]
        about[name] = {
            "templates": templates,
            "answer_space_labels": answers,
            "answer_space_ids": ids,
        }
        rows = [
            {
                "sub_id": f"{name}-s{number}",
                "sub_label": subject,
                "sub_aliases": [],
                "obj_id": ids[at],
                "obj_label": answers[at],
                "answer_idx": at,
            }
            for number, (subject, at) in enumerate(facts.items())
        ]
        write_lines(folder / f"{name}.jsonl", rows)
    (folder / "metadata_relations.json").write_text(json.dumps(about))
    return folder


def accuracies(run: Run) -> dict[str, float]:
    facts = run.facts
    right = facts["rank_raw"] == 1
    return right.groupby(facts["relation"].astype(str)).mean().to_dict()


def column(run: Run, name: str) -> dict[str, float]:
    return dict(zip(run.facts["fact_id"], run.facts[name], strict=True))


def flips(first: Run, second: Run) -> int:
    found = told("compare", first.info.id, second.info.id)["over_facts"]
    return found["only_a"] + found["only_b"]


def quiz_accuracies(folder: Path) -> dict[str, float]:
    from lm_pub_quiz import DatasetResults

    results = DatasetResults.from_path(folder)
    return results.get_metrics(["accuracy"], accumulate=False)["accuracy"].to_dict()


def import_one(path: Path, **fields: Any) -> Run:
    (name,) = lama.import_run(str(path), **fields)["run"]
    return load_run(name)


@pytest.mark.usefixtures("home")
def test_lm_pub_quiz_and_our_statements_agree_through_import_and_export(tmp_path: Path) -> None:
    from lm_pub_quiz import Dataset, Evaluator
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    data = write_bear(tmp_path / "own_bear")
    located = locate(find_model("minilm-mlm"))
    assert located is not None
    network = AutoModelForMaskedLM.from_pretrained(located.folder, dtype="float32").eval()
    tokenizer = AutoTokenizer.from_pretrained(located.folder)
    evaluator = Evaluator.from_model(network, model_type="MLM", tokenizer=tokenizer, device="cpu")
    results = evaluator.evaluate_dataset(
        Dataset.from_path(data), template_index=0, save_path=tmp_path / "quiz", batch_size=16
    )
    theirs = results.get_metrics(["accuracy"], accumulate=False)["accuracy"].to_dict()
    assert 0 < sum(theirs.values()) < 3  # neither all wrong nor all right

    lama.import_data(str(data), name="own-bear")
    imported = import_one(tmp_path / "quiz", model="quizzed")
    ours = lama.statements(dataset="own-bear", models=["minilm-mlm"], precision="fp32").runs[0]
    assert accuracies(imported) == theirs == accuracies(ours)
    # Our batches differ from theirs, so that the last digits do, too.
    assert column(imported, "log_prob") == pytest.approx(column(ours, "log_prob"), abs=1e-3)
    assert flips(ours, imported) == 0

    for run in (imported, ours):
        out = tmp_path / f"exported {run.info.kind}"
        lama.export_run(run.info.id, out=out, format="lm-pub-quiz")
        assert quiz_accuracies(out) == theirs
        again = import_one(out, model=f"again {run.info.kind}")
        assert column(again, "rank_raw") == column(run, "rank_raw")
        assert column(again, "log_prob") == pytest.approx(column(run, "log_prob"), abs=1e-4)
        assert flips(run, again) == 0
        table = tmp_path / f"table {run.info.kind}"
        lama.export_run(run.info.id, out=table)
        from_table = import_one(table)
        assert accuracies(from_table) == theirs
    with pytest.raises(UserError, match="exists"):
        lama.export_run(ours.info.id, out=tmp_path / "quiz")
