"""Self-checks that a model passed are remembered, and run again when the memory can't be used."""

import json
from pathlib import Path
from typing import Any

import pytest
from tiny_models import save_model_folder

from lama_core.models.hf import passed_checks, self_checks
from lama_core.models.registry import open_model
from lama_core.models.sources.locations import LocatedModel

TEXTS = ("The capital of France is Paris.", "The capital of France is Rome.")


@pytest.fixture
def checked(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the models whose checks ran."""
    names: list[str] = []
    original = self_checks.self_checked

    def check(model: Any) -> Any:
        names.append(model.name)
        return original(model)

    monkeypatch.setattr(self_checks, "self_checked", check)
    save_model_folder("gpt2", tmp_path / "tiny")
    return names


def load(folder: Path, precision: str = "fp32") -> Any:
    return open_model("tiny", LocatedModel(folder, "tiny"), "causal", precision)


def stored(home: Path) -> list[Path]:
    return sorted((home / "cache" / "models" / "checked").glob("*"))


def test_a_model_that_passed_is_not_checked_again(
    checked: list[str], home: Path, tmp_path: Path
) -> None:
    first, second = load(tmp_path / "tiny"), load(tmp_path / "tiny")
    assert checked == ["tiny"] and len(stored(home)) == 1
    for name in ("identity", "pads", "caches", "tree_reach", "notes"):
        assert getattr(first, name) == getattr(second, name)
    one, other = (model.token_log_probs(TEXTS) for model in (first, second))
    for a, b in zip(one, other, strict=True):
        assert list(a.log_probs[1:]) == list(b.log_probs[1:])
    load(tmp_path / "tiny", "bf16")
    assert checked == ["tiny", "tiny"]


@pytest.mark.parametrize("text", ("{", '{"rows": true}', "[" * 4000))
def test_a_damaged_memory_is_not_used(
    text: str, checked: list[str], home: Path, tmp_path: Path
) -> None:
    load(tmp_path / "tiny")
    (file,) = stored(home)
    whole = file.read_text(encoding="utf-8")
    file.write_text(text, encoding="utf-8")
    load(tmp_path / "tiny")
    assert checked == ["tiny", "tiny"]
    assert file.read_text(encoding="utf-8") == whole and json.loads(whole)["rows"] > 0


def test_other_weights_or_versions_are_checked_again(
    checked: list[str], home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(tmp_path / "tiny")
    save_model_folder("gpt2", tmp_path / "tiny", seed=1)
    load(tmp_path / "tiny")
    monkeypatch.setattr(passed_checks, "version", lambda name: f"{name} 0")
    load(tmp_path / "tiny")
    assert len(checked) == 3 and len(stored(home)) == 3


def test_a_model_that_failed_a_check_is_not_remembered(
    checked: list[str], home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cannot(*_: Any) -> None:
        raise RuntimeError

    monkeypatch.setattr("lama_core.models.hf.causal.CausalModel._score_trees", cannot)
    assert load(tmp_path / "tiny").tree_reach == 0
    load(tmp_path / "tiny")
    assert checked == ["tiny", "tiny"] and stored(home) == []
