"""The short form of the campaign of malformed data."""

from pathlib import Path

import pytest

from tools.stress import data

LONG = ("60,000", "two hundred", "bomb", "1 GB", "4 GB", "million", "times", "MB")


@pytest.mark.slow
def test_malformed_data_are_refused_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAMA_HOME", str(tmp_path))  # restored afterwards
    quick = {name: make for name, make in data.SPECIAL.items() if not any(w in name for w in LONG)}
    chosen = dict(sorted(quick.items())[::3])
    monkeypatch.setattr(data, "SPECIAL", chosen)
    done: list[int] = []
    outcome = data.run(60, 7, tmp_path / "work", done.append)
    assert outcome.faults == []
    assert outcome.n == done[-1] == 60 and set(outcome.counts) == {"answered", "refused"}
