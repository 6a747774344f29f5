"""Fetching of one file: resumes after a break, checks what came, keeps what was whole.

Bytes go to `NAME.part`; beside it, `NAME.part.json` keeps the server's validator (ETag or date), so
that a continued file is the same file. Only when length and checksum are right is the part renamed.
Where no checksum is published, that of the first complete fetch is pinned and later ones must
match it.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import requests

from lama_core.downloads import SourceFile
from lama_core.downloads.checksums import Pins
from lama_core.downloads.retry import Patience, TryAgain, passing_faults, retried
from lama_core.errors import UserError
from lama_core.files import open_file, read_file
from lama_core.progress import OnProgress, Progress

_CHUNK = 1 << 16
PINS_FILE = "checksums.json"

# Called with (bytes so far, bytes in all or None).
OnBytes = Callable[[int, int | None], None]


@contextmanager
def fetched(
    files: Sequence[SourceFile],
    folder: Path,
    on_progress: OnProgress,
    *,
    stage: str = "Fetching",
    patience: Patience | None = None,
    repin: bool = False,
) -> Iterator[list[Path]]:
    """The files in `folder`, fetched where needed, for a block that reads them.

    If the block raises UserError they are removed with their pins: the page of an error or of a
    portal may come with status 200.
    """
    paths = []
    for file in files:

        def on_bytes(done: int, total: int | None, name: str = file.name) -> None:
            on_progress(Progress(f"{stage} {name}", done, total, "bytes"))

        paths.append(fetch(file, folder, on_bytes=on_bytes, patience=patience, repin=repin))
    try:
        yield paths
    except UserError:
        for file in files:
            (folder / file.name).unlink(missing_ok=True)
            _pins(folder).drop(file.url)
        raise


def fetch(
    file: SourceFile,
    folder: Path,
    *,
    on_bytes: OnBytes | None = None,
    patience: Patience | None = None,
    repin: bool = False,
) -> Path:
    """Return the path of `file` in `folder`, fetched unless it is there whole.

    repin: accept a file that differs from the one pinned at the first fetch.
    Raises UserError when the server can't be reached, refuses, or sends something else.
    """
    patience = patience or Patience()
    folder.mkdir(parents=True, exist_ok=True)
    target, part = folder / file.name, folder / f"{file.name}.part"
    if target.is_file():
        if not _fault(file, target, folder, repin=repin):
            return target
        target.unlink()
    try:
        retried(lambda: _continue(file, part, patience, on_bytes), patience, lambda: _size(part))
    except TryAgain as reason:
        raise UserError(_given_up(file, str(reason), _size(part))) from reason
    except OSError as error:
        raise UserError(
            f"{file.name} could not be written: {error.strerror or error}; what was fetched so far "
            "is kept, the same command continues from there"
        ) from error
    fault = _fault(file, part, folder, repin=repin)
    if fault:
        _discard(part)
        raise UserError(fault)
    _pins(folder).keep(file.url, _digest(part))
    part.replace(target)
    _validator_file(part).unlink(missing_ok=True)
    return target


def _given_up(file: SourceFile, reason: str, n_bytes: int) -> str:
    said = f"{file.url} could not be fetched: {reason}"
    if n_bytes:
        return f"{said}; {n_bytes:,} bytes are kept, the same command continues from there"
    return f"{said}; check the network, or get the file another way and {file.by_hand}"


def _continue(file: SourceFile, part: Path, patience: Patience, on_bytes: OnBytes | None) -> None:
    """Fetch what the part lacks. Raises TryAgain, or UserError where trying again is no use."""
    have = _size(part)
    headers = {"Accept-Encoding": "identity"}
    validator = _read_validator(part)
    if have and validator:
        headers |= {"Range": f"bytes={have}-", "If-Range": validator}
    try:
        with (
            passing_faults(patience),
            requests.get(
                file.url, headers=headers, stream=True, timeout=(patience.connect, patience.read)
            ) as response,
        ):
            _check_answer(file, response)
            if response.status_code == 416:
                _discard(part)
                raise TryAgain("the server has no more bytes than the part that was kept")
            start = have if response.status_code == 206 else 0
            place = response.headers.get("Content-Range", "")
            if response.status_code == 206 and not place.startswith(f"bytes {have}-"):
                _discard(part)
                raise TryAgain("the server continued from another place than asked")
            length = response.headers.get("Content-Length", "")
            total = start + int(length) if length.isdigit() else None
            _check_size(file, total or 0)
            _write_validator(part, response)
            _write(file, response, part, start, total, on_bytes)
    except requests.exceptions.RequestException as error:
        raise UserError(f"{file.url} could not be fetched: {error}") from error


def _check_answer(file: SourceFile, response: requests.Response) -> None:
    if file.url.startswith("https:") and not response.url.startswith("https:"):
        raise UserError(f"{file.url} redirects to {response.url}, which is not encrypted")
    status = response.status_code
    if status in (200, 206, 416):
        return
    if status == 429 or status >= 500:
        raise TryAgain(f"the server answered {status} {response.reason}")
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
        raise TryAgain(f"the connection broke after {done:,} of {total:,} bytes")


def _check_size(file: SourceFile, size: int) -> None:
    if size > file.max_bytes:
        raise UserError(f"{file.url} is larger than the {file.max_bytes:,} bytes that it may have")


def _fault(file: SourceFile, path: Path, folder: Path, *, repin: bool) -> str | None:
    """Why the complete file isn't the right one, or None."""
    for algorithm, published in (("sha256", file.sha256), ("sha1", file.sha1)):
        if published and _digest(path, algorithm) != published:
            return f"{file.url} is not the published file: its checksum differs; nothing was kept"
    pinned = _pins(folder).find(file.url)
    if pinned and not repin and _digest(path) != pinned:
        return (
            f"{file.url} differs from what it was when it was first fetched; nothing was kept. "
            "If the change is expected, fetch it again with --repin"
        )
    return None


def _digest(path: Path, algorithm: str = "sha256") -> str:
    with open_file(path) as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


def _pins(folder: Path) -> Pins:
    return Pins(folder / PINS_FILE)


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
