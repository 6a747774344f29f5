"""Disks that are full or can't be written, where this process may mount them."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def mounted(place: Path, options: str) -> Iterator[Path | None]:
    """A file system of its own at `place`; None where none can be mounted."""
    place.mkdir(exist_ok=True)
    mount = shutil.which("mount")
    command = [mount or "mount", "-t", "tmpfs", "-o", options, "lama-test", str(place)]
    if mount is None or subprocess.run(command, capture_output=True, check=False).returncode:
        yield None
        return
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)
