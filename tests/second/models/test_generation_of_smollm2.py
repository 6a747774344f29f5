"""SmolLM2 generates the tokens that `transformers.generate` does."""

import pytest
from first.models.test_generation import N, alone, check_text

from lama_core.models.cache import load_model
from lama_core.models.hf.generation import generate
from lama_core.models.sources.catalog import find_model
from lama_core.models.sources.locations import locate
from tools.bench.generation import chats


@pytest.mark.usefixtures("users_models")
@pytest.mark.parametrize("shots", (0, 3))
def test_smollm2s_tokens_are_those_of_transformers(shots: int) -> None:
    located = locate(find_model("smollm2-135m"))
    if located is None:
        pytest.skip("smollm2-135m is not here")
    folder = located.folder
    model = load_model("smollm2-135m", precision="fp32")
    prompts = chats(24, shots)[::4]  # of two relations
    for prompt, text in zip(prompts, generate(model, prompts, N), strict=True):
        check_text(text, *alone(model, prompt, folder), atol=1e-3)
