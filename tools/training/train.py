"""Training with the masked-LM loss: the mean cross-entropy at the masked positions.

All randomness (order, masks) depends only on the seed and the step, so a run that is stopped and
resumed gives the same result. There is no dropout.
"""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lama_core.errors import UserError
from lama_core.files import atomic_file
from tools.training.masking import MaskingPlan, draw_mask
from tools.training.modelling import hidden_logits
from tools.training.tokens import BatchSampler

LOG_EVERY = 50
CHECKPOINT = "checkpoint.pt"
CHECKPOINT_SECONDS = 240.0
WEIGHT_DECAY, CLIP_NORM = 0.01, 1.0


@dataclass(frozen=True)
class Settings:
    """Settings of a run; the same corpus, encoder and settings give the same weights.

    The learning rate rises linearly from 0 over `warmup_steps`, is constant, and falls linearly to
    0 over the last `decay_steps`; a run that is too short for both scales them down.

    Attributes:
        steps: Number of steps.
        seed: Seed of the order, the masks and the new head.
        tokens_per_batch: Approximate number of tokens of a step.
        max_length: Maximum number of tokens of a passage.
        learning_rate: Peak rate of the encoder.
        head_learning_rate: Peak rate of the new head, without its tied embeddings.
        warmup_steps: Steps of the linear rise.
        decay_steps: Steps of the linear fall.
        threads: CPU threads.
        device: cpu or cuda.
    """

    steps: int
    seed: int = 0
    tokens_per_batch: int = 2048
    max_length: int = 64
    learning_rate: float = 5e-4
    head_learning_rate: float = 1e-3
    warmup_steps: int = 200
    decay_steps: int = 2500
    threads: int = 2
    device: str = "cpu"


def train(
    model: torch.nn.Module,
    sampler: BatchSampler,
    settings: Settings,
    *,
    mask_id: int,
    folder: Path,
    corpus_digest: str,
    stop_after: int | None = None,
    report: Callable[[str], None] = lambda line: None,
    on_milestone: Callable[[int], None] = lambda step: None,
) -> list[float]:
    """Train the model in place, resuming from the checkpoint in `folder`; return each step's loss.

    Weights are float32; the passes are computed in bf16 (autocast).

    Args:
        model: Encoder with a masked-LM head.
        sampler: Batches in the order of training.
        settings: Settings of the run.
        mask_id: Token id of [MASK].
        folder: Folder of the checkpoint.
        corpus_digest: Digest of the training text; a resumed run must have the same.
        stop_after: Number of steps after which this call returns, for tests; None for all steps.
        report: Called with the mean loss every 50 steps and after the last one.
        on_milestone: Called before the first step (0), after steps 1, 2, 4, 8, ... and after the
            last one; a resumed run calls it again for the steps after its checkpoint.

    Raises:
        UserError: If the checkpoint has other settings.
    """
    torch.set_num_threads(settings.threads)
    model.to(settings.device).eval()  # without dropout
    groups: dict[tuple[bool, bool], list[torch.nn.Parameter]] = {}
    for name, value in model.named_parameters():
        groups.setdefault((name.startswith("cls."), value.ndim > 1), []).append(value)
    optimizer = torch.optim.AdamW(
        [
            {
                "params": values,
                "peak": settings.head_learning_rate if in_head else settings.learning_rate,
                "weight_decay": WEIGHT_DECAY if decays else 0.0,
            }
            for (in_head, decays), values in groups.items()
        ],
        betas=(0.9, 0.98),
        eps=1e-6,
        fused=True,
    )
    kept = asdict(replace(settings, threads=1, device="cpu")) | {"corpus": corpus_digest}
    start, checkpoint = 0, checkpoint_of(folder)
    if checkpoint is not None:
        if checkpoint["settings"] != kept:
            raise UserError(
                f"the checkpoint in {folder} has other settings: give another --run folder, or "
                "delete the checkpoint"
            )
        start = checkpoint["step"]
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
    else:
        on_milestone(0)
    last = settings.steps if stop_after is None else min(settings.steps, start + stop_after)
    scale = min(1.0, settings.steps / (settings.warmup_steps + settings.decay_steps))
    losses: list[torch.Tensor] = []
    written = time.monotonic()
    for step, batch in zip(range(start, last), sampler.batches(start), strict=False):
        rising = (step + 1) / max(1.0, settings.warmup_steps * scale)
        falling = (settings.steps - step) / max(1.0, settings.decay_steps * scale)
        for group in optimizer.param_groups:
            group["lr"] = group["peak"] * min(1.0, rising, falling)
        rng = np.random.default_rng([settings.seed, 3, step])
        arrays = (
            draw_mask(batch.flags, batch.lengths, MaskingPlan(), rng),
            batch.ids,
            (np.arange(batch.ids.shape[1]) < batch.lengths[:, None]).astype(np.int64),
        )
        hidden, ids, tokens = (torch.from_numpy(one).to(settings.device) for one in arrays)
        with torch.autocast(settings.device, dtype=torch.bfloat16):
            logits = hidden_logits(model, ids.masked_fill(hidden, mask_id), tokens, hidden)
        loss = torch.nn.functional.cross_entropy(logits.float(), ids[hidden])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP_NORM, foreach=True)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.detach())
        done = step + 1
        if done % LOG_EVERY == 0 or done == last:
            mean = float(torch.stack(losses[-LOG_EVERY:]).mean())
            report(f"step {done:,} of {settings.steps:,}: loss {mean:.3f}")
        if done == settings.steps or done & step == 0:  # a power of two
            on_milestone(done)
        if done == last or time.monotonic() - written > CHECKPOINT_SECONDS:
            states = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            with atomic_file(folder / CHECKPOINT) as part:
                torch.save({"step": done, "settings": kept} | states, part)
            written = time.monotonic()
    return list(map(float, losses))


def checkpoint_of(folder: Path) -> dict[str, Any] | None:
    """Return a run's checkpoint: `step`, `settings`, `model`, `optimizer`; None before the first.

    `settings` are those of the run, and the digest of its corpus.
    """
    file = folder / CHECKPOINT
    if not file.exists():
        return None
    found: dict[str, Any] = torch.load(file, map_location="cpu", weights_only=True)
    return found
