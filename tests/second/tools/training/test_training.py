"""Training: it learns, it repeats itself, and a stopped run goes on as if it had not stopped."""

from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_encoder import COUNTRIES, one_source

from lama_core.errors import UserError
from tools.training.evaluate import UNIFORM
from tools.training.history import count_readings
from tools.training.masking import CONTENT, STARTS_WORD, MaskingPlan, draw_mask
from tools.training.modelling import hidden_logits, load_encoder, load_tokenizer
from tools.training.recipe import Ready, prepare
from tools.training.train import Settings, train

SETTINGS = Settings(
    steps=200,
    tokens_per_batch=128,
    max_length=24,
    learning_rate=5e-3,
    head_learning_rate=5e-3,
    warmup_steps=10,
    decay_steps=50,
    threads=1,
)


def prepared(settings: Settings, encoder: Path, folder: Path) -> Ready:
    """Prepare training in `folder`."""
    return prepare(settings, encoder=encoder, sources=(one_source(),), folder=folder)


def run(
    settings: Settings,
    encoder: Path,
    folder: Path,
    stop_after: int | None = None,
    on_milestone: Callable[[int], None] = lambda step: None,
) -> tuple[list[float], Any]:
    """Prepare and train in `folder`; the losses, and the model."""
    ready = prepared(settings, encoder, folder)
    losses = train(
        ready.model,
        ready.sampler,
        settings,
        mask_id=ready.tokenizer.mask_token_id,
        folder=folder,
        corpus_digest=ready.corpus.digest,
        stop_after=stop_after,
        on_milestone=on_milestone,
    )
    return losses, ready.model


@pytest.fixture(scope="module")
def whole_run(
    tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[list[float], Any]:
    """200 steps from scratch, without a stop."""
    return run(SETTINGS, tiny_encoder, tmp_path_factory.mktemp("whole"))


def test_200_steps_lower_the_loss(whole_run: tuple[list[float], Any]) -> None:
    losses, _ = whole_run
    assert len(losses) == 200
    assert np.mean(losses[-20:]) < 0.5 * np.mean(losses[:20])


def test_a_run_stopped_half_way_ends_with_the_same_weights(
    whole_run: tuple[list[float], Any], tiny_encoder: Path, tmp_path: Path
) -> None:
    steps: list[int] = []
    first, _ = run(SETTINGS, tiny_encoder, tmp_path, 100, steps.append)
    second, model = run(SETTINGS, tiny_encoder, tmp_path, None, steps.append)
    assert (len(first), len(second)) == (100, 100)
    assert first + second == whole_run[0]
    assert steps == [0, 1, 2, 4, 8, 16, 32, 64, 128, 200]
    for name, value in whole_run[1].named_parameters():
        assert torch.equal(value, dict(model.named_parameters())[name]), name


def test_a_checkpoint_of_other_settings_is_refused(tiny_encoder: Path, tmp_path: Path) -> None:
    run(SETTINGS, tiny_encoder, tmp_path, stop_after=2)
    with pytest.raises(UserError, match="has other settings"):
        run(replace(SETTINGS, learning_rate=1e-3), tiny_encoder, tmp_path)


def test_hidden_logits_are_those_of_the_whole_model(tiny_encoder: Path) -> None:
    tokenizer, model = load_tokenizer(tiny_encoder), load_encoder(tiny_encoder)
    encoded = tokenizer(["The city of [MASK] is old.", "[MASK] is great."], padding=True,
                        return_tensors="pt")  # fmt: skip
    hidden = encoded["input_ids"] == tokenizer.mask_token_id
    ours = hidden_logits(model, encoded["input_ids"], encoded["attention_mask"], hidden)
    whole = model(input_ids=encoded["input_ids"], attention_mask=encoded["attention_mask"]).logits
    assert torch.allclose(ours, whole[hidden], atol=1e-5)


def test_specials_and_padding_are_never_hidden() -> None:
    flags = np.full((50, 12), STARTS_WORD | CONTENT, dtype=np.uint8)
    lengths = np.full(50, 8)
    hidden = draw_mask(flags, lengths, MaskingPlan(rate=0.9), np.random.default_rng(0))
    assert not hidden[:, 0].any()
    assert not hidden[:, 7:].any()
    assert hidden[:, 1:7].any()


def test_uniform_masks_hide_the_stated_part() -> None:
    flags = np.full((40, 22), STARTS_WORD, dtype=np.uint8)
    hidden = draw_mask(flags, np.full(40, 22), UNIFORM, np.random.default_rng(0))
    assert hidden.sum(axis=1).tolist() == [3] * 40  # 20 tokens between the specials, 15 % of them


def test_a_word_is_hidden_whole_or_not_at_all() -> None:
    # Three words of two pieces each between the specials.
    row = [STARTS_WORD, *[STARTS_WORD | CONTENT, CONTENT] * 3, STARTS_WORD]
    flags = np.array([row] * 30, dtype=np.uint8)
    plan = MaskingPlan(rate=0.34, whole_word_share=1.0)
    hidden = draw_mask(flags, np.full(30, 8), plan, np.random.default_rng(0))
    assert (hidden[:, 1:7:2] == hidden[:, 2:7:2]).all()
    assert hidden.sum(axis=1).tolist() == [2] * 30


PAIRS = [(city.title(), gold.title()) for city, gold in COUNTRIES.items()]


@pytest.mark.parametrize(("max_length", "some"), [(24, True), (8, False)])
def test_readings_are_those_of_the_batches(
    tiny_encoder: Path, tmp_path: Path, max_length: int, some: bool
) -> None:
    settings = replace(SETTINGS, steps=20, max_length=max_length)
    run(settings, tiny_encoder, tmp_path)
    found = count_readings([tmp_path], tiny_encoder, [*PAIRS, ("Paris", "Italy")], [0, 1, 16, 20])
    ready = prepared(settings, tiny_encoder, tmp_path)
    for step in (0, 1, 16, 20):
        texts = [
            set(ready.tokenizer.convert_ids_to_tokens(row))
            for batch in islice(ready.sampler.batches(0), step)
            for row in batch.ids
        ]
        for city, gold in PAIRS:
            n = sum({city.lower(), gold.lower()} <= text for text in texts)
            assert found.before(step, [(city, gold)]).tolist() == [n]
    assert found.counts["Paris", "Italy"] == (0, 0, 0, 0)
    assert any(found.counts[pair][-1] for pair in PAIRS) is some  # 8 tokens end before the country


def test_readings_of_a_continued_model_are_added(tiny_encoder: Path, tmp_path: Path) -> None:
    folders = [tmp_path / "first", tmp_path / "second"]
    for seed, folder in enumerate(folders):
        run(replace(SETTINGS, steps=4, seed=seed), tiny_encoder, folder)
    first, second = (count_readings([one], tiny_encoder, PAIRS, [2, 4]) for one in folders)
    both = count_readings(folders, tiny_encoder, PAIRS, [4, 6, 8])
    assert any(second.counts[pair][-1] for pair in PAIRS)
    for pair in PAIRS:
        before = first.counts[pair][-1]
        assert both.counts[pair] == (before, *(before + n for n in second.counts[pair]))
