"""The plug-in, checked as the project checks its own queries, views and formats."""

import json
from pathlib import Path

import pytest
from lama_example.lengths import example_lengths
from lama_example.surprise import example_surprise

import lama_core as lama
from lama_core.errors import UserError
from lama_core.testing import check_format, check_query, check_view


def test_query() -> None:
    answer = check_query(example_surprise, text="Oslo is in ___.", words=("Norway", "Peru"))
    norway, peru = (row.bits for row in answer.models[0].words)
    assert norway < peru


def test_view() -> None:
    shown = check_view(example_lengths, runs=("starter-minilm_mlm-manual",), k=5)
    assert list(shown.frame["words"]) == ["1", "2", "3", "4+"]


def test_format(tmp_path: Path) -> None:
    file = tmp_path / "capitals.triples"
    file.write_text("Norway | has the capital | Oslo\nno fact\nPeru | has the capital | Lima\n")
    data = check_format("example", file, facts=2)
    assert data.report.dropped


def test_backend(tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    words = ["<eos>", "Oslo", "Lima", "is", "in", "Norway", "Peru", "."]
    tokenizer = Tokenizer(models.WordLevel({word: at for at, word in enumerate(words)}, "<eos>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<eos>").save_pretrained(tmp_path)
    config = GPT2Config(vocab_size=len(words), n_positions=32, n_embd=8, n_layer=1, n_head=2)
    GPT2LMHeadModel(config).save_pretrained(tmp_path)
    content = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(content | {"model_type": "example-gpt2"}))
    frame = lama.fill("Oslo is in ___.", models=[str(tmp_path)], candidates="full")
    assert len(frame) == 5


def test_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "http://127.0.0.1:9")
    with pytest.raises(UserError, match=r"127\.0\.0\.1:9"):
        lama.fill("Oslo is in ___.", models=["ollama:llama3.2"])
