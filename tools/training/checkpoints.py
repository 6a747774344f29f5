"""Checkpoints of training, written atomically and without pickle.

A checkpoint is a folder `step-<n>` with weights and optimizer moments as safetensors, and the rest
as JSON. It is written under another name, flushed to disk (fsync) and renamed; the previous one is
deleted only after that.
"""

import errno
import json
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from lama_core.errors import UserError

_NAME = re.compile(r"step-(\d+)")
MOMENTS = ("exp_avg", "exp_avg_sq")


@dataclass(frozen=True)
class TrainingState:
    """The state of a run, without weights and moments.

    Attributes:
        step: Number of completed steps.
        settings: Settings of the run; it can't be resumed with other settings.
    """

    step: int
    settings: dict[str, object]


def save_checkpoint(
    folder: Path,
    state: TrainingState,
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
) -> Path:
    """Write a checkpoint, delete older ones, and return its folder.

    Raises:
        UserError: If the disk is too full; the previous checkpoint is kept.
    """
    folder.mkdir(parents=True, exist_ok=True)
    weights = {name: value.detach() for name, value in model.named_parameters()}
    moments = _moments(model, optimizer)
    needed = sum(t.nbytes for t in (*weights.values(), *moments.values())) + 1_000_000
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise _disk_full(folder, needed)
    target = folder / f"step-{state.step:08d}"
    partial = folder / f".partial-{target.name}"
    shutil.rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir()
        save_file(weights, partial / "weights.safetensors")
        save_file(moments, partial / "optimizer.safetensors")
        content = {"step": state.step, "settings": state.settings}
        (partial / "state.json").write_text(json.dumps(content, indent=1), encoding="utf-8")
        for path in (*sorted(partial.iterdir()), partial):
            _sync(path)
        shutil.rmtree(target, ignore_errors=True)
        partial.rename(target)
        _sync(folder)
    except (OSError, SafetensorError) as error:
        shutil.rmtree(partial, ignore_errors=True)
        if getattr(error, "errno", None) == errno.ENOSPC or "No space" in str(error):
            raise _disk_full(folder, needed) from error
        raise
    for older in find_checkpoints(folder)[:-1]:
        shutil.rmtree(older)
    return target


def find_checkpoints(folder: Path) -> list[Path]:
    """Return the complete checkpoints of a run, sorted by step."""
    if not folder.is_dir():
        return []
    found = [path for path in folder.iterdir() if _NAME.fullmatch(path.name)]
    return sorted(found, key=lambda path: int(path.name.removeprefix("step-")))


def load_checkpoint(
    path: Path, model: torch.nn.Module, optimizer: torch.optim.Optimizer | None
) -> TrainingState:
    """Load the checkpoint's weights into the model, and its moments into the optimizer.

    Raises:
        UserError: If the checkpoint can't be read or is of another model.
    """
    try:
        weights = load_file(path / "weights.safetensors")
        moments = load_file(path / "optimizer.safetensors")
        state = json.loads((path / "state.json").read_text(encoding="utf-8"))
    except (OSError, SafetensorError, ValueError) as error:
        raise UserError(f"the checkpoint {path} can't be read: delete it to start again") from error
    parameters = dict(model.named_parameters())
    fits = parameters.keys() == weights.keys() and all(
        parameters[name].shape == value.shape for name, value in weights.items()
    )
    if not fits:
        raise UserError(f"the checkpoint {path} is of another encoder: give another --run folder")
    with torch.no_grad():
        for name, value in weights.items():
            parameters[name].copy_(value)
    if optimizer is not None:
        _put_moments(parameters, optimizer, moments, int(state["step"]))
    return TrainingState(int(state["step"]), state["settings"])


def _moments(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    return {
        f"{name}/{moment}": optimizer.state[value][moment]
        for name, value in model.named_parameters()
        for moment in MOMENTS
        if moment in optimizer.state.get(value, {})
    }


def _put_moments(
    parameters: dict[str, torch.nn.Parameter],
    optimizer: torch.optim.Optimizer,
    moments: dict[str, torch.Tensor],
    step: int,
) -> None:
    for name, value in parameters.items():
        if f"{name}/{MOMENTS[0]}" in moments:
            optimizer.state[value] = {"step": torch.tensor(float(step), device=value.device)} | {
                moment: moments[f"{name}/{moment}"].to(value.device, copy=True)
                for moment in MOMENTS
            }


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _disk_full(folder: Path, needed: int) -> UserError:
    return UserError(
        f"the disk with {folder} has no room for a checkpoint of {needed / 1e6:.0f} MB: free some "
        "space and run the command again; the last checkpoint is kept"
    )
