"""Training: it learns, it repeats itself, and a stopped run goes on as if it had not stopped."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from lama_core.errors import UserError
from tools.training.checkpoints import find_checkpoints
from tools.training.recipe import prepare
from tools.training.train import Settings, Trained, learning_rate_factor, train

SETTINGS = Settings(
    steps=200,
    tokens_per_batch=128,
    max_length=24,
    learning_rate=5e-3,
    head_learning_rate=5e-3,
    warmup_steps=10,
    decay_steps=50,
    precision="fp32",
    threads=1,
)


def run(
    settings: Settings,
    encoder: Path,
    text: Path,
    folder: Path,
    stop_after: int | None = None,
    on_milestone: Callable[[int], None] = lambda step: None,
) -> tuple[Trained, torch.nn.Module]:
    """Prepare and train in `folder`; what training gives, and the model."""
    ready = prepare(settings, encoder=encoder, corpus_files=[text], folder=folder)
    trained = train(
        ready.model,
        ready.sampler,
        settings,
        mask_id=ready.tokenizer.mask_token_id,
        folder=folder,
        corpus_digest=ready.corpus.digest,
        stop_after=stop_after,
        on_milestone=on_milestone,
    )
    return trained, ready.model


@pytest.fixture(scope="module")
def whole_run(
    tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Trained, torch.nn.Module]:
    """200 steps from scratch, without a stop."""
    from tiny_encoder import write_text

    folder = tmp_path_factory.mktemp("whole")
    return run(SETTINGS, tiny_encoder, write_text(folder / "text.txt"), folder / "run")


def test_200_steps_lower_the_loss(whole_run: tuple[Trained, torch.nn.Module]) -> None:
    losses = whole_run[0].losses
    assert len(losses) == 200
    assert np.mean(losses[-20:]) < 0.5 * np.mean(losses[:20])


def test_a_run_stopped_half_way_ends_with_the_same_weights(
    whole_run: tuple[Trained, torch.nn.Module], tiny_encoder: Path, text_file: Path, tmp_path: Path
) -> None:
    first, _ = run(SETTINGS, tiny_encoder, text_file, tmp_path / "run", stop_after=100)
    second, model = run(SETTINGS, tiny_encoder, text_file, tmp_path / "run")
    assert (first.first_step, second.first_step) == (0, 100)
    assert first.losses + second.losses == whole_run[0].losses
    for name, value in whole_run[1].named_parameters():
        assert torch.equal(value, dict(model.named_parameters())[name]), name


def test_milestones_are_the_start_the_powers_of_two_and_the_end(
    tiny_encoder: Path, text_file: Path, tmp_path: Path
) -> None:
    settings, found = replace(SETTINGS, steps=20), list[int]()
    for stop_after in (7, None):
        folder = tmp_path / "run"
        run(settings, tiny_encoder, text_file, folder, stop_after, on_milestone=found.append)
    assert found == [0, 1, 2, 4, 8, 16, 20]


def test_a_run_can_be_made_longer_before_its_rate_falls_but_not_after(
    tiny_encoder: Path, text_file: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    longer = replace(SETTINGS, steps=220)
    run(SETTINGS, tiny_encoder, text_file, folder, stop_after=150)
    trained, _ = run(longer, tiny_encoder, text_file, folder, stop_after=25)
    assert trained.first_step == 150
    with pytest.raises(UserError, match="steps"):
        run(SETTINGS, tiny_encoder, text_file, folder)


def test_a_checkpoint_of_other_settings_is_refused(
    tiny_encoder: Path, text_file: Path, tmp_path: Path
) -> None:
    run(SETTINGS, tiny_encoder, text_file, tmp_path / "run", stop_after=2)
    with pytest.raises(UserError, match="learning_rate"):
        run(replace(SETTINGS, learning_rate=1e-3), tiny_encoder, text_file, tmp_path / "run")


def test_a_full_disk_stops_the_run_and_keeps_the_last_checkpoint_whole(
    tiny_encoder: Path, text_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    run(SETTINGS, tiny_encoder, text_file, folder, stop_after=5)
    usage = type("Usage", (), {"free": 1000})
    with monkeypatch.context() as full:
        full.setattr(shutil, "disk_usage", lambda path: usage)
        with pytest.raises(UserError, match="no room for a checkpoint"):
            run(SETTINGS, tiny_encoder, text_file, folder, stop_after=5)
    assert [path.name for path in find_checkpoints(folder)] == ["step-00000005"]
    trained, _ = run(SETTINGS, tiny_encoder, text_file, folder, stop_after=1)
    assert trained.first_step == 5


def test_the_rate_rises_stays_and_falls_to_nothing() -> None:
    settings = replace(SETTINGS, steps=100, warmup_steps=10, decay_steps=50)
    assert learning_rate_factor(0, settings) == 1 / 10
    assert learning_rate_factor(30, settings) == 1.0
    assert learning_rate_factor(75, settings) == 25 / 50
    assert learning_rate_factor(99, settings) == 1 / 50
