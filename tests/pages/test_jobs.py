"""Commands that pages start: what is said of them while they run, at their end, and cancelled."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pages.ui import jobs
from pages.ui.jobs import Job


def command(code: str) -> "subprocess.Popen[str]":
    """A process that runs these lines of Python."""
    return subprocess.Popen(
        [sys.executable, "-c", code], stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def test_a_failed_command_is_running_until_its_error_is_known() -> None:
    job = Job("x", command("raise SystemExit('Error: no such thing')"))
    assert job.process.wait() == 1
    assert job.running and not job.error
    job.follow()
    assert not job.running and job.error == "no such thing"


def test_a_command_that_ended_well_before_the_click_on_cancel_is_not_cancelled() -> None:
    job = Job("x", command("pass"))
    job.process.wait()
    job.cancel()
    job.follow()
    assert not job.cancelled and not job.error


def test_a_cancelled_command_ends_without_an_error() -> None:
    job = Job("x", command("import time; time.sleep(600)"))
    job.cancel()
    job.follow()
    assert job.cancelled and not job.running and not job.error


def test_the_pace_of_a_resumed_run_is_that_of_its_own_sitting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reports = [["Loading", 1, 2], ["m", 352, 4000], ["m", 384, 4000], ["m", 416, 4000]]
    lines = "\\n".join(json.dumps({"progress": report}) for report in reports)
    job = Job("x", command(f"import sys; sys.stderr.write({lines!r})".replace("\\\\n", "\\n")))
    clock = iter([10.0, 20.0, 21.0, 22.0])
    monkeypatch.setattr(jobs.time, "monotonic", lambda: next(clock))
    job.follow()
    assert (job.stage, job.done, job.total) == ("m", 416, 4000)
    assert job.rate == (416 - 352) / 2.0


def test_an_error_names_the_file_and_not_the_folder_it_was_kept_in(tmp_path: Path) -> None:
    scratch = tmp_path / "kept"
    scratch.mkdir()
    code = f"raise SystemExit({f'Error: {scratch}/facts.csv has no usable row'!r})"
    job = Job("x", command(code), scratch)
    job.follow()
    assert job.error == "facts.csv has no usable row"
    assert not scratch.exists()
