"""BERT read without transformers gives what transformers gives, and leaves it the odd ones."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_models import open_family

from lama_core.errors import UserError
from lama_core.models.hf.bert import BertMaskedLM, read_bert
from lama_core.models.registry import open_model
from lama_core.models.sources.catalog import find_model
from lama_core.models.sources.locations import LocatedModel, fetch

TEXTS = (
    "Tokyo is the capital of [MASK].",
    "[MASK] was a [MASK] who developed the theory of relativity, in Zürich!",
    "[MASK]",
)


@pytest.fixture(scope="module")
def embedded() -> tuple[Any, Any, Any, Any]:
    """The embedded model and its tokenizer: as we read them, and as transformers does."""
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    folder = fetch(find_model("minilm-mlm")).folder
    read = read_bert(folder, torch.float32)
    assert read is not None
    plain = AutoModelForMaskedLM.from_pretrained(folder, dtype=torch.float32).eval()
    return (*read, plain, AutoTokenizer.from_pretrained(folder))


def test_tokens_and_logits_of_padded_texts_equal_those_of_transformers(
    embedded: tuple[Any, Any, Any, Any],
) -> None:
    ours, our_tokenizer, plain, tokenizer = embedded
    batch = tokenizer(list(TEXTS), return_tensors="pt", padding=True)
    unpadded = [ids[mask == 1].tolist() for ids, mask in zip(*_two(batch), strict=True)]
    assert our_tokenizer(list(TEXTS))["input_ids"] == unpadded
    with torch.inference_mode():
        expected = plain(**batch).logits
        got = ours(**{name: batch[name] for name in ("input_ids", "attention_mask")}).logits
    seen = batch["attention_mask"] == 1
    assert torch.allclose(got[seen], expected[seen], atol=1e-4)


def _two(batch: Any) -> tuple[torch.Tensor, torch.Tensor]:
    return batch["input_ids"], batch["attention_mask"]


def test_every_layers_states_equal_those_of_transformers(
    embedded: tuple[Any, Any, Any, Any],
) -> None:
    ours, _, plain, tokenizer = embedded
    ids = tokenizer(TEXTS[1], return_tensors="pt")["input_ids"]
    with torch.inference_mode():
        expected = plain.bert(input_ids=ids, output_hidden_states=True).hidden_states
        got = ours.base_model(input_ids=ids, output_hidden_states=True).hidden_states
    assert len(got) == len(expected)
    for mine, theirs in zip(got, expected, strict=True):
        assert torch.allclose(mine, theirs, atol=1e-4)


def test_as_many_weights_as_transformers_counts(embedded: tuple[Any, Any, Any, Any]) -> None:
    ours, _, plain, _ = embedded
    assert sum(p.numel() for p in ours.parameters()) == plain.num_parameters()


@pytest.mark.parametrize("split", (False, True))
def test_offsets_and_control_tokens_as_in_transformers(
    embedded: tuple[Any, Any, Any, Any], *, split: bool
) -> None:
    _, ours, _, theirs = embedded
    options = {
        "add_special_tokens": False,
        "split_special_tokens": split,
        "return_offsets_mapping": True,
    }
    text = "Ann [SEP] wrote: ’naïve’ 東京 [MASK]"
    mine, other = ours(text, **options), theirs(text, **options)
    assert mine["input_ids"] == list(other["input_ids"])
    assert [tuple(span) for span in mine["offset_mapping"]] == list(other["offset_mapping"])
    assert (ours.mask_token_id in mine["input_ids"]) is not split


def test_the_first_answer_imports_no_transformers() -> None:
    code = (
        "import sys; from lama_core.cli import call; "
        f"call('cloze', {TEXTS[0]!r}, '--model', 'minilm-mlm'); "
        "print(sorted({'transformers', 'pandas'} & {name.split('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True
    )
    assert "japan" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A tiny BERT's folder, to be spoilt."""
    open_family("bert-uncased", tmp_path)
    found = next(path.parent for path in tmp_path.rglob("config.json"))
    assert read_bert(found, torch.float32) is not None
    return found


def _change(path: Path, **values: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


@pytest.mark.parametrize(
    "spoil",
    (
        lambda folder: _change(folder / "config.json", hidden_act="relu"),
        lambda folder: _change(folder / "config.json", model_type="electra"),
        lambda folder: _change(folder / "config.json", tie_word_embeddings=False),
        lambda folder: _change(folder / "config.json", num_hidden_layers=1),
        lambda folder: _change(folder / "tokenizer_config.json", do_lower_case=False),
        lambda folder: _change(folder / "tokenizer_config.json", tokenizer_class="Other"),
        lambda folder: (folder / "tokenizer.json").unlink(),
        lambda folder: (folder / "model.safetensors").write_bytes(b"damaged"),
    ),
)
def test_what_is_out_of_the_ordinary_is_left_to_transformers(
    folder: Path, spoil: Callable[[Path], None]
) -> None:
    spoil(folder)
    assert read_bert(folder, torch.float32) is None


def test_missing_weights_are_named(folder: Path) -> None:
    path = folder / "model.safetensors"
    weights = load_file(path)
    del weights["bert.encoder.layer.0.attention.self.query.weight"]
    save_file(weights, path, metadata={"format": "pt"})
    with pytest.raises(UserError, match="weights are missing, such as"):
        open_model("tiny", LocatedModel(folder, "tiny"), "masked", "fp32")


def test_early_names_and_unused_weights_are_read(folder: Path, tmp_path: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    early = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): value
        for name, value in weights.items()
    }
    early["bert.pooler.dense.bias"] = torch.zeros(4)
    early["cls.seq_relationship.bias"] = torch.zeros(2)
    other = Path(shutil.copytree(folder, tmp_path / "early"))
    save_file(early, other / "model.safetensors", metadata={"format": "pt"})
    one, two = (_model(path) for path in (folder, other))
    for mine, theirs in zip(one.state_dict().values(), two.state_dict().values(), strict=True):
        assert torch.equal(mine, theirs)


def _model(folder: Path) -> BertMaskedLM:
    read = read_bert(folder, torch.float32)
    assert read is not None
    return read[0]
