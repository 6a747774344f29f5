"""The device that models compute on: CPU or GPU.

All requests of a process use the same device: `--device` or LAMA_DEVICE chooses it, and results
record it. Weights, inputs and caches are on the model's device; only selected numbers are copied to
the CPU.
Departure: Devices and precision
"""

import os
import re
import sys
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import psutil

from lama_core.errors import UserError, int_from_env
from lama_core.models.cpu import has_bf16

if TYPE_CHECKING:
    import torch

# spread: the weights are distributed over all GPUs, and over CPU memory if the GPUs are full.
NAMED = ("auto", "cpu", "cuda", "mps", "spread")
VARIABLE = "LAMA_DEVICE"
# Tokens per forward pass, including padding. On a CPU, as many as fit in its caches; a GPU needs
# many more to use all its cores (`python -m tools.bench gpu` measures it).
TOKENS_PER_PASS = {"cpu": 2048, "mps": 8192, "cuda": 32768}
T = TypeVar("T")
R = TypeVar("R")
H = TypeVar("H", bound=Hashable)


def requested_device() -> str:
    """Return the requested device: LAMA_DEVICE, else `auto`; raise UserError if it is invalid."""
    return check_name(os.environ.get(VARIABLE, "").strip() or "auto")


def use_device(name: str) -> None:
    """Load models on this device from now on; models on other devices aren't used any more.

    Raises UserError if the name is invalid or the machine doesn't have the device.
    """
    find_device(check_name(name))
    os.environ[VARIABLE] = name  # child processes use it, too


def check_name(name: str) -> str:
    """Return the name; raise UserError if it isn't a device's name."""
    if name not in NAMED and not re.fullmatch(r"cuda:\d{1,2}", name):
        raise UserError(
            f"Unknown device {name[:40]!r}. Choose auto, cpu, cuda, cuda:N (GPU number N), mps, or "
            "spread (several GPUs, then memory)."
        )
    return name


def chosen_device() -> str:
    """Return the device to load models on: `cpu`, `cuda:N`, `mps` or `spread`.

    Raises UserError if the machine doesn't have it.
    """
    return find_device(requested_device())


def one_device() -> str:
    """Return the device for a model that is too small for `spread`: the first GPU instead."""
    device = chosen_device()
    return "cuda:0" if device == "spread" else device


def available_devices() -> tuple[str, ...]:
    """Return this machine's devices, the best first, and `spread` if there is a CUDA GPU."""
    import torch

    n_gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    gpus = [f"cuda:{number}" for number in range(n_gpus)]
    apple = ["mps"] if torch.backends.mps.is_available() else []
    return (*gpus, *apple, "cpu", *(["spread"] if gpus else []))


def find_device(name: str) -> str:
    """Return the device that a name selects; raise UserError if the machine doesn't have it."""
    if name == "cpu":
        return name
    here = available_devices()
    device = {"auto": here[0], "cuda": "cuda:0"}.get(name, name)
    if device not in here:
        raise UserError(
            f"Device {name} is not available. This machine has {', '.join(here)}; `--device auto` "
            f"selects {here[0]}."
        )
    return device


def device_title(device: str) -> str:
    """Return a device's name for users: `NVIDIA H100 80GB (cuda:0)`, or `CPU`."""
    if device.startswith("cuda"):
        import torch

        return f"{torch.cuda.get_device_name(device)} ({device})"
    return {
        "cpu": "CPU",
        "mps": "Apple GPU (mps)",
        "spread": "all GPUs, and memory when they are full",
    }[device]


def nondefault_settings(precision: str, device: str) -> dict[str, str]:
    """Return the precision unless it is fp32 or `auto`, and the device unless CPU or unknown.

    The values are stored with scores. `auto` is the precision of a server, which chooses it.
    """
    of_precision = {"precision": precision} if precision not in ("fp32", "auto") else {}
    return of_precision | ({"device": device} if device not in ("", "cpu") else {})


def settings_text(precision: str, device: str) -> str:
    """Return `nondefault_settings` as text: `bf16 on cuda:0`; empty for fp32 on a CPU."""
    return " ".join(
        f"on {value}" if key == "device" else value
        for key, value in nondefault_settings(precision, device).items()
    )


def free_bytes(device: str) -> int:
    """Return the bytes that are free on a device; for `spread`, on all GPUs and in memory."""
    import torch

    if device == "cpu":
        return psutil.virtual_memory().available
    if device == "mps":
        return max(0, torch.mps.recommended_max_memory() - torch.mps.driver_allocated_memory())
    if device == "spread":
        return free_bytes("cpu") + sum(
            free_bytes(f"cuda:{gpu}") for gpu in range(torch.cuda.device_count())
        )
    return torch.cuda.mem_get_info(device)[0]


def check_room(name: str, n_bytes: int, device: str) -> None:
    """Raise UserError if a model's weights don't fit on the device."""
    free = free_bytes(device)
    if n_bytes > free:
        smaller = (
            "choose a smaller model, --precision bf16," if has_bf16() else "choose a smaller model"
        )
        remedy = {
            "cpu": f"{smaller} or a machine with more memory",
            "spread": "choose a smaller model or --precision bf16",
        }.get(device, "choose a smaller model, --precision bf16, --device spread or --device cpu")
        raise UserError(
            f"{name} needs {n_bytes / 1e9:.1f} GB, but {free / 1e9:.1f} GB are free on {device}: "
            f"{remedy}."
        )


@dataclass(frozen=True, slots=True)
class PassSettings:
    """Settings of forward passes that change the last digits of scores.

    Departure: Last digits

    threads: CPU threads. batch_tokens: tokens per pass.
    """

    threads: int
    batch_tokens: int

    def __str__(self) -> str:
        """The settings as text."""
        return f"{self.threads} threads and {self.batch_tokens:,} tokens per pass"


_kept: PassSettings | None = None


@contextmanager
def keep_pass_settings(settings: PassSettings | None) -> Iterator[None]:
    """Use the settings of a run's earlier parts in the block; None changes nothing."""
    global _kept
    before, _kept = _kept, settings or _kept
    try:
        yield
    finally:
        _kept = before


def pass_settings(device: str) -> PassSettings | None:
    """Return the settings of forward passes on a device; None before torch is loaded."""
    is_loaded = "torch" in sys.modules
    return PassSettings(n_threads(), tokens_per_pass(device)) if is_loaded else None


def n_threads() -> int:
    """Return the number of CPU threads of a forward pass, if no other pass runs."""
    return _kept.threads if _kept else _default_threads()


@cache
def _default_threads() -> int:
    import torch

    return torch.get_num_threads()


def tokens_per_pass(device: str) -> int:
    """Return the number of tokens per forward pass: LAMA_BATCH_TOKENS, else the device's default.

    Parts of a resumed run keep the number of its earlier parts. Raises UserError if
    LAMA_BATCH_TOKENS isn't a positive number.
    """
    if _kept:
        return _kept.batch_tokens
    return int_from_env("LAMA_BATCH_TOKENS", TOKENS_PER_PASS.get(device, TOKENS_PER_PASS["cuda"]))


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means that a device is out of memory."""
    import torch

    message = str(error)
    return isinstance(error, torch.OutOfMemoryError) or (
        isinstance(error, RuntimeError)
        and ("out of memory" in message or "allocate memory" in message)
    )


def run_in_parts(run: Callable[[Sequence[T]], R], items: Sequence[T]) -> list[R]:
    """Return [run(items)]; if memory runs out, halve the items and return a value for each part.

    Raises:
        UserError: If a single item doesn't fit.
    """
    half = len(items) // 2
    try:
        return [run(items)]
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        if not half:
            raise UserError(
                "Out of memory: a single text needs more than is free on the device. Shorten it, "
                "or choose --device cpu, --device spread or a smaller model."
            ) from error
    free_gpu_cache()
    return [*run_in_parts(run, items[:half]), *run_in_parts(run, items[half:])]


def run_in_passes(run: Callable[[Sequence[T]], R], items: Sequence[T], size: int) -> list[R]:
    """Call `run` for at most `size` items at once, fewer if memory runs out; return its values."""
    size = max(1, size)
    return [
        part
        for start in range(0, len(items), size)
        for part in run_in_parts(run, items[start : start + size])
    ]


def map_distinct(run: Callable[[list[H]], Sequence[R]], items: Sequence[H]) -> list[R]:
    """Return `run`'s value for each item; equal items are computed once."""
    different = list(dict.fromkeys(items))
    values = dict(zip(different, run(different), strict=True))
    return [values[item] for item in items]


def run_or_refuse(run: Callable[[], R]) -> R:
    """Return `run()`; raise UserError if the device is out of memory."""
    return run_in_parts(lambda _: run(), (None,))[0]


def free_gpu_cache() -> None:
    """Free GPU memory that PyTorch has cached but doesn't use."""
    import torch

    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()
    elif torch.backends.mps.is_available():
        torch.mps.empty_cache()


def to_cpu(tensor: "torch.Tensor") -> "torch.Tensor":
    """Copy a tensor to the CPU; no other function copies numbers from a device."""
    return tensor.detach().to("cpu")


def device_of(model: Any) -> "torch.device":
    """Return the device for a model's inputs: that of its first weight that isn't offloaded.

    Offloaded weights are on `meta` until they are used.
    """
    import torch

    devices = (parameter.device for parameter in model.parameters())
    return next((device for device in devices if device.type != "meta"), torch.device("meta"))


def bytes_of(tensor: "torch.Tensor") -> int:
    """Return a tensor's bytes; a quantised one consists of several tensors, which are summed."""
    if not hasattr(tensor, "__tensor_flatten__"):
        return tensor.numel() * tensor.element_size()
    names, _ = tensor.__tensor_flatten__()
    return sum(bytes_of(getattr(tensor, name)) for name in names)


class HasDevice:
    """Mixin for objects whose weights are in a torch module, `model`."""

    model: Any

    @property
    def device(self) -> str:
        """Device of the inputs, such as `cuda:0`; the weights can be on several devices."""
        return str(device_of(self.model))

    @property
    def n_bytes(self) -> int:
        """Size of the weights in memory."""
        return sum(map(bytes_of, [*self.model.parameters(), *self.model.buffers()]))
