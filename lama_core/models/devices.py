"""Where models compute: the processor, or a graphics card.

Which device is a matter of the machine and of no request: `--device` or LAMA_DEVICE chooses it for
the whole process, and what a model answers says where it was computed. Weights, inputs and caches
are on the model's device; only the picked numbers leave it.
Departure: Devices and precision
"""

import os
import re
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import psutil

from lama_core.errors import UserError, positive

if TYPE_CHECKING:
    import torch

# spread: over all graphics cards, and this machine's memory where they are full.
NAMED = ("auto", "cpu", "cuda", "mps", "spread")
NUMBERED = re.compile(r"cuda:(\d{1,2})")
VARIABLE = "LAMA_DEVICE"
# Tokens, with padding, that go through a model together: what fits in a processor's caches; a card
# needs many more to be kept busy (`bench devices` tries them).
TOKENS_PER_PASS = {"cpu": 2048, "mps": 8192}
ON_CARDS = 32768
T = TypeVar("T")
R = TypeVar("R")
H = TypeVar("H", bound=Hashable)


def wanted_device() -> str:
    """What was asked for: LAMA_DEVICE, else `auto`. Raises UserError for what is no device."""
    return check_name(os.environ.get(VARIABLE, "").strip() or "auto")


def use_device(name: str) -> None:
    """Compute there from now on; models that are loaded elsewhere are not used any more.

    Raises UserError for what is no device, or isn't here.
    """
    find_device(check_name(name))
    os.environ[VARIABLE] = name  # processes that this one starts compute there, too


def check_name(name: str) -> str:
    """The name. Raises UserError for what is none of a device's."""
    if name not in NAMED and not NUMBERED.fullmatch(name):
        raise UserError(
            f"{name[:40]!r} is no device: write auto, cpu, cuda, cuda:N (the card of that number), "
            "mps, or spread (several cards, and memory)."
        )
    return name


def chosen_device() -> str:
    """Where models are loaded now: `cpu`, `cuda:N`, `mps` or `spread`.

    Raises UserError if that is not here.
    """
    return find_device(wanted_device())


def one_device() -> str:
    """Where a model goes that is too small to be spread."""
    device = chosen_device()
    return "cuda:0" if device == "spread" else device


def devices_here() -> tuple[str, ...]:
    """The devices of this machine, the best first, and `spread` where there is a card."""
    import torch

    n_cards = torch.cuda.device_count() if torch.cuda.is_available() else 0
    cards = [f"cuda:{number}" for number in range(n_cards)]
    apple = ["mps"] if torch.backends.mps.is_available() else []
    return (*cards, *apple, "cpu", *(["spread"] if cards else []))


def find_device(name: str) -> str:
    """The device that a name means. Raises UserError, naming what there is, if it isn't here."""
    if name == "cpu":
        return name
    here = devices_here()
    meant = {"auto": here[0], "cuda": "cuda:0"}.get(name, name)
    if meant not in here:
        raise UserError(
            f"The device {name} is not here: this machine has {', '.join(here)}; `--device auto` "
            f"takes {here[0]}."
        )
    return meant


def title_of(device: str) -> str:
    """A device as a person knows it: `NVIDIA H100 80GB (cuda:0)`, or `processor`."""
    if device.startswith("cuda"):
        import torch

        return f"{torch.cuda.get_device_name(device)} ({device})"
    return {
        "cpu": "processor",
        "mps": "Apple's graphics processor (mps)",
        "spread": "all graphics cards, and memory where they are full",
    }[device]


def unusual(precision: str, device: str) -> dict[str, str]:
    """What goes with a model's numbers as plain values: its precision unless it is fp32, its device
    unless it is the processor, or isn't known. A server chooses its precision itself.
    """
    of_precision = {"precision": precision} if precision not in ("fp32", "auto") else {}
    return of_precision | ({"device": device} if device not in ("", "cpu") else {})


def how_computed(precision: str, device: str) -> str:
    """The same in words: `bf16 on cuda:0`; nothing of fp32 on a processor."""
    said = unusual(precision, device)
    return " ".join(f"on {value}" if what == "device" else value for what, value in said.items())


def free_bytes(device: str) -> int:
    """Bytes that are free on a device now; of `spread`, on all cards and in memory."""
    import torch

    if device == "cpu":
        return psutil.virtual_memory().available
    if device == "mps":
        used = torch.mps.driver_allocated_memory()
        return max(0, torch.mps.recommended_max_memory() - used)
    if device == "spread":
        cards = range(torch.cuda.device_count())
        return free_bytes("cpu") + sum(free_bytes(f"cuda:{card}") for card in cards)
    return torch.cuda.mem_get_info(device)[0]


def check_room(name: str, n_bytes: int, device: str) -> None:
    """Raise UserError if a model's weights don't fit on the device; say what to do."""
    free = free_bytes(device)
    if n_bytes > free:
        remedy = {
            "cpu": "choose a smaller model, --precision bf16, or a machine with more memory",
            "spread": "choose a smaller model or --precision bf16",
        }.get(device, "choose a smaller model, --precision bf16, --device spread or --device cpu")
        raise UserError(
            f"{name} takes {n_bytes / 1e9:.1f} GB and {free / 1e9:.1f} GB are free on {device}: "
            f"{remedy}."
        )


def tokens_per_pass(device: str) -> int:
    """How many tokens go through a model together on a device, by default or LAMA_BATCH_TOKENS.

    Raises UserError if that is no positive number.
    """
    return positive("LAMA_BATCH_TOKENS", TOKENS_PER_PASS.get(device, ON_CARDS))


def is_full(error: BaseException) -> bool:
    """Whether an error says that a device has no memory left."""
    import torch

    said = str(error)
    return isinstance(error, torch.OutOfMemoryError) or (
        isinstance(error, RuntimeError) and ("out of memory" in said or "allocate memory" in said)
    )


def in_parts(
    run: Callable[[Sequence[T]], R],
    items: Sequence[T],
    halve: Callable[[Sequence[T]], tuple[Sequence[T], ...]] | None = None,
) -> list[R]:
    """`run(items)`; where the device has no room for all of them, of each half, and so on.

    halve: two parts of items, () of what can't be parted; by default two halves.
    Raises UserError if not even one item fits.
    """
    try:
        return [run(items)]
    except RuntimeError as error:
        if not is_full(error):
            raise
        half = len(items) // 2
        parts = halve(items) if halve else (items[:half], items[half:]) if half else ()
        if not parts:
            raise UserError(
                "A single text is too much for the memory that is left on the device: shorten it, "
                "or choose --device cpu, --device spread or a smaller model."
            ) from error
    release()
    return [one for part in parts for one in in_parts(run, part, halve)]


def in_passes(run: Callable[[Sequence[T]], R], items: Sequence[T], size: int) -> list[R]:
    """`run` of at most `size` items at a time, of fewer where the device has no room."""
    size = max(1, size)
    starts = range(0, len(items), size)
    return [part for start in starts for part in in_parts(run, items[start : start + size])]


def once_each(run: Callable[[list[H]], Sequence[R]], items: Sequence[H]) -> list[R]:
    """The values that `run` gives of the items, computed once for equal ones."""
    different = list(dict.fromkeys(items))
    values = dict(zip(different, run(different), strict=True))
    return [values[item] for item in items]


def fitting(run: Callable[[], R]) -> R:
    """`run()`. Raises UserError where the device has no room for it."""
    return in_parts(lambda _: run(), (None,))[0]


def release() -> None:
    """Give back what PyTorch keeps of a card's memory without using it."""
    import torch

    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()
    elif torch.backends.mps.is_available():
        torch.mps.empty_cache()


def host(tensor: "torch.Tensor") -> "torch.Tensor":
    """The numbers of a tensor where Python can read them: the one way off a device."""
    return tensor.detach().to("cpu")


def device_of(model: Any) -> "torch.device":
    """Where a model takes its inputs: with its weights on several devices, the first in use.

    Weights that wait elsewhere for their turn are on `meta` meanwhile.
    """
    places = (parameter.device for parameter in model.parameters())
    first = next(places)
    return first if first.type != "meta" else next((one for one in places if one != first), first)


def bytes_of(tensor: "torch.Tensor") -> int:
    """Bytes that a tensor takes; of one that is put together from others, what those take."""
    if not hasattr(tensor, "__tensor_flatten__"):
        return tensor.numel() * tensor.element_size()
    names, _ = tensor.__tensor_flatten__()
    return sum(bytes_of(getattr(tensor, name)) for name in names)


class Placed:
    """What has weights somewhere. model: torch's module."""

    model: Any

    @property
    def device(self) -> str:
        """Where the weights are, such as `cuda:0`; on several devices, where the inputs go."""
        return str(device_of(self.model))

    @property
    def n_bytes(self) -> int:
        """Bytes that the weights take in memory."""
        return sum(bytes_of(one) for one in [*self.model.parameters(), *self.model.buffers()])
