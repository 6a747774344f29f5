"""Training with the masked-LM loss: the mean cross-entropy at the masked positions.

All randomness (order, masks, dropout) depends only on the seed and the step, so a run that is
stopped and resumed gives the same result.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lama_core.errors import UserError
from tools.training.checkpoints import (
    TrainingState,
    find_checkpoints,
    load_checkpoint,
    save_checkpoint,
)
from tools.training.cuda import Chunks, CudaSteps
from tools.training.loss import mean_cross_entropy
from tools.training.masking import Mask, MaskingPlan, draw_mask
from tools.training.modelling import HEADS, hidden_logits
from tools.training.tokens import Batch, BatchSampler

LOG_EVERY = 50
LOG_FILE = "log.jsonl"


@dataclass(frozen=True)
class Settings:
    """Settings of a run; the same corpus, encoder and settings give the same weights.

    The learning rate rises linearly from 0 over `warmup_steps`, is constant, and falls linearly to
    0 over the last `decay_steps`.

    Attributes:
        steps: Number of steps; a resumed run can change it until the decay begins.
        learning_rate: Peak rate of the encoder.
        head_learning_rate: Peak rate of the new head, without its tied embeddings.
        precision: bf16 (autocast; weights stay float32) or fp32.
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
    weight_decay: float = 0.01
    clip_norm: float = 1.0
    dropout: float = 0.0
    masking: MaskingPlan = field(default_factory=MaskingPlan)
    precision: str = "bf16"
    threads: int = 2
    device: str = "cpu"


@dataclass(frozen=True)
class TrainingProgress:
    """Progress of a run: completed steps, mean loss since the last report, estimated time left."""

    step: int
    steps: int
    loss: float
    steps_per_second: float
    seconds_left: float


@dataclass(frozen=True)
class Trained:
    """A call's first step (0 unless the run was resumed) and the loss of each of its steps."""

    first_step: int
    losses: tuple[float, ...]


def train(
    model: torch.nn.Module,
    sampler: BatchSampler,
    settings: Settings,
    *,
    mask_id: int,
    folder: Path,
    corpus_digest: str,
    checkpoint_seconds: float = 240.0,
    stop_after: int | None = None,
    on_progress: Callable[[TrainingProgress], None] = lambda progress: None,
    on_checkpoint: Callable[[Path, int], None] = lambda path, step: None,
    on_milestone: Callable[[int], None] = lambda step: None,
) -> Trained:
    """Train the model in place, resuming from the newest checkpoint in `folder`.

    Args:
        model: Encoder with a masked-LM head.
        sampler: Batches in the order of training.
        settings: Settings of the run.
        mask_id: Token id of [MASK].
        folder: Folder of checkpoints and log.
        corpus_digest: Digest of the training text; a resumed run must have the same.
        checkpoint_seconds: Seconds between checkpoints.
        stop_after: Number of steps after which this call returns, for tests; None for all steps.
        on_progress: Called every 50 steps and after the last.
        on_checkpoint: Called with the folder and step of each checkpoint.
        on_milestone: Called before the first step (0), after steps 1, 2, 4, 8, ... and after the
            last one; a resumed run calls it again for the steps after its checkpoint.

    Raises:
        UserError: If the checkpoint has other settings, or the disk is full.
    """
    torch.set_num_threads(settings.threads)
    model.to(settings.device)
    _set_dropout(model, settings.dropout)
    optimizer = _make_optimizer(model, settings)
    signature = _signature(settings, corpus_digest)
    start = _resume(folder, model, optimizer, signature, settings)
    last = settings.steps if stop_after is None else min(settings.steps, start + stop_after)
    compute = _on_gpu if settings.device == "cuda" else _on_cpu
    computed = compute(model, optimizer, sampler, settings, mask_id, start)
    losses: list[torch.Tensor] = []
    clock = _Clock(folder / LOG_FILE, settings.steps, on_progress)
    written = time.monotonic()
    if not start:
        on_milestone(0)
    model.train()
    for step in range(start, last):
        _set_learning_rate(optimizer, learning_rate_factor(step, settings))
        losses.append(next(computed))
        clock.tick(step + 1, losses[-1], is_last=step + 1 == last)
        if is_milestone(step + 1, settings.steps):
            on_milestone(step + 1)
        due = time.monotonic() - written > checkpoint_seconds
        if due or step + 1 == last:
            path = save_checkpoint(folder, TrainingState(step + 1, signature), model, optimizer)
            on_checkpoint(path, step + 1)
            written = time.monotonic()
    return Trained(start, tuple(map(float, losses)))


def is_milestone(step: int, steps: int) -> bool:
    """Return whether the history keeps this step: a power of two, or the last one."""
    return step == steps or step & (step - 1) == 0


def learning_rate_factor(step: int, settings: Settings) -> float:
    """Return the factor on the peak rate: linear warm-up, constant, then linear decay to 0.

    If a run is too short for warm-up and decay, both are scaled down.
    """
    scale = min(1.0, settings.steps / (settings.warmup_steps + settings.decay_steps))
    rising = (step + 1) / max(1.0, settings.warmup_steps * scale)
    falling = (settings.steps - step) / max(1.0, settings.decay_steps * scale)
    return max(0.0, min(1.0, rising, falling))


def _on_cpu(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    sampler: BatchSampler,
    settings: Settings,
    mask_id: int,
    first_step: int,
) -> Iterator[torch.Tensor]:
    """Yield the loss of each step, after computing it."""
    for step, batch in enumerate(sampler.batches(first_step), first_step):
        torch.manual_seed(settings.seed * 1_000_003 + step)  # dropout
        hidden = torch.from_numpy(draw(settings, batch, step))
        ids = torch.from_numpy(batch.ids)
        with autocast(settings.precision):
            logits = hidden_logits(
                model, ids.masked_fill(hidden, mask_id), attention_mask(batch), hidden
            )
        loss = mean_cross_entropy(logits, ids[hidden])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), settings.clip_norm, foreach=True)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        yield loss.detach()


def _on_gpu(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    sampler: BatchSampler,
    settings: Settings,
    mask_id: int,
    first_step: int,
) -> Iterator[torch.Tensor]:
    torch.manual_seed(settings.seed)  # dropout; the captured steps count on from here
    steps = CudaSteps(
        model,
        optimizer,
        Chunks(sampler, partial(draw, settings), mask_id, settings.steps),
        pad_id=sampler.pad_id,
        clip_norm=settings.clip_norm,
        bf16=settings.precision == "bf16",
    )
    return steps.losses(first_step)


def draw(settings: Settings, batch: Batch, step: int) -> Mask:
    """Draw the tokens to mask at a step, bool [passage, position]."""
    rng = np.random.default_rng([settings.seed, 3, step])
    return draw_mask(batch.flags, batch.lengths, settings.masking, rng)


def _set_learning_rate(optimizer: torch.optim.Optimizer, factor: float) -> None:
    for group in optimizer.param_groups:
        if isinstance(group["lr"], torch.Tensor):  # captured steps read this tensor
            group["lr"].fill_(group["peak"] * factor)
        else:
            group["lr"] = group["peak"] * factor


def attention_mask(batch: Batch) -> torch.Tensor | None:
    """Return the attention mask, int64 [passage, position], 1 for tokens; None without padding."""
    width = batch.ids.shape[1]
    if int(batch.lengths.min()) == width:
        return None
    return torch.from_numpy((np.arange(width)[None, :] < batch.lengths[:, None]).astype(np.int64))


def autocast(precision: str) -> AbstractContextManager[Any]:
    """Return the context manager for computing in `bf16` or `fp32`."""
    return torch.autocast("cpu", dtype=torch.bfloat16) if precision == "bf16" else nullcontext()


def _set_dropout(model: torch.nn.Module, rate: float) -> None:
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = rate
        elif hasattr(module, "dropout_prob"):  # attention modules have their rate as a number
            module.dropout_prob = rate  # type: ignore[assignment]


def _make_optimizer(model: torch.nn.Module, settings: Settings) -> torch.optim.Optimizer:
    groups: dict[tuple[bool, bool], list[torch.nn.Parameter]] = {}
    for name, value in model.named_parameters():
        in_head = name.split(".")[0] in HEADS
        groups.setdefault((in_head, value.ndim > 1), []).append(value)
    on_gpu = settings.device == "cuda"
    return torch.optim.AdamW(
        [
            {
                "params": values,
                "lr": torch.zeros((), device="cuda") if on_gpu else 0.0,
                "peak": settings.head_learning_rate if in_head else settings.learning_rate,
                "weight_decay": settings.weight_decay if decays else 0.0,
            }
            for (in_head, decays), values in groups.items()
        ],
        betas=(0.9, 0.98),
        eps=1e-6,
        fused=True,
        capturable=on_gpu,
    )


def _signature(settings: Settings, corpus_digest: str) -> dict[str, object]:
    stored: dict[str, object] = json.loads(json.dumps(asdict(settings)))
    for name in ("threads", "device"):
        stored.pop(name)
    return stored | {"corpus": corpus_digest}


def _resume(
    folder: Path,
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    signature: dict[str, object],
    settings: Settings,
) -> int:
    found = find_checkpoints(folder)
    if not found:
        return 0
    state = load_checkpoint(found[-1], model, optimizer)
    changed = [k for k, v in signature.items() if state.settings.get(k) != v]
    # Before the decay begins, runs with other steps or decay steps are identical.
    if set(changed) <= {"steps", "decay_steps"} and state.step <= min(
        _constant_steps(state.settings), settings.steps - settings.decay_steps
    ):
        changed = []
    if changed:
        raise UserError(
            f"the checkpoint {found[-1]} has other settings ({', '.join(changed)}): give another "
            "--run folder, or delete the checkpoint"
        )
    return state.step


def _constant_steps(settings: Mapping[str, object]) -> int:
    """Return the number of steps before the decay begins; -1 if the settings lack steps."""
    steps, decay = settings.get("steps"), settings.get("decay_steps")
    return steps - decay if isinstance(steps, int) and isinstance(decay, int) else -1


class _Clock:
    """Reports and logs the progress every LOG_EVERY steps."""

    def __init__(
        self, log: Path, steps: int, on_progress: Callable[[TrainingProgress], None]
    ) -> None:
        log.parent.mkdir(parents=True, exist_ok=True)
        self._log, self._steps, self._report = log, steps, on_progress
        self._losses: list[torch.Tensor] = []
        self._since = time.monotonic()

    def tick(self, step: int, loss: torch.Tensor, *, is_last: bool) -> None:
        self._losses.append(loss)
        if step % LOG_EVERY and not is_last:
            return
        loss_so_far = float(torch.stack(self._losses).mean())  # waits for the steps
        seconds = max(1e-9, time.monotonic() - self._since)
        progress = TrainingProgress(
            step=step,
            steps=self._steps,
            loss=loss_so_far,
            steps_per_second=len(self._losses) / seconds,
            seconds_left=(self._steps - step) * seconds / len(self._losses),
        )
        with self._log.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(asdict(progress)) + "\n")
        self._report(progress)
        self._losses, self._since = [], time.monotonic()
