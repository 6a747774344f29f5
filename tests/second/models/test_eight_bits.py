"""Weights of 8 bits stay as their folder has them, and answer as their own library does.

torchao is no requirement of the tests: where it is installed, transformers imports it with every
model, which takes as long as PyTorch's own import. Its tests run where it is (0.18.0 was tried).
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_models import save_model_folder

from lama_core.errors import UserError
from lama_core.models.cache import CACHE, load_model

TEXT = "The capital of France is Paris."


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A model as it is, and with the weights of its layers in 8 bits."""
    pytest.importorskip("torchao", reason="no torchao: pip install --no-deps torchao")
    from torchao.quantization import Int8WeightOnlyConfig
    from transformers import AutoModelForCausalLM, AutoTokenizer, TorchAoConfig

    plain = save_model_folder("smollm2", tmp_path_factory.mktemp("plain") / "smollm2")
    narrow = plain.parent / "narrow"
    model = AutoModelForCausalLM.from_pretrained(
        plain, quantization_config=TorchAoConfig(Int8WeightOnlyConfig()), device_map={"": "cpu"}
    )
    model.save_pretrained(narrow)
    AutoTokenizer.from_pretrained(plain).save_pretrained(narrow)
    return plain, narrow


def plain_log_probs(folder: Path, model: Any) -> torch.Tensor:
    """Log-probabilities of the text's tokens but the first, by transformers alone."""
    from transformers import AutoModelForCausalLM

    theirs = AutoModelForCausalLM.from_pretrained(folder, device_map={"": "cpu"}).eval()
    ids = torch.tensor([model.framed(TEXT)])
    with torch.inference_mode():
        logits = theirs(input_ids=ids).logits[0, :-1].float()
    return logits.log_softmax(1).gather(1, ids[0, 1:, None])[:, 0]


def test_eight_bits_stay_and_answer_as_the_library_that_made_them(
    folders: tuple[Path, Path],
) -> None:
    plain, narrow = (load_model(str(folder)) for folder in folders)
    assert narrow.n_bytes < 0.75 * plain.n_bytes
    assert "8 bits" in narrow.notes[0] and not plain.notes
    found = narrow.token_log_probs([TEXT])[0].log_probs[1:]
    np.testing.assert_allclose(found, plain_log_probs(folders[1], narrow), atol=1e-4)
    rounded = np.abs(found - plain.token_log_probs([TEXT])[0].log_probs[1:]).max()
    assert 1e-4 < rounded < 0.5
    for model in (plain, narrow):
        CACHE.drop(model.name, "fp32")


def test_without_the_library_a_sentence_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = save_model_folder("smollm2", tmp_path / "narrow")
    config = json.loads((folder / "config.json").read_text("utf-8"))
    how = {"quant_method": "torchao", "quant_type": {"default": {"_type": "Int8WeightOnlyConfig"}}}
    (folder / "config.json").write_text(json.dumps(config | {"quantization_config": how}), "utf-8")
    monkeypatch.setattr("lama_core.models.model_folder.find_spec", lambda _: None)
    with pytest.raises(UserError, match="pip install torchao"):
        load_model(str(folder))
