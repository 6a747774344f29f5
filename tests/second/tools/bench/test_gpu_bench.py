"""`bench gpu` sees what differs from the CPU, and measures what it says."""

from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_models import open_family

from lama_core.models.devices import VARIABLE
from tools.bench import gpu


@pytest.mark.parametrize("family", ("bert-cased", "gpt2", "t5"))
@pytest.mark.parametrize("change", (0.0, 0.05))
def test_a_device_with_other_numbers_is_seen(
    family: str, change: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "cpu")
    opened: list[str] = []

    def load(precision: str) -> Any:
        opened.append(precision)
        model = open_family(family, tmp_path / str(len(opened)))
        if len(opened) == 2:  # the first one is the CPU's
            with torch.no_grad():
                for weight in model.model.parameters():
                    weight += change * torch.randn_like(weight)
        return model

    rows = {row.what: row for row in gpu.of_model(load, family, 3, 1)}
    assert opened == ["fp32", "fp32", "bf16"]
    differences = [row for what, row in rows.items() if "difference from the CPU" in what]
    assert len(differences) == (1 if family == "t5" else 2)
    assert (differences[0].ours > gpu.BOUND) == bool(change)
    assert [bool(one.ours) for one in differences] == [bool(change)] * len(differences)
    texts = [row.ours for what, row in rows.items() if "texts other" in what]
    assert len(texts) == (family != "bert-cased") and not (sum(texts) and not change)
    assert sum("cloze queries" in what for what in rows) == 2
