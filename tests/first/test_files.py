"""Files: simultaneous changes are kept, and what an output path may be."""

import errno
import os
import signal
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from calling import call
from tiny_models import save_model_folder

from lama_core import files
from lama_core.downloads.checksums import Pins
from lama_core.errors import UserError
from lama_core.files import atomic_file, hold_lock, lock_for_changes, write_text_atomically
from lama_core.models.sources.catalog import add_model, added_models

N_PROCESSES, N_EACH = 6, 4
N = N_PROCESSES * N_EACH


def at_once(change: Callable[[int], object]) -> None:
    """Call `change` with 0 to N - 1, in several processes."""
    children = []
    for process in range(N_PROCESSES):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                for each in range(N_EACH):
                    change(process * N_EACH + each)
                status = 0
            finally:
                os._exit(status)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * N_PROCESSES


def test_no_simultaneous_pin_is_lost(tmp_path: Path) -> None:
    pins = Pins(tmp_path / "new" / "pins.json")
    at_once(lambda number: pins.keep(str(number), "x"))
    assert len(pins.read()) == N
    at_once(lambda number: pins.drop(str(number)))
    assert pins.read() == {}


def test_no_simultaneously_added_model_is_lost(home: Path) -> None:
    at_once(lambda number: add_model(f"owner/name{number}"))
    assert len(added_models()) == N


@contextmanager
def stopped_holder(hold: Callable[[], object]) -> Iterator[int]:
    """A process that holds a lock and is stopped; its number."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with hold():  # type: ignore[attr-defined]
                os.write(writer, b"x")
                signal.pause()
        finally:
            os._exit(1)
    os.read(reader, 1)
    os.kill(child, signal.SIGSTOP)
    try:
        yield child
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_a_lock_that_is_not_released_names_its_holder(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = tmp_path / "x.lock"
    with (
        stopped_holder(lambda: hold_lock(lock, "")) as pid,
        pytest.raises(UserError, match=rf"process \({pid}: .*, stopped\) is busy. Wait for it or"),
        hold_lock(lock, "is busy", seconds=0.1),
    ):
        pass
    with hold_lock(lock, "is busy", seconds=0.1):  # released by the system
        pass
    monkeypatch.setattr(files, "LOCK_SECONDS", 0.1)
    model = save_model_folder("gpt2", tmp_path / "model")
    add_model("owner/name")
    (listed,) = home.rglob("models.json")
    with stopped_holder(lambda: lock_for_changes(listed)) as pid:
        status, _, said = call("models", "add", str(model))
    assert status == 2 and said.count("\n") == 1 and f"process ({pid}: " in said


def test_a_link_is_followed_even_to_a_file_that_does_not_exist_yet(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    link, target = tmp_path / "link", tmp_path / "there" / "target"
    link.symlink_to(target)
    for text in ("first", "second"):
        write_text_atomically(link, text)
        assert link.is_symlink() and target.read_text() == text
    assert [*target.parent.iterdir()] == [target]


def test_a_device_stays_one(tmp_path: Path) -> None:
    number = os.stat(os.devnull).st_rdev
    device = tmp_path / "null"
    try:
        os.mknod(device, stat.S_IFCHR | 0o600, number)
        os.close(os.open(device, os.O_WRONLY))
    except OSError:  # only root makes devices
        device = Path(os.devnull)
    write_text_atomically(device, "text")
    assert stat.S_ISCHR(device.stat().st_mode) and device.stat().st_rdev == number
    assert not [*device.parent.glob(".work-*")]


def test_an_error_names_the_file_and_not_its_temporary_path(tmp_path: Path) -> None:
    target = tmp_path / "target"
    with pytest.raises(OSError) as error, atomic_file(target):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert error.value.filename == str(target)
    with pytest.raises(OSError) as error, atomic_file(target) as part:
        (part / "below").touch()
    assert error.value.filename == str(target)
