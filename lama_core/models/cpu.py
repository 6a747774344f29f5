"""The CPU's name and its instruction sets for matrix products."""

import platform
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")
# Names of instruction sets as Linux and torch write them. A CPU computes in bf16 faster than in
# fp32 only with one of BF16.
BF16 = ("amx_bf16", "avx512_bf16", "bf16", "svebf16", "sve_bf16")
OTHERS = (
    "avx2", "avx512f", "avx512_f", "avx_vnni", "avx512_vnni", "amx_int8", "asimd", "neon", "i8mm",
    "sve",
)  # fmt: skip

ROUNDED = "bf16-weights"
NO_BF16 = (
    "This CPU has no instructions for bf16: the weights are rounded to bf16, and the model "
    "computes in fp32, which is faster here."
)


@dataclass(frozen=True, slots=True)
class Cpu:
    """A CPU: its name, those of its instruction sets that speed up matrix products, its vendor."""

    title: str
    instruction_sets: tuple[str, ...]
    vendor: str = ""

    def __str__(self) -> str:
        return f"{self.title} ({', '.join(self.instruction_sets) or 'instruction sets unknown'})"


@cache
def find_cpu() -> Cpu:
    """Return this machine's CPU: from Linux, else from torch; without instructions if unknown."""
    if CPUINFO.is_file():
        found = read_cpuinfo(CPUINFO.read_text(encoding="utf-8", errors="replace"))
    else:
        import torch

        ask = getattr(torch.cpu, "get_capabilities", dict)  # torch 2.7 doesn't have it
        found = Cpu("", _known({name for name, value in ask().items() if value is True}))
    return Cpu(
        found.title or platform.processor() or platform.machine(),
        found.instruction_sets,
        found.vendor or platform.processor(),
    )


def read_cpuinfo(text: str) -> Cpu:
    """Return the CPU that Linux describes in /proc/cpuinfo; the title is empty if it has none."""
    title = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    flags = re.search(r"^(?:flags|Features)\s*:\s*(.+)$", text, re.MULTILINE)
    vendor = re.search(r"^vendor_id\s*:\s*(.+)$", text, re.MULTILINE)
    return Cpu(
        title[1].strip() if title else "",
        _known(set(flags[1].split()) if flags else set()),
        vendor[1] if vendor else "",
    )


def _known(flags: set[str]) -> tuple[str, ...]:
    return tuple(name for name in (*OTHERS, *BF16) if name in flags)


def has_bf16() -> bool:
    """Whether the CPU has instructions for bf16. Without them, bf16 is slower than fp32."""
    return any(name in BF16 for name in find_cpu().instruction_sets)


def mkl_lacks_avx512() -> bool:
    """Whether MKL doesn't use the CPU's AVX-512 instructions, because the CPU isn't Intel's."""
    cpu = find_cpu()
    return "AMD" in cpu.vendor and bool({"avx512f", "avx512_f"} & {*cpu.instruction_sets})


def computed_precision(precision: str, device: str) -> str:
    """Return the precision that a model is opened with on a device.

    On a CPU without instructions for bf16, `bf16` becomes `bf16-weights`: the weights are rounded
    to bf16, and the model computes in fp32.
    Departure: Devices and precision
    """
    lacks = device == "cpu" and not has_bf16()
    return ROUNDED if precision == "bf16" and lacks else precision
