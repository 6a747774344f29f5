"""Fetching of one file: resumes after a break, checks what came, keeps what was whole.

Bytes go to `NAME.part`; beside it, `NAME.part.json` keeps the server's validator (ETag or date), so
that a continued file is the same file. Only when length and checksum are right is the part renamed.
Where no checksum is published, that of the first complete fetch is pinned and later ones must
match it.
"""

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import requests
import urllib3

from lama_core.datasets.library.catalog import SourceFile
from lama_core.errors import UserError
from lama_core.files import open_file, read_file, write_text_whole

_CHUNK = 1 << 16
PINS_FILE = "checksums.json"

# Called with (bytes so far, bytes in all or None).
OnBytes = Callable[[int, int | None], None]


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait and how often to try.

    connect, read: seconds without an answer or a byte. attempts: tries in a row that bring no
    byte before giving up. pause: seconds before the second try, doubled for each further one.
    """

    connect: float = 10.0
    read: float = 30.0
    attempts: int = 4
    pause: float = 1.0


class _TryAgain(Exception):
    """A failure that may pass: a broken connection, a stall, a server that is overloaded."""


def fetch(
    file: SourceFile,
    folder: Path,
    *,
    on_bytes: OnBytes | None = None,
    patience: Patience | None = None,
    repin: bool = False,
) -> Path:
    """The path of `file` in `folder`, fetched if it isn't there whole.

    repin: accept a file that differs from the one pinned at first sight.
    Raises UserError when the server can't be reached, refuses, or sends something else.
    """
    patience = patience or Patience()
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / file.name
    if target.is_file():
        if not _fault(file, target, folder, repin=repin):
            return target
        target.unlink()
    part = folder / f"{file.name}.part"
    failures, best = 0, _size(part)
    while True:
        try:
            with _full_disk_said(file):
                _continue(file, part, patience, on_bytes)
            break
        except _TryAgain as reason:
            # A try that got further is progress: only fruitless ones in a row count.
            failures = 1 if _size(part) > best else failures + 1
            best = max(best, _size(part))
            if failures >= patience.attempts:
                raise UserError(_given_up(file, str(reason), _size(part))) from reason
            time.sleep(patience.pause * 2 ** (failures - 1))
    fault = _fault(file, part, folder, repin=repin)
    if fault:
        _discard(part)
        raise UserError(fault)
    _pin(file, part, folder)
    part.replace(target)
    _validator_file(part).unlink(missing_ok=True)
    return target


def _given_up(file: SourceFile, reason: str, n_bytes: int) -> str:
    said = f"{file.url} could not be fetched: {reason}"
    if n_bytes:
        return f"{said}; {n_bytes:,} bytes are kept, the same command continues from there"
    return f"{said}; check the network, or get the file another way and {file.by_hand}"


def forget(file: SourceFile, folder: Path) -> None:
    """Remove the fetched `file` and its pin, for a file that turned out to be something else."""
    (folder / file.name).unlink(missing_ok=True)
    _write_pins(folder, {url: pin for url, pin in _pins(folder).items() if url != file.url})


def _continue(file: SourceFile, part: Path, patience: Patience, on_bytes: OnBytes | None) -> None:
    """Fetch what the part lacks. Raises _TryAgain, or UserError where trying again is no use."""
    have = _size(part)
    headers = {"Accept-Encoding": "identity"}
    validator = _read_validator(part)
    if have and validator:
        headers |= {"Range": f"bytes={have}-", "If-Range": validator}
    try:
        with requests.get(
            file.url, headers=headers, stream=True, timeout=(patience.connect, patience.read)
        ) as response:
            _check_answer(file, response)
            if response.status_code == 416:
                _discard(part)
                raise _TryAgain("the server has no more bytes than the part that was kept")
            resumed = response.status_code == 206 and _starts_at(response, have)
            if response.status_code == 206 and not resumed:
                _discard(part)
                raise _TryAgain("the server continued from another place than asked")
            start = have if resumed else 0
            total = _total(response, start)
            _check_size(file, total or 0)
            _write_validator(part, response)
            _write(file, response, part, start, total, on_bytes)
    except requests.exceptions.Timeout as error:
        raise _TryAgain(f"no answer within {patience.read:g} seconds") from error
    except urllib3.exceptions.ReadTimeoutError as error:
        raise _TryAgain(f"no byte within {patience.read:g} seconds") from error
    except (requests.exceptions.ConnectionError, urllib3.exceptions.HTTPError) as error:
        raise _TryAgain("the connection broke") from error
    except requests.exceptions.RequestException as error:
        raise UserError(f"{file.url} could not be fetched: {error}") from error


def _check_answer(file: SourceFile, response: requests.Response) -> None:
    if file.url.startswith("https:") and not response.url.startswith("https:"):
        raise UserError(f"{file.url} redirects to {response.url}, which is not encrypted")
    status = response.status_code
    if status in (200, 206, 416):
        return
    if status == 429 or status >= 500:
        raise _TryAgain(f"the server answered {status} {response.reason}")
    raise UserError(
        f"{file.url} could not be fetched: the server answered {status} {response.reason}; if the "
        f"file has moved, download it yourself and {file.by_hand}"
    )


def _write(
    file: SourceFile,
    response: requests.Response,
    part: Path,
    start: int,
    total: int | None,
    on_bytes: OnBytes | None,
) -> None:
    done = start
    with part.open("r+b" if start else "wb") as out:
        out.seek(start)
        out.truncate()
        # As they come: `iter_content` would lose up to a chunk when the connection breaks.
        while chunk := response.raw.read1(_CHUNK):
            out.write(chunk)
            done += len(chunk)
            _check_size(file, done)
            if on_bytes:
                on_bytes(done, total)
    if total is not None and done < total:
        raise _TryAgain(f"the connection broke after {done:,} of {total:,} bytes")


def _check_size(file: SourceFile, size: int) -> None:
    if size > file.max_bytes:
        raise UserError(f"{file.url} is larger than the {file.max_bytes:,} bytes that it may have")


def _starts_at(response: requests.Response, start: int) -> bool:
    return response.headers.get("Content-Range", "").startswith(f"bytes {start}-")


def _total(response: requests.Response, start: int) -> int | None:
    length = response.headers.get("Content-Length", "")
    return start + int(length) if length.isdigit() else None


def _fault(file: SourceFile, path: Path, folder: Path, *, repin: bool) -> str | None:
    """Why the complete file isn't the right one, or None."""
    if file.sha256 and digest(path) != file.sha256:
        return f"{file.url} is not the published file: its checksum differs; nothing was kept"
    if file.sha1 and digest(path, "sha1") != file.sha1:
        return f"{file.url} is not the published file: its checksum differs; nothing was kept"
    pinned = _pins(folder).get(file.url)
    if pinned and not repin and digest(path) != pinned:
        return (
            f"{file.url} differs from what it was when it was first fetched; nothing was kept. "
            "If the change is expected, fetch it again with --repin"
        )
    return None


def digest(path: Path, algorithm: str = "sha256") -> str:
    """The file's checksum in hexadecimal digits."""
    with open_file(path) as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


def _pins(folder: Path) -> dict[str, str]:
    path = folder / PINS_FILE
    if not path.exists():
        return {}
    try:
        pins = json.loads(read_file(path))
        return {str(url): str(pin) for url, pin in pins.items()}
    except (ValueError, AttributeError, RecursionError) as error:
        raise UserError(
            f"{path} is damaged: without it nothing says whether a file is what it was when it was "
            "first fetched; remove it to take what comes now"
        ) from error


def _pin(file: SourceFile, path: Path, folder: Path) -> None:
    _write_pins(folder, _pins(folder) | {file.url: digest(path)})


def _write_pins(folder: Path, pins: dict[str, str]) -> None:
    write_text_whole(folder / PINS_FILE, json.dumps(pins, indent=1))


def _validator_file(part: Path) -> Path:
    return part.with_name(part.name + ".json")


def _read_validator(part: Path) -> str:
    path = _validator_file(part)
    try:
        stored = json.loads(read_file(path)) if path.exists() else {}
    except (ValueError, RecursionError):
        return ""  # the file is fetched from its beginning
    return str(stored.get("validator", "")) if isinstance(stored, dict) else ""


def _write_validator(part: Path, response: requests.Response) -> None:
    etag = response.headers.get("ETag", "")
    # A weak ETag may not be used to continue a file (RFC 9110, 13.1.5).
    strong = etag if etag and not etag.startswith("W/") else ""
    validator = strong or response.headers.get("Last-Modified", "")
    _validator_file(part).write_text(json.dumps({"validator": validator}), "utf-8")


def _discard(part: Path) -> None:
    part.unlink(missing_ok=True)
    _validator_file(part).unlink(missing_ok=True)


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


@contextmanager
def _full_disk_said(file: SourceFile) -> Iterator[None]:
    try:
        yield
    except requests.exceptions.RequestException:
        raise
    except OSError as error:
        raise UserError(
            f"{file.name} could not be written: {error.strerror or error}; what was fetched so far "
            "is kept, the same command continues from there"
        ) from error
