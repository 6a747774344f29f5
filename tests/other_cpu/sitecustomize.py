"""Compute as another CPU would, with other last digits (`pytest --last-digits SEED`).

Two CPUs add the terms of a matrix product in different orders, so log-probabilities differ in their
last digits. Here each fp32 product of `torch.nn.functional.linear` on the CPU is multiplied by
1 + 1e-6 z, where z is standard normal, one for each column. z depends on the seed and the number of
columns alone: as on one CPU, a query has the same answer each time, alone and in a batch.

`conftest.py` runs this file and puts its folder into PYTHONPATH, where every Python process
that a test starts imports it, because of its name, before anything else. It must not import torch,
which most of these processes don't need; it waits until somebody else does.
"""

import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

SEED = "LAMA_TEST_LAST_DIGITS"
INSTRUCTIONS = "LAMA_TEST_CPUINFO"  # a file like /proc/cpuinfo, without what is hidden
SIZE = 1e-6


def move_last_digits(functional: ModuleType) -> None:
    """Replace `linear` in `torch.nn.functional`."""
    import torch

    product: Callable[..., Any] = functional.linear
    factors: dict[int, Any] = {}

    def linear(states: Any, weight: Any, bias: Any = None) -> Any:
        out = product(states, weight, bias)
        if out.dtype != torch.float32 or out.device.type != "cpu":
            return out
        width = out.shape[-1]
        if width not in factors:
            generator = torch.Generator().manual_seed(int(os.environ[SEED]) * 1_000_003 + width)
            with torch.inference_mode(False):  # the same factor is used where gradients are needed
                factors[width] = 1 + SIZE * torch.randn(width, generator=generator)
        return out * factors[width]

    functional.linear = linear  # type: ignore[attr-defined]


def hide_instructions(cpu: ModuleType) -> None:
    """Let `lama_core.models.cpu` read the other CPU's instruction sets."""
    if INSTRUCTIONS in os.environ:
        cpu.CPUINFO = Path(os.environ[INSTRUCTIONS])  # type: ignore[attr-defined]


class ChangeOnImport:
    """A finder that lets the others find a module, and changes it once it is executed."""

    changes = {  # noqa: RUF012
        "torch.nn.functional": move_last_digits,
        "lama_core.models.cpu": hide_instructions,
    }

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        change = self.changes.pop(name, None)  # without it, this finder doesn't find itself again
        spec = importlib.util.find_spec(name) if change else None
        if change is None or spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def execute_and_change(module: ModuleType) -> None:
            execute(module)
            change(module)

        spec.loader.exec_module = execute_and_change  # type: ignore[method-assign]
        return spec


if SEED in os.environ:
    sys.meta_path.insert(0, ChangeOnImport())
