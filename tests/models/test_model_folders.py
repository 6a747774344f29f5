"""Model folders: what is read, what is refused and with which sentence."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import transformers
from tiny_models import make_model, save_model_folder, tiny_tokenizer

from lama_core.errors import UserError
from lama_core.models import cpu
from lama_core.models.cache import CACHE, check_and_add_model, load_model
from lama_core.models.model_folder import MAX_ADDED, check_files
from lama_core.models.sources.catalog import add_model, added_models, find_model, forget_model
from lama_core.models.sources.locations import folder_digest, locate

pytestmark = pytest.mark.usefixtures("home")


def refused(folder: Path) -> str:
    with pytest.raises(UserError) as caught:
        load_model(str(folder))
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_a_folder_without_a_model_says_what_it_needs(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "config.json and *.safetensors, or a GGUF file" in refused(tmp_path / "empty")


def test_an_encoder_without_a_language_model_head_is_refused(tmp_path: Path) -> None:
    model, tokenizer = make_model("bert-cased")
    model.bert.save_pretrained(tmp_path / "encoder")
    tokenizer.save_pretrained(tmp_path / "encoder")
    message = refused(tmp_path / "encoder")
    assert "not a complete masked language model" in message
    assert "cls.predictions" in message


def test_a_model_that_is_no_language_model_is_refused(tmp_path: Path) -> None:
    config = transformers.ViTConfig(
        hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8
    )
    transformers.ViTModel(config).save_pretrained(tmp_path / "vit")
    tiny_tokenizer("bert-cased").save_pretrained(tmp_path / "vit")
    assert "neither a masked nor a causal nor a seq2seq model" in refused(tmp_path / "vit")


def test_a_masked_model_whose_tokenizer_has_no_mask_is_refused(tmp_path: Path) -> None:
    folder = save_model_folder("bert-cased", tmp_path / "maskless")
    for file in folder.glob("*token*"):
        file.unlink()
    tiny_tokenizer("smollm2").save_pretrained(folder)
    assert "no mask token" in refused(folder)


def test_the_identity_of_a_folder_changes_with_its_weights(tmp_path: Path) -> None:
    one = save_model_folder("bert-cased", tmp_path / "one", seed=1)
    two = save_model_folder("bert-cased", tmp_path / "two", seed=2)
    before = folder_digest(one)
    assert before != folder_digest(two)
    assert before == folder_digest(one)
    (one / "model.safetensors").write_bytes((two / "model.safetensors").read_bytes())
    (one / "README.md").write_text("says nothing of the weights", encoding="utf-8")
    assert folder_digest(one) == folder_digest(two)


def _cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


SPOILT: tuple[tuple[Callable[[Path], object], str], ...] = (
    (lambda folder: (folder / "config.json").write_text("{"), "config.json: Expecting"),
    (lambda folder: (folder / "config.json").write_text("{}"), "has no model_type"),
    (lambda folder: (folder / "config.json").write_text('{"model_type": "vit"}'), "is neither"),
    (
        lambda folder: (folder / "config.json").write_text('{"model_type": "led"}'),
        "are not supported",
    ),
    (lambda folder: (folder / "config.json").unlink(), "Not a model folder"),
    (lambda folder: (folder / "tokenizer.json").unlink(), "has no tokenizer"),
    (
        lambda folder: (folder / "model.safetensors").rename(
            folder / "model-00001-of-00002.safetensors"
        ),
        "is incomplete",
    ),
    (shutil.rmtree, "Neither a model folder"),
    (lambda folder: _cut(folder / "model.safetensors"), "Damaged safetensors file"),
    (lambda folder: (folder / "model.safetensors").write_bytes(b"x" * 99), "Damaged safetensors"),
    (
        lambda folder: (folder / "model.safetensors").rename(folder / "model.bin"),
        "only pickled weights",
    ),
)


@pytest.mark.parametrize(("spoil", "said"), SPOILT)
def test_a_folder_is_refused_when_it_is_added_not_when_it_is_asked(
    tmp_path: Path, spoil: Callable[[Path], object], said: str
) -> None:
    folder = save_model_folder("gpt2", tmp_path / "mine")
    assert check_and_add_model(str(folder)).added
    forget_model(str(folder))
    spoil(folder)
    with pytest.raises(UserError, match=said) as caught:
        check_and_add_model(str(folder))
    assert "\n" not in str(caught.value)
    assert added_models() == ()
    assert re.search(said, refused(folder)), "a folder that is spoilt later is refused as well"


def test_what_only_bears_the_name_of_a_gguf_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.gguf").write_bytes(b"<html>")
    with pytest.raises(UserError, match="Not a GGUF file"):
        check_and_add_model(str(tmp_path / "x.gguf"))


def test_a_folder_is_added_once_and_forgotten(tmp_path: Path) -> None:
    folder = save_model_folder("bert-cased", tmp_path / "mine")
    for _ in range(2):
        entry = add_model(str(folder))
    assert [model.name for model in added_models()] == [entry.name]
    assert locate(find_model(entry.name)) is not None
    forget_model(entry.name)
    assert added_models() == ()
    assert folder.exists()


def test_a_name_that_nearly_fits_is_suggested() -> None:
    with pytest.raises(UserError, match="did you mean 'bert-base-cased'"):
        find_model("bert-base-case")


@pytest.mark.parametrize(
    "name",
    (
        "../etc/passwd",
        "a/../b",
        "https://x/y",
        "a b/c",
        "owner/",
        "",
        *(f"lab/tiny@{one}" for one in ("/x", "../x", "a//b", ".", "a/../b")),
    ),
)
def test_what_is_no_name_at_all_is_refused(name: str) -> None:
    with pytest.raises(UserError):
        find_model(name)


def test_bf16_weights_take_half_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "has_bf16", lambda: True)
    folder = save_model_folder("gpt2", tmp_path / "gpt2")
    wide, narrow = (load_model(str(folder), precision=name) for name in ("fp32", "bf16"))
    assert narrow.n_bytes == wide.n_bytes / 2
    assert next(narrow.model.parameters()).dtype == torch.bfloat16
    assert {held.precision for held in CACHE.held() if held.name == wide.name} == {"fp32", "bf16"}
    for precision in ("fp32", "bf16"):
        CACHE.drop(wide.name, precision)
    assert wide.name not in {held.name for held in CACHE.held()}


def test_a_tokenizer_with_millions_of_added_words_is_refused_at_once(tmp_path: Path) -> None:
    tokenizer = tmp_path / "tokenizer.json"
    tokenizer.write_text(json.dumps({"added_tokens": [{"id": 1}] * (MAX_ADDED + 1)}))
    with pytest.raises(UserError, match="adds 100,001 words; the limit is 100,000"):
        check_files(tmp_path)
    for text in ('{"added_tokens": []}', "{", "[1]", '{"added_tokens": 5}'):
        tokenizer.write_text(text)
        check_files(tmp_path)


def test_a_token_with_an_absurd_number_is_refused_before_it_takes_memory(tmp_path: Path) -> None:
    tokenizer = tmp_path / "tokenizer.json"
    tokenizer.write_text(json.dumps({"model": {"vocab": {"a": 0, "b": 2**31}}}))
    with pytest.raises(UserError, match="numbers a token 2,147,483,648; the limit is 10,000,000"):
        check_files(tmp_path)
    for model in ({"vocab": {"a": 0}}, {"vocab": [["a", -1.5]]}, {"vocab": {"a": 1.5}}, 7):
        tokenizer.write_text(json.dumps({"model": model}))
        check_files(tmp_path)
