"""The command: from text to a model that transformers reads, and its complaints."""

import io
import json
import shutil
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from project_files import ROOT

from lama_core.errors import UserError
from lama_core.metrics.word_counts import load_corpus_counts
from tools.training.__main__ import train

OPTIONS = ("--steps", "30", "--batch-tokens", "128", "--max-length", "24", "--threads", "1",
           "--precision", "fp32", "--learning-rate", "0.005")  # fmt: skip


def invoke(*arguments: str) -> str:
    """What the command prints; a user's mistake is raised as it is."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        train(arguments)
    return printed.getvalue()


@pytest.fixture(scope="module")
def trained(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Folder of a model that the command made, and the JSON it printed."""
    from tiny_encoder import write_text

    folder = tmp_path_factory.mktemp("command")
    text = write_text(folder / "text.txt")
    paths = ("--run", str(folder / "run"), "--out", str(folder / "model"))
    printed = invoke(
        "--encoder", str(tiny_encoder), "--corpus", str(text), *paths, "--json", *OPTIONS
    )
    return folder / "model", printed


def test_the_model_loads_without_code_of_ours(trained: tuple[Path, str]) -> None:
    import torch
    from safetensors.torch import load_file
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    folder, _ = trained
    model = AutoModelForMaskedLM.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    encoded = tokenizer("The city of [MASK].", return_tensors="pt")
    logits = model(**encoded).logits
    assert logits.shape[-1] == len(tokenizer)
    assert model.dtype == torch.float32
    stored = load_file(folder / "model.safetensors")
    assert {value.dtype for value in stored.values()} == {torch.float16}


def test_the_result_says_what_was_measured(trained: tuple[Path, str]) -> None:
    folder, printed = trained
    result = json.loads(printed)
    assert result["settings"]["steps"] == 30
    assert 0 <= result["held_out"]["all"]["accuracy"] <= 1
    assert result["folder"] == str(folder)
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "30 steps" in card
    assert "Held-out text" in card
    assert load_corpus_counts(folder).words["paris"] > 0


def test_what_was_measured_is_the_exported_model(trained: tuple[Path, str]) -> None:
    from tools.training.corpus.build import open_corpus
    from tools.training.evaluate import evaluate_files
    from tools.training.modelling import load_encoder, load_tokenizer

    folder, printed = trained
    corpus = open_corpus(folder.parent / "run" / "corpus")
    again = evaluate_files(
        load_encoder(folder), load_tokenizer(folder), corpus.held_out, max_length=24
    )
    stated = json.loads(printed)["held_out"]["all"]
    assert again["all"].accuracy == stated["accuracy"]
    assert again["all"].loss == pytest.approx(stated["loss"], abs=1e-5)


def test_a_finished_run_is_not_trained_again(
    trained: tuple[Path, str], tiny_encoder: Path, tmp_path: Path
) -> None:
    run = trained[0].parent / "run"
    log = (run / "log.jsonl").read_text(encoding="utf-8")
    text = trained[0].parent / "text.txt"
    again = invoke("--encoder", str(tiny_encoder), "--corpus", str(text), "--run", str(run),
                   "--out", str(tmp_path / "model"), "--json", *OPTIONS)  # fmt: skip
    assert (run / "log.jsonl").read_text(encoding="utf-8") == log
    assert json.loads(again)["held_out"] == json.loads(trained[1])["held_out"]


def test_an_encoder_that_is_none_is_named(text_file: Path, tmp_path: Path) -> None:
    common = ("--corpus", str(text_file), "--run", str(tmp_path / "run"), "--out",
              str(tmp_path / "model"), *OPTIONS)  # fmt: skip
    with pytest.raises(UserError, match="no such encoder folder"):
        invoke("--encoder", str(tmp_path / "missing"), *common)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(UserError, match=r"config\.json is missing"):
        invoke("--encoder", str(empty), *common)
    (empty / "config.json").write_text("{}", encoding="utf-8")
    with pytest.raises(UserError, match=str(empty)):
        invoke("--encoder", str(empty), *common)


def test_an_encoder_with_damaged_weights_is_named(
    tiny_encoder: Path, text_file: Path, tmp_path: Path
) -> None:
    damaged = tmp_path / "damaged"
    shutil.copytree(tiny_encoder, damaged)
    (damaged / "model.safetensors").write_bytes(b"\0" * 100)
    with pytest.raises(UserError, match="no readable encoder"):
        invoke("--encoder", str(damaged), "--corpus", str(text_file), "--run",
               str(tmp_path / "run"), "--out", str(tmp_path / "model"), *OPTIONS)  # fmt: skip


def test_precision_and_facts_are_checked_before_anything_is_trained(tmp_path: Path) -> None:
    out = ("--out", str(tmp_path / "model"))
    with pytest.raises(SystemExit) as end:
        invoke(*out, "--precision", "fp8")
    assert end.value.code == 2
    with pytest.raises(UserError, match="--steps must be at least 1, not 0"):
        invoke(*out, "--steps", "0")
    with pytest.raises(UserError, match="--max-length must be at most 512, not 513"):
        invoke(*out, "--max-length", "513")
    with pytest.raises(UserError, match=r"relations\.jsonl"):
        invoke("--out", str(tmp_path / "model"), "--facts", str(tmp_path))


def test_a_mistake_is_one_line_and_help_has_an_example(tmp_path: Path) -> None:
    def start(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tools.training", *words]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)

    shown = start("--help")
    assert shown.returncode == 0 and "Example: python -m tools.training" in shown.stdout
    wrong = start("--out", str(tmp_path / "model"), "--steps", "0")
    assert (wrong.returncode, wrong.stderr) == (2, "Error: --steps must be at least 1, not 0\n")
