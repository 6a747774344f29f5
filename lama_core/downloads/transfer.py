"""Downloads of files: resumed after interruptions and verified.

Bytes go to `NAME.part`. `NAME.part.etag` has the server's validator (ETag or date), so that a
download is resumed only if the server's file is unchanged. The part is renamed to NAME when its
length and checksum are right. The checksum of the first complete download is stored, and later
downloads must match it.
"""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import requests

from lama_core.downloads import SourceFile
from lama_core.downloads.checksums import Pins
from lama_core.downloads.retry import Patience, TryAgain, passing_faults, retried
from lama_core.errors import UserError, reason_of
from lama_core.files import open_file, read_file
from lama_core.progress import OnProgress, Progress, ignore

_CHUNK = 1 << 16
PINS_FILE = "checksums.json"


@contextmanager
def fetched(
    files: Sequence[SourceFile],
    folder: Path,
    on_progress: OnProgress,
    *,
    repin: bool,
) -> Iterator[list[Path]]:
    """Download the missing files to `folder`, and yield all paths to a block that installs them.

    Afterwards the files are deleted. If the block raises UserError, so are their pins, because the
    server may have sent an error or login page with status 200.
    """
    paths = [fetch(file, folder, on_progress=on_progress, repin=repin) for file in files]
    try:
        yield paths
    except UserError:
        for file in files:
            (folder / file.name).unlink(missing_ok=True)
            _pins(folder).drop(file.url)
        raise
    for path in paths:
        with suppress(OSError):  # the data are installed
            path.unlink(missing_ok=True)


def fetch(
    file: SourceFile,
    folder: Path,
    *,
    on_progress: OnProgress = ignore,
    patience: Patience | None = None,
    repin: bool = False,
) -> Path:
    """Return the path of `file` in `folder`, downloaded unless it is already complete.

    Args:
        file: The file.
        folder: Where to store it.
        on_progress: Called with the bytes so far and the total.
        patience: Timeouts and retries.
        repin: Accept a file that differs from its first download.

    Raises:
        UserError: If the server can't be reached or refuses, the checksum is wrong, or writing
            fails.
    """
    patience = patience or Patience()
    folder.mkdir(parents=True, exist_ok=True)
    target, part = folder / file.name, folder / f"{file.name}.part"
    if target.is_file():
        if not _fault(file, target, folder, repin=repin):
            return target
        target.unlink()
    try:
        retried(lambda: _continue(file, part, patience, on_progress), patience, lambda: _size(part))
    except TryAgain as reason:
        advice = f"check the network, or get the file another way and {file.by_hand}"
        if n_bytes := _size(part):
            advice = f"{n_bytes:,} bytes are kept: run the command again to resume"
        raise UserError(f"{file.url} could not be downloaded: {reason}; {advice}") from reason
    except OSError as error:
        raise UserError(
            f"{file.name} could not be written: {reason_of(error)}; the partial download is "
            "kept: run the command again to resume"
        ) from error
    fault = _fault(file, part, folder, repin=repin)
    if fault:
        _discard(part)
        raise UserError(fault)
    _pins(folder).keep(file.url, _digest(part))
    part.replace(target)
    _validator_file(part).unlink(missing_ok=True)
    return target


def _continue(file: SourceFile, part: Path, patience: Patience, on_progress: OnProgress) -> None:
    """Complete `part`; download it from the start if the server can't resume.

    Raises TryAgain for temporary failures, UserError for others.
    """
    have = _size(part)
    headers = {"Accept-Encoding": "identity"}
    stored = _validator_file(part)
    validator = read_file(stored).decode("latin-1").strip() if stored.exists() else ""
    if have and validator and validator.isprintable():  # else it starts from the beginning
        headers |= {"Range": f"bytes={have}-", "If-Range": validator}
    try:
        with (
            passing_faults(patience),
            requests.get(
                file.url, headers=headers, stream=True, timeout=(patience.connect, patience.read)
            ) as response,
        ):
            _check_response(file, response)
            if response.status_code == 416:
                _discard(part)
                raise TryAgain("the partial download was longer than the file")
            start = have if response.status_code == 206 else 0
            content_range = response.headers.get("Content-Range", "")
            if response.status_code == 206 and not content_range.startswith(f"bytes {have}-"):
                _discard(part)
                raise TryAgain("the server resumed at the wrong byte")
            length = response.headers.get("Content-Length", "")
            total = start + int(length) if length.isdigit() else None
            _check_size(file, total or 0)
            etag = response.headers.get("ETag", "")
            # A weak ETag must not be used to resume a file (RFC 9110, 13.1.5).
            strong = "" if etag.startswith("W/") else etag
            validator = strong or response.headers.get("Last-Modified", "")
            stored.write_text(validator, "latin-1")
            done = start
            with part.open("r+b" if start else "wb") as out:
                out.seek(start)
                out.truncate()
                # Not `iter_content`, which loses up to a chunk when the connection breaks.
                while chunk := response.raw.read1(_CHUNK):
                    out.write(chunk)
                    done += len(chunk)
                    _check_size(file, done)
                    on_progress(Progress(f"Fetching {file.name}", done, total, "bytes"))
            if total is not None and done < total:
                raise TryAgain(f"the connection broke after {done:,} of {total:,} bytes")
    except requests.exceptions.RequestException as error:
        raise UserError(f"{file.url} could not be downloaded: {error}") from error


def _check_response(file: SourceFile, response: requests.Response) -> None:
    if file.url.startswith("https:") and not response.url.startswith("https:"):
        raise UserError(f"{file.url} redirects to {response.url}, which is not encrypted")
    status = response.status_code
    if status in (200, 206, 416):
        return
    if status == 429 or status >= 500:
        raise TryAgain(f"the server answered {status} {response.reason}")
    raise UserError(
        f"{file.url} could not be downloaded: the server answered {status} {response.reason}; if "
        f"the file has moved, download it yourself and {file.by_hand}"
    )


def _check_size(file: SourceFile, size: int) -> None:
    if size > file.max_bytes:
        raise UserError(f"{file.url} is larger than the limit of {file.max_bytes:,} bytes")


def _fault(file: SourceFile, path: Path, folder: Path, *, repin: bool) -> str | None:
    """Return an error message if a complete file has a wrong checksum, else None."""
    for algorithm, published in (("sha256", file.sha256), ("sha1", file.sha1)):
        if published and _digest(path, algorithm) != published:
            return f"{file.url} is not the published file: its checksum differs; nothing was kept"
    pinned = _pins(folder).find(file.url)
    if pinned and not repin and _digest(path) != pinned:
        return (
            f"{file.url} has changed since its first download; nothing was kept. If you expect the "
            "change, download it again with --repin"
        )
    return None


def _digest(path: Path, algorithm: str = "sha256") -> str:
    with open_file(path) as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


def _pins(folder: Path) -> Pins:
    return Pins(folder / PINS_FILE)


def _validator_file(part: Path) -> Path:
    return part.with_name(part.name + ".etag")


def _discard(part: Path) -> None:
    part.unlink(missing_ok=True)
    _validator_file(part).unlink(missing_ok=True)


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0
