"""The command: from text to a model that transformers reads, with the options of the cards."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from tiny_encoder import one_source

from lama_core.metrics.word_counts import load_corpus_counts
from lama_core.paths import ASSETS
from tools.training.__main__ import main


def test_the_recipe_writes_a_model_that_loads_without_code_of_ours(
    tiny_encoder: Path, tmp_path: Path
) -> None:
    import torch
    from safetensors.torch import load_file
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    from tools.training.recipe import run_recipe
    from tools.training.train import Settings

    folder, history = tmp_path / "model", tmp_path / "history"
    scores = run_recipe(
        Settings(steps=3, tokens_per_batch=128, threads=1),
        encoder=tiny_encoder,
        sources=(one_source(),),
        folder=tmp_path / "run",
        out=folder,
        history=history,
    )
    assert scores.keys() == {"text", "all"} and scores["text"] == scores["all"]
    assert {path.name for path in history.iterdir()} == {"step0", "step1", "step2", "step3"}
    model = AutoModelForMaskedLM.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    logits = model(**tokenizer("The city of [MASK].", return_tensors="pt")).logits
    assert logits.shape[-1] == len(tokenizer)
    assert model.dtype == torch.float32
    stored = load_file(folder / "model.safetensors")
    assert {value.dtype for value in stored.values()} == {torch.float16}
    assert load_corpus_counts(folder).words["paris"] > 0


@pytest.mark.parametrize(("model", "n_sources"), (("minilm-mlm", 22), ("minilm-mlm-twin", 6)))
def test_the_commands_of_the_cards_are_understood(
    model: str, n_sources: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[dict[str, Any]] = []

    def run(settings: object, **options: Any) -> dict[str, object]:
        called.append(options | {"settings": settings})
        return {}

    monkeypatch.setattr("tools.training.recipe.run_recipe", run)
    card = (ASSETS / "models" / model / "README.md").read_text(encoding="utf-8")
    without = "".join(re.findall(r'WITHOUT="(.*)"', card))
    for command in re.findall(r"^ +python -m tools\.training (.*)$", card, re.M):
        main(shlex.split(command.replace("$WITHOUT", without)))
    assert [(one["settings"].steps, one["settings"].seed) for one in called] == [
        (10240, 0),
        (2560, 1),
    ]
    assert {len(one["sources"]) for one in called} == {n_sources}
