"""The command: from text to a model that transformers reads, and its complaints."""

import io
import json
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from lama_core.metrics.word_counts import load_corpus_counts
from tools.training.__main__ import train

OPTIONS = ("--steps", "30", "--batch-tokens", "128", "--max-length", "24", "--threads", "1",
           "--precision", "fp32", "--learning-rate", "0.005")  # fmt: skip


def invoke(*arguments: str) -> str:
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
