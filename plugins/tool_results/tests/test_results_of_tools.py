"""Results of other tools are read as the tools wrote them; damaged files get one clear sentence.

The files in `results_elsewhere` were written by lm-pub-quiz 0.3.3 and lm-evaluation-harness 0.4.13
on our own facts, with MiniLM-MLM, SmolLM2 and a tiny GPT-2:

    evaluator.evaluate_dataset(dataset, template_index=0, save_path=..., metric=["accuracy"])
    lm_eval --model hf --model_args pretrained=FOLDER,dtype=float32 --include_path TASKS \\
        --tasks capitals_mc,own_mc,capitals_gen --device cpu --output_path OUT --log_samples

Fields about the machine were removed from the harness' results files.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from data_files import write_lines

from lama_core.errors import UserError
from lama_core.progress import ignore
from lama_core.runs.importers.results import ImportedResults, ReadOptions
from lama_tool_results.formats import find_format, recognize

FILES = Path(__file__).parent / "results_elsewhere"
QUIZ, HARNESS = FILES / "lm_pub_quiz_sum", FILES / "lm_evaluation_harness"
OPTIPROMPT = {
    "uuid": "1",
    "relation": "P36",
    "sub_label": "France",
    "obj_label": "Paris",
    "masked_sentences": ["The capital of France is [MASK] ."],
    "topk": [{"token": "ĠLyon", "log_prob": -0.5}, {"token": "ĠParis", "log_prob": -1.5}],
}
LAMA = {
    "sample": {"predicate_id": "P36", "sub_label": "France", "obj_label": "Paris"},
    "masked_topk": {
        "topk": [{"i": 0, "token_idx": 5, "log_prob": -0.5, "token_word_form": "Lyon"}],
        "MRR": 0.25,
        "P_AT_1": 0.0,
        "PERPLEXITY": -3.5,
    },
}


def read(path: Path, name: str = "") -> list[ImportedResults]:
    form = find_format(name) if name else recognize(path)
    assert form is not None
    return form.read(path, ReadOptions(), ignore)


@pytest.mark.parametrize("name", ["lm_pub_quiz_sum", "lm_pub_quiz_raw", "lm_pub_quiz_parquet"])
def test_results_of_lm_pub_quiz_have_its_answers(name: str) -> None:
    stored = json.loads((FILES / "lm_pub_quiz_sum" / "metadata_results.json").read_text())
    (results,) = read(FILES / name)
    about = (results.tool, results.version, results.dataset)
    assert about == ("lm-pub-quiz", "0.3.3", "own")
    assert results.dropped == ()
    assert results.options == {
        relation: tuple(one["answer_space_labels"]) for relation, one in stored.items()
    }
    first = results.rows.to_pylist()[0]
    assert (first["subject"], first["object"]) == ("France", "Paris")
    assert first["query"] == "The capital of France is [MASK]."


def test_scores_of_tokens_are_summed_as_lm_pub_quiz_sums_them() -> None:
    (tokens,), (sums,) = read(FILES / "lm_pub_quiz_raw"), read(FILES / "lm_pub_quiz_sum")
    assert tokens.templates["language"] == ("[X] speaks [Y].", "[X] is written in [Y].")
    by_query = {row["query"]: row["all_scores"] for row in tokens.rows.to_pylist()}
    for row in sums.rows.to_pylist():
        assert by_query[row["query"]] == pytest.approx(row["all_scores"], abs=1e-6)


def test_the_harness_ranks_the_choices_of_each_document() -> None:
    results = next(one for one in read(HARNESS) if one.model == "smollm2-135m")
    rows = results.rows.filter(pc.equal(results.rows["relation"], "own_mc")).to_pylist()
    spain = rows[2]
    assert spain["subject"] == "What is the capital of Spain?"
    assert spain["object"] == "Madrid"
    assert spain["predictions"] == ["Madrid", "Bilbao", "Vigo", "Seville"]
    assert spain["log_prob"] == pytest.approx(-8.00185489654541)


def test_predictions_of_optiprompt_and_lama_have_ranks(tmp_path: Path) -> None:
    other = OPTIPROMPT | {"sub_label": "Chad", "obj_label": "N'Djamena"}
    (results,) = read(write_lines(tmp_path / "P36_predictions.jsonl", [OPTIPROMPT, other]))
    first, second = results.rows.to_pylist()
    assert (first["rank"], first["predictions"]) == (2, ["Lyon", "Paris"])
    assert (second["rank"], second["correct"]) == (None, False)
    for file in (tmp_path / "answers.jsonl", tmp_path / "list.json"):
        value: Any = LAMA if file.suffix == ".jsonl" else {"list_of_results": [LAMA]}
        (results,) = read(write_lines(file, [value]))
        (row,) = results.rows.to_pylist()
        assert (row["relation"], row["rank"], row["log_prob"]) == ("P36", 4, -3.5)


# Damage: a folder or file to start from, what is changed, and a part of what is said.
Change = Callable[[Path], None]


def edit(name: str, find: str, replace: str) -> Change:
    def change(path: Path) -> None:
        (file,) = path.rglob(name) if path.is_dir() else (path,)
        text = file.read_text(encoding="utf-8")
        assert find in text
        file.write_text(text.replace(find, replace), encoding="utf-8")

    return change


def metadata(**fields: object) -> Change:
    def change(path: Path) -> None:
        file = path / "metadata_results.json"
        found = json.loads(file.read_text())
        found["capital"] |= fields
        file.write_text(json.dumps(found))

    return change


def sample(**fields: object) -> Change:
    def change(path: Path) -> None:
        for file in path.rglob("samples_own_mc*"):
            first, *rest = file.read_text().splitlines()
            file.write_text("\n".join([json.dumps(json.loads(first) | fields), *rest]))

    return change


def outside(path: Path) -> None:
    """A relation's name leads out of the folder."""
    shutil.copy(path / "capital_results.jsonl", path.parent / "secret_results.jsonl")
    edit("metadata_results.json", '"capital"', '"../secret"')(path)


def repeated(path: Path) -> None:
    for file in path.rglob("samples_own_mc*"):
        file.write_text(file.read_text() + file.read_text().splitlines()[0])


TABLE = "capital_results.jsonl"
DAMAGED: dict[str, tuple[str, Change, str]] = {
    "quiz: a score is NaN": ("quiz", edit(TABLE, "-6.1688271326", "NaN"), "isn't a number"),
    "quiz: a score is missing": ("quiz", edit(TABLE, "-6.1688271326,", ""), "as many scores"),
    "quiz: template": (
        "quiz",
        edit(TABLE, 'template_index":0', 'template_index":7'),
        "template_index",
    ),
    "optiprompt: rank 0": ("optiprompt", edit("", '"uuid"', '"rank":0,"uuid"'), "rank"),
    "quiz: wrong index": ("quiz", edit(TABLE, '"answer_idx":0', '"answer_idx":9'), "answer_idx"),
    "quiz: empty subject": ("quiz", edit(TABLE, '"France"', '" "'), "no subject"),
    "quiz: damaged Parquet": (
        "quiz",
        lambda path: (path / TABLE).rename(path / "capital_results.parquet") and None,
        "damaged",
    ),
    "quiz: name leads out": ("quiz", outside, "no table"),
    "quiz: no answers": ("quiz", metadata(answer_space_labels=[]), "no list of answers"),
    "quiz: 20,000 answers": ("quiz", metadata(answer_space_labels=["a"] * 20_000), "more than"),
    "harness: no verdict": ("harness", sample(target="Rome"), "isn't one of the choices"),
    "harness: NaN": ("harness", sample(filtered_resps=[["nan", "False"]] * 3), "log-likelihood"),
    "harness: no responses": ("harness", sample(filtered_resps=[]), "no filtered_resps"),
    "harness: same choices": (
        "harness",
        sample(arguments=[["Q", " A"]] * 3),
        "two choices are the same",
    ),
    "harness: a document twice": ("harness", repeated, "the document again"),
    "harness: no samples": (
        "harness",
        lambda path: [one.unlink() for one in path.rglob("samples_*")] and None,
        "--log_samples",
    ),
    "optiprompt: no topk": (
        "optiprompt",
        edit("", '"topk": [{', '"topk":[],"x":[{'),
        "predictions",
    ),
    "optiprompt: positive": ("optiprompt", edit("", "-0.5", "5.0"), "finite log-prob"),
    "optiprompt: order": ("optiprompt", edit("", "-0.5", "-9.5"), "order"),
    "lama: MRR above 1": ("lama", edit("", '"MRR": 0.25', '"MRR": 7'), "MRR"),
    "pickle": ("pickle", lambda path: None, "is a pickle"),
    "only accuracies": ("accuracies", lambda path: None, "only the precision"),
}


def start(kind: str, folder: Path) -> tuple[Path, str]:
    """A copy of good results, and the name of their format."""
    folder.mkdir(exist_ok=True)
    if kind == "quiz":
        return Path(shutil.copytree(QUIZ, folder / "quiz")), "lm-pub-quiz"
    if kind == "harness":
        copied = shutil.copytree(HARNESS / "tiny-gpt2", folder / "harness")
        return Path(copied), "lm-evaluation-harness"
    if kind == "pickle":
        (folder / "args.json").write_text("{}")
        (folder / "result.pkl").write_bytes(b"\x80\x04")
        return folder, "lama"
    if kind == "accuracies":
        (folder / "last_results.csv").write_text("==bert==\nP36,62.1\n")
        return folder / "last_results.csv", "lama"
    line = OPTIPROMPT if kind == "optiprompt" else LAMA
    return write_lines(folder / "answers.jsonl", [line]), "lama"


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_results_are_dropped_or_refused_with_a_reason(case: str, tmp_path: Path) -> None:
    kind, change, said = DAMAGED[case]
    path, name = start(kind, tmp_path)
    change(path)
    recognize(path)  # doesn't raise
    try:
        results = read(path, name)
    except UserError as error:
        assert said in str(error) and "\n" not in str(error)
        return
    assert any(said in one.reason for one in results[0].dropped)


def test_equal_documents_of_the_harness_count_one_by_one(tmp_path: Path) -> None:
    path, _ = start("harness", tmp_path)
    for file in path.rglob("samples_own_mc*"):
        first = json.loads(file.read_text().splitlines()[0])
        write_lines(file, [first, first | {"doc_id": 1}])
    (results,) = read(path)
    rows = results.rows.filter(pc.equal(results.rows["relation"], "own_mc")).to_pylist()
    question = "What is the capital of France?"
    assert [row["subject"] for row in rows] == [question, f"{question} (document 1)"]


def test_answers_that_are_twice_in_a_list_still_have_ranks(tmp_path: Path) -> None:
    path, _ = start("quiz", tmp_path)
    metadata(answer_space_labels=["Paris", "Berlin", "Berlin", "New Delhi"])(path)
    (results,) = read(path)
    assert results.options == {}
    assert results.rows.to_pylist()[0]["rank"] == 1
