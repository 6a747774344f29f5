"""Commands that pages start: what is said of them while they run, at their end, and cancelled."""

import json
import os
import subprocess
import sys
import threading
from dataclasses import asdict
from pathlib import Path

import psutil
import pytest
from until import SECONDS

from lama_core.models.sources.catalog import ModelRequest
from lama_core.progress import Pace, Progress, describe, describe_briefly
from pages.ui.shared import jobs
from pages.ui.shared.jobs import Job

RUN = {"what": "run", "name": "starter-a"}


def command(code: str) -> "subprocess.Popen[str]":
    """A process that runs these lines of Python."""
    return subprocess.Popen(
        [sys.executable, "-c", code], stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def saying(*lines: object) -> "subprocess.Popen[str]":
    """A process that says these on standard error: JSON, or a text as it is."""
    said = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    return command(f"import sys; sys.stderr.write({said!r})")


def test_a_failed_command_is_running_until_its_error_is_known() -> None:
    job = Job("x", command("raise SystemExit('no such thing')"))
    assert job.process.wait() == 1
    assert job.running and not job.error
    job.follow()
    assert not job.running and job.error == "no such thing"


def test_what_a_command_says_is_told_apart() -> None:
    job = Job("x", saying(
        {"note": "P19 is left out"}, "a warning of some library", {"result": RUN}, {"result": RUN},
        {"result": {"what": "data", "name": "facts"}}, {"error": "the disk is full"}, '{"x": 1}',
        '{"progress": {"stage": 1, "odd": 2}}', "[1, 2]",
    ))  # fmt: skip
    job.follow()
    assert job.names("run") == ("starter-a",) and job.names("data") == ("facts",)
    assert (job.notes, job.error) == (["P19 is left out"], "the disk is full")
    assert job.other_lines[0] == "a warning of some library" and len(job.other_lines) == 4


def test_a_cancelled_command_has_no_error_and_one_that_ended_is_not_cancelled() -> None:
    job = Job("x", command("import time; time.sleep(600)"))
    job.cancel()
    job.follow()
    assert job.cancelled and not job.running and not job.error
    job = Job("x", command("pass"))
    job.process.wait()
    job.cancel()
    job.follow()
    assert not job.cancelled and not job.error


@pytest.mark.parametrize("lacking", [(), ("killpg", "setsid", "getpgid")])
def test_what_a_cancelled_command_started_ends_too(
    lacking: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in lacking:  # as on Windows
        monkeypatch.delattr(os, name, raising=False)
    job = Job("x", command(
        "import subprocess, sys, time; sleep = 'import time; time.sleep(600)'\n"
        "print(subprocess.Popen([sys.executable, '-c', sleep]).pid, file=sys.stderr, flush=True)\n"
        "time.sleep(600)"
    ))  # fmt: skip
    started = psutil.Process(int(job.process.stderr.readline()))
    job.cancel()
    job.follow()
    _, alive = psutil.wait_procs([started], timeout=SECONDS)
    assert job.cancelled and not [one for one in alive if one.status() != psutil.STATUS_ZOMBIE]


def test_the_pace_of_a_resumed_run_is_that_of_its_own_sitting() -> None:
    steps = [
        Progress("Loading", 1, 2),
        *(Progress("m", done, 4000, "queries", 320) for done in (352, 384, 416)),
    ]
    seconds = iter([10.0, 20.0, 21.0, 22.0])
    job = Job("x", saying(*({"progress": asdict(step)} for step in steps)))
    job.pace = Pace(lambda: next(seconds))
    job.follow()
    assert job.step == steps[-1] and job.share == 416 / 4000
    assert job.pace.per_second == (416 - 352) / 2.0
    left = (4000 - 416) / 32.0
    assert describe(job.step, job.pace) == (
        f"m: 416 of 4,000 queries, 32 a second, 1:{left - 60:.0f} left"
    )


def test_the_time_left_follows_the_last_minute() -> None:
    # 9,000 that were there already pass at once; after that it is 10 a second.
    steps = [(0, 0), (1, 9_000), *((1 + second, 9_000 + 10 * second) for second in range(1, 121))]
    times = iter([float(time) for time, _ in steps])
    pace = Pace(lambda: next(times))
    for _, done in steps:
        step = Progress("m", done, 20_000, "queries")
        pace.see(step)
    assert pace.per_second == 10
    assert pace.seconds_left(step) == (20_000 - 10_200) / 10


@pytest.mark.parametrize(
    ("seconds", "done", "total", "said"),
    [
        (10.0, 10, 50, "Run: 20 % · 40 s left"),
        (10.0, 10, 110, "Run: 9 % · 2 min left"),  # 100 s
        (10.0, 10, 4510, "Run: 0 % · 1 h 15 min left"),
        (10.0, 10, 10, "Run: 100 %"),
        (10.0, 10, None, "Run: m"),
        (20.0, 10, 100, "m: 10 of 100 queries, 3:00 left"),  # slower than one a second: no rate
        (1.0, 100, 100, "m: 100 of 100 queries, saving the results"),
    ],
)
def test_the_share_and_the_time_left_are_said(
    seconds: float, done: int, total: int | None, said: str
) -> None:
    pace = Pace(iter([0.0, seconds]).__next__)
    for n in (0, done):
        pace.see(step := Progress("m", n, total, "queries"))
    briefly = said.startswith("Run")
    assert (describe_briefly("Run", step, pace) if briefly else describe(step, pace)) == said


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (Progress("Fetching", 12_600_000, 93_000_000, "bytes"), "Fetching: 13 of 93 MB"),
        (Progress("Unpacking", 1_250_000, None, "bytes"), "Unpacking: 1.2 MB"),
        (Progress("Expanding", 2, 4), "Expanding: step 2 of 4"),
        (Progress("Reading", 1500, None, "sentences"), "Reading: 1,500 sentences"),
        (Progress("m", 8, 10, "queries", 8), "m: 8 of 10 queries, 8 done earlier"),
        (Progress("Loading"), "Loading"),
    ],
)
def test_a_unit_says_what_is_counted(step: Progress, said: str) -> None:
    assert describe(step, Pace()) == said


def test_a_command_is_asked_in_the_words_of_its_request(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []
    process = command("import time; time.sleep(1)")

    def popen(words: list[str], **_: object) -> "subprocess.Popen[str]":
        started.append(words)
        return process

    monkeypatch.setattr(jobs.subprocess, "Popen", popen)
    before = {*threading.enumerate()}
    job = jobs.start("asked", ModelRequest("owner/name"))
    # An app that is closed doesn't wait for its jobs.
    assert all(thread.daemon for thread in {*threading.enumerate()} - before)
    assert job.over.wait(SECONDS)
    jobs.forget("asked")
    assert started[0][1:] == ["-m", "lama_core", "models", "get", "owner/name"]


def test_an_error_names_the_file_and_not_the_folder_it_was_kept_in(tmp_path: Path) -> None:
    scratch = tmp_path / "kept"
    scratch.mkdir()
    code = f"raise SystemExit({f'{scratch}/facts.csv has no usable row'!r})"
    job = Job("x", command(code), scratch)
    job.follow()
    assert job.error == "facts.csv has no usable row"
    assert not scratch.exists()
