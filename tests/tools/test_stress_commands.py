"""The campaigns of the command line, kills and disks: their short form, and what is a fault."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lama_core.cli import make_app
from lama_core.errors import UserError
from lama_core.progress import silent
from tools.commands import register
from tools.stress import command, commands, disk, kills
from tools.stress.campaign import Fault, Outcome
from tools.stress.commands import Ended, Thrown, draw, judge

WELL = Ended(0, "[]", "", 0.1, 1000, False, False, [])
REFUSED = replace(WELL, status=2, out="", said="Usage: x\n\nError: there is no such y\n")


@pytest.mark.slow
def test_the_command_line_withstands_a_short_campaign(tmp_path: Path) -> None:
    outcome = commands.run(60, 3, tmp_path, silent)
    assert outcome.faults == []
    assert outcome.n == 60 and set(outcome.counts) == {"answered", "refused"}
    assert 0 < outcome.peak < 4 << 30


@pytest.mark.slow
def test_a_probing_run_that_is_killed_ends_as_if_it_never_was(tmp_path: Path) -> None:
    outcome = kills.run(3, 2, tmp_path, silent)
    assert outcome.faults == []
    assert outcome.counts["killed"] == 3


@pytest.mark.slow
def test_a_disk_that_cant_be_written_is_a_sentence(tmp_path: Path) -> None:
    outcome = disk.run(1000, 0, tmp_path, silent)
    if outcome.figures:
        pytest.skip("no file system can be mounted here")
    assert outcome.faults == []
    assert outcome.counts["answered"] and outcome.counts["refused"]


@pytest.mark.parametrize(
    ("ended", "what"),
    [
        (replace(WELL, said="Traceback (most recent call last):\n"), "traceback"),
        (replace(WELL, status=1, said="Error: A fault of ours, please report it\n"), "error"),
        (replace(WELL, status=-11), "error"),
        (replace(WELL, hung=True, status=-9), "hang"),
        (replace(WELL, peak=5 << 30), "memory"),
        (replace(WELL, wrote=["/x"]), "outside"),
        (replace(WELL, out='{"a": NaN}'), "error"),
        (replace(WELL, out=""), "error"),
        (replace(REFUSED, said="Error: one\nError: two\n"), "error"),
        (replace(REFUSED, said="Error: one\ntwo\n"), "error"),
        (replace(REFUSED, said=""), "error"),
    ],
)
def test_what_should_not_happen_is_a_fault(ended: Ended, what: str) -> None:
    (fault,) = judge(Thrown(["runs", "list", "--json"]), ended)
    assert fault.what == what
    assert json.loads(fault.given) == {"words": ["runs", "list", "--json"]}


@pytest.mark.parametrize("ended", [WELL, REFUSED], ids=["answered", "refused"])
def test_an_answer_and_one_line_of_error_are_none(ended: Ended) -> None:
    assert judge(Thrown(["runs", "list", "--json"]), ended) == []


def test_the_same_seed_draws_the_same_commands_over_the_whole_grammar() -> None:
    drawn = list(draw(2000, 4))
    assert drawn == list(draw(2000, 4)) != list(draw(2000, 5))
    paths = {tuple(one.words[:2]) for one in drawn}
    assert {("runs", "delete"), ("prompts", "both-ways"), ("analogy", "probe")} <= paths
    assert {"cloze", "compare", "reproduce", "train-mlm"} <= {path[0] for path in paths}


def test_nothing_is_trained_or_built_again() -> None:
    for one in draw(3000, 6):
        if one.words[0] == "train-mlm":
            assert "/dev/null/none" in one.words
        if one.words[:2] == ["data", "build-starter"]:
            assert "/dev/null/none" in one.words
        if one.words[0] in ("bench", "stress"):
            assert one.words[1].startswith("no-")


@pytest.mark.parametrize("n_faults", [0, 1])
def test_the_table_says_what_came_and_the_status_whether_it_was_withstood(
    n_faults: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def campaign(n: int, seed: int, folder: Path, tell: object) -> Outcome:
        assert not list(folder.iterdir())
        outcome = Outcome("kills", faults=[Fault("lost", "x --n 1", "gone")] * n_faults)
        outcome.count(f"killed by {seed}", 1.5, 2_000_000)
        return outcome

    monkeypatch.setattr(kills, "run", campaign)
    said = CliRunner().invoke(make_app(register), ["stress", "kills", "--n", "1", "--seed", "7"])
    assert said.exit_code == n_faults
    assert re.search(rf"kills +1 +1 killed by 7 +1\.5 s +2 MB +\d+ +{n_faults}\n", said.stdout)
    assert ("x --n 1" in said.stdout) == bool(n_faults)
    printed = CliRunner().invoke(make_app(register), ["stress", "kills", "--json"]).stdout
    (outcome,) = json.loads(printed)
    assert outcome["peak"] == 2_000_000 and len(outcome["faults"]) == n_faults


def test_an_unknown_campaign_is_refused_with_the_nearest() -> None:
    with pytest.raises(UserError, match="did you mean 'kills'"):
        command.stress("kill")
