"""MiniLM-MLM and its twin, read without transformers, score as in transformers."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from lama_core.models.hf.bert import OWN_NAMES, BertMaskedLM
from lama_core.models.hf.layers import read_network
from lama_core.models.model_folder import folder_digest
from lama_core.models.registry import open_model
from lama_core.models.sources.catalog import find_model
from lama_core.models.sources.locations import LocatedModel, fetch

TEXTS = (
    "Tokyo is the capital of [MASK].",
    "[MASK] was a [MASK] who developed the theory of relativity, in Zürich!",
    "[MASK]",
)


@pytest.fixture(scope="module", params=("minilm-mlm", "minilm-mlm-twin"))
def embedded(request: pytest.FixtureRequest) -> tuple[Any, Any, Any, Any]:
    """An embedded model and its tokenizer: as we read them, and as transformers does."""
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    folder = fetch(find_model(request.param)).folder
    read = read_network(BertMaskedLM, folder, torch.float32, own_names=OWN_NAMES, copy=True)
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


def test_only_a_folder_with_a_known_digest_is_read_without_transformers(tmp_path: Path) -> None:
    located = fetch(find_model("minilm-mlm"))
    folder = Path(shutil.copytree(located.folder, tmp_path / "copy"))

    def opened() -> Any:
        return open_model("it", LocatedModel(folder, folder_digest(folder)), "masked", "fp32").model

    assert isinstance(opened(), BertMaskedLM)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(config | {"hidden_act": "relu"}))
    assert not isinstance(opened(), BertMaskedLM)
