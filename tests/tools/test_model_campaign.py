"""The campaign of malformed model folders, in a short form; the long one is run by hand."""

from pathlib import Path
from random import Random

import pytest

from tools.stress import models
from tools.stress.models import draw_folder, make_families, run


@pytest.fixture(scope="module")
def families(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    return make_families(tmp_path_factory.mktemp("families"))


@pytest.mark.slow
def test_thirty_malformed_folders_are_answered_or_refused(tmp_path: Path) -> None:
    told: list[int] = []
    outcome = run(30, 7, tmp_path, told.append)
    assert outcome.faults == []
    assert set(outcome.counts) == {"answered", "refused"}
    assert (outcome.n, told[-1]) == (30, 30)
    assert outcome.peak > 0


@pytest.mark.slow
def test_whole_folders_are_answered(families: tuple[Path, ...], tmp_path: Path) -> None:
    for number, family in enumerate(families):
        assert models._try(family, tmp_path / str(number)).how == "answered"


def test_a_number_draws_the_same_folder_again(families: tuple[Path, ...], tmp_path: Path) -> None:
    drawn = [
        draw_folder(families, tmp_path / str(number), Random("7-3"), tmp_path / "mark")[1]
        for number in range(2)
    ]
    assert drawn[0] == drawn[1]
    others = [
        draw_folder(families, tmp_path / f"x{number}", Random(f"7-{number}"), tmp_path / "mark")[1]
        for number in range(4, 14)
    ]
    assert len({*others, drawn[0]}) == 11


def test_a_pickle_of_the_campaign_would_leave_its_mark(tmp_path: Path) -> None:
    import torch

    models._pickle(tmp_path, Random(0), tmp_path / "mark")
    assert not (tmp_path / "mark").exists()
    with pytest.raises(RuntimeError):  # by then it has run
        torch.load(tmp_path / "pytorch_model.bin", weights_only=False)
    assert (tmp_path / "mark").exists()


@pytest.mark.slow
def test_a_hang_and_a_traceback_are_faults(
    families: tuple[Path, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import time

    def raise_it(_reference: str) -> str:
        raise KeyError("x")

    monkeypatch.setattr(models, "ask_folder", raise_it)
    assert [fault.what for fault in run(1, 1, tmp_path / "a", lambda _done: None).faults] == [
        "traceback"
    ]
    monkeypatch.setattr(models, "MAX_SECONDS", 0.3)
    monkeypatch.setattr(models, "ask_folder", lambda _reference: time.sleep(9))
    assert [fault.what for fault in run(1, 1, tmp_path / "b", lambda _done: None).faults] == [
        "hang"
    ]
