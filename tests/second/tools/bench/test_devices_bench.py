"""`bench devices` measures what it says, on the devices that were asked for."""

from collections.abc import Callable
from typing import Any

import pytest

from tools.bench import devices

Models = Callable[..., Any]


@pytest.mark.parametrize("family", ["bert-uncased", "smollm2"])
def test_the_tokens_that_are_counted_are_those_that_go_through(
    family: str, tiny_model: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny_model(family)
    monkeypatch.setattr(devices, "long_texts", lambda: ["Paris.", "Rome is a city."])
    lengths = [len(model.framed(text)) for text in devices.long_texts()]
    frame = len(model.framed(""))
    copies = [n - frame if model.kind == "masked" else 1 for n in lengths]
    expected = sum(n * times for n, times in zip(lengths, copies, strict=True))
    monkeypatch.setattr(devices, "rates", lambda n, ways, *_: [n / 0.5 for _ in ways])
    (row,) = devices.of_tokens(model, "x", 1)
    assert (row.ours, row.limit) == (expected / 0.5, expected / 0.5)
