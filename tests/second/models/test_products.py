"""oneDNN's products equal MKL's up to rounding, for each kind of linear layer."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_models import open_family

from lama_core.models.hf import products
from lama_core.models.registry import round_weights

Plain = Callable[[str], Any]
MANY = [[7 + (31 * row + 5 * at) % 80 for at in range(9)] for row in range(8)]  # 72 tokens


@pytest.fixture(params=["oneDNN", "MKL"])
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Use one of the two libraries for large products, whatever the CPU is."""
    if request.param == "oneDNN" and not torch.backends.mkldnn.is_available():
        pytest.skip("this build of torch has no oneDNN")
    monkeypatch.setattr(products, "_is_available", lambda: request.param == "oneDNN")
    return str(request.param)


@pytest.mark.parametrize("family", ["bert-uncased", "gpt2", "llama", "smollm2"])
def test_logits_are_those_of_a_plain_pass(
    family: str, library: str, tmp_path: Path, plain_model: Plain
) -> None:
    model = open_family(family, tmp_path)
    n_weights = sum(p.nbytes for p in model.model.parameters())
    n_weights += sum(b.nbytes for b in model.model.buffers())
    body, plain = model.model, plain_model(family)[0]
    with torch.inference_mode():
        found, wanted = (one(input_ids=torch.tensor(MANY))[0] for one in (body, plain))
    # Logits up to 9. Another CPU moves each product by 1e-6, and they by at most 1.3e-4 so far; a
    # product with other weights moves them by about 1.
    torch.testing.assert_close(found, wanted, atol=4e-4, rtol=1e-4)
    packed = [module for module in body.modules() if "packed" in vars(module)]
    assert bool(packed) == (library == "oneDNN")
    assert model.n_bytes - n_weights == sum(module.weight.nbytes for module in packed)


def test_new_weights_are_copied_again(library: str, tmp_path: Path) -> None:
    model = open_family("bert-uncased", tmp_path)

    def ask(n_rows: int) -> torch.Tensor:
        with torch.inference_mode():
            return model.model(input_ids=torch.tensor(MANY[:n_rows]))[0][:1]

    before = ask(8)
    round_weights(model)
    after = ask(8)
    assert not torch.allclose(before, after, atol=1e-5)
    torch.testing.assert_close(after, ask(1), atol=1e-4, rtol=1e-4)
