"""Fetching from a server on this machine that breaks off, stalls, lies, redirects and refuses."""

import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import local_http
import pytest
from local_http import SilentHandler
from until import until

from lama_core.downloads import SourceFile, transfer
from lama_core.downloads.retry import Patience
from lama_core.downloads.transfer import fetch
from lama_core.errors import UserError
from lama_core.progress import Progress

CONTENT = bytes(range(256)) * 1200
QUICK = Patience(connect=30, read=30, attempts=3, pause=0.01)


@dataclass
class Served:
    """What the server does with each request (the last again and again), and what it saw."""

    answers: list[Callable[["Handler"], None]]
    address: str = ""
    ranges: list[str | None] = field(default_factory=list)
    done: threading.Event = field(default_factory=threading.Event)


class Handler(SilentHandler):
    """Answers as `Served` says."""

    served: Served

    def do_GET(self) -> None:
        at = len(self.served.ranges)
        self.served.ranges.append(self.headers.get("Range"))
        self.served.answers[min(at, len(self.served.answers) - 1)](self)

    def head(self, status: int, length: int, **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(length))
        self.send_header("ETag", '"v1"')
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()


def whole(handler: Handler, n_bytes: int = len(CONTENT)) -> None:
    """The file, or the rest of it if a range was asked for; at most `n_bytes`."""
    asked = handler.headers.get("Range")
    start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0
    if start >= len(CONTENT):
        handler.head(416, 0, Content_Range=f"bytes */{len(CONTENT)}")
        return
    status = 206 if asked else 200
    span = f"bytes {start}-{len(CONTENT) - 1}/{len(CONTENT)}"
    handler.head(status, len(CONTENT) - start, **({"Content_Range": span} if asked else {}))
    handler.wfile.write(CONTENT[start : start + n_bytes])


def breaking_after(n_bytes: int) -> Callable[[Handler], None]:
    """Send `n_bytes` of what was asked for, then close the connection."""

    def answer(handler: Handler) -> None:
        whole(handler, n_bytes)
        handler.close_connection = True

    return answer


def stalling(handler: Handler) -> None:
    """Send a little, then nothing until the test is over."""
    handler.head(200, len(CONTENT))
    handler.wfile.write(CONTENT[:1000])
    handler.wfile.flush()
    handler.served.done.wait(5)


def status(code: int) -> Callable[[Handler], None]:
    return lambda handler: handler.head(code, 0)


def other_bytes(handler: Handler) -> None:
    handler.head(200, 5)
    handler.wfile.write(b"wrong")


def redirect(handler: Handler) -> None:
    handler.head(302, 0, Location="/elsewhere")


@contextmanager
def serving(*answers: Callable[[Handler], None]) -> Iterator[Served]:
    """A server that answers each request in turn as told."""
    served = Served(list(answers))
    with local_http.serving(Handler, served=served) as served.address:
        try:
            yield served
        finally:
            served.done.set()


def the_file(served: Served, **fields: object) -> SourceFile:
    return SourceFile(f"{served.address}/data.zip", "data.zip", **fields)  # type: ignore[arg-type]


def test_a_whole_file_is_fetched_once_with_progress(tmp_path: Path) -> None:
    seen: list[Progress] = []
    with serving(whole) as served:
        file = the_file(served, sha256=hashlib.sha256(CONTENT).hexdigest())
        path = fetch(file, tmp_path, patience=QUICK, on_progress=seen.append)
        fetch(file, tmp_path, patience=QUICK)
    assert path.read_bytes() == CONTENT
    assert len(served.ranges) == 1
    assert (seen[-1].done, seen[-1].total) == (len(CONTENT), len(CONTENT))
    assert [step.done for step in seen] == sorted(step.done for step in seen)
    assert not list(tmp_path.glob("*.part*"))


def test_a_broken_connection_is_continued_where_it_broke(tmp_path: Path) -> None:
    with serving(breaking_after(100_000), breaking_after(50_000), whole) as served:
        path = fetch(the_file(served), tmp_path, patience=QUICK)
    assert path.read_bytes() == CONTENT
    assert served.ranges == [None, "bytes=100000-", "bytes=150000-"]


def test_a_later_command_continues_too(tmp_path: Path) -> None:
    with serving(breaking_after(100_000), status(503), whole) as served:
        with pytest.raises(UserError, match="100,000 bytes are kept"):
            fetch(the_file(served), tmp_path, patience=replace(QUICK, attempts=2))
        assert not (tmp_path / "data.zip").exists()
        fetch(the_file(served), tmp_path, patience=replace(QUICK, attempts=1))
    assert served.ranges[-1] == "bytes=100000-"
    assert (tmp_path / "data.zip").read_bytes() == CONTENT


def test_a_server_that_ignores_ranges_starts_over(tmp_path: Path) -> None:
    def from_the_start(handler: Handler) -> None:
        handler.head(200, len(CONTENT))
        handler.wfile.write(CONTENT)

    with serving(breaking_after(100_000), from_the_start) as served:
        path = fetch(the_file(served), tmp_path, patience=QUICK)
    assert path.read_bytes() == CONTENT


def test_a_server_that_continues_elsewhere_is_not_believed(tmp_path: Path) -> None:
    def from_elsewhere(handler: Handler) -> None:
        handler.head(206, 10, Content_Range=f"bytes 7-16/{len(CONTENT)}")
        handler.wfile.write(CONTENT[7:17])

    with serving(breaking_after(100_000), from_elsewhere, whole) as served:
        path = fetch(the_file(served), tmp_path, patience=QUICK)
    assert path.read_bytes() == CONTENT
    assert served.ranges == [None, "bytes=100000-", None]


def test_a_stall_is_given_up_after_the_stated_time_and_tries(tmp_path: Path) -> None:
    with serving(stalling) as served:
        with pytest.raises(UserError, match=r"0\.2 seconds.*again to resume"):
            fetch(the_file(served), tmp_path, patience=replace(QUICK, read=0.2))
        # Each try got equally far: the first, and two more that brought nothing new. A busy server
        # may see the last one only after it was given up.
        until(lambda: len(served.ranges) == QUICK.attempts)


def test_overload_is_tried_again_and_then_said_and_redirects_are_followed(tmp_path: Path) -> None:
    with serving(status(503), redirect, whole) as served:
        assert fetch(the_file(served), tmp_path, patience=QUICK).read_bytes() == CONTENT
    with serving(status(503)) as served:
        with pytest.raises(UserError, match="answered 503 Service Unavailable"):
            fetch(the_file(served), tmp_path / "b", patience=QUICK)
        assert len(served.ranges) == QUICK.attempts


@pytest.mark.parametrize("code", [403, 404])
def test_a_refusal_is_said_at_once(tmp_path: Path, code: int) -> None:
    with serving(status(code)) as served:
        with pytest.raises(UserError, match=f"answered {code}.*data import"):
            fetch(the_file(served), tmp_path, patience=QUICK)
        assert len(served.ranges) == 1


def test_an_unencrypted_redirect_of_an_encrypted_address_is_refused() -> None:
    import requests

    answer = requests.Response()
    answer.status_code, answer.url = 200, "http://elsewhere.example/data.zip"
    file = SourceFile("https://authors.example/data.zip", "data.zip")
    with pytest.raises(UserError, match="not encrypted"):
        transfer._check_response(file, answer)


@pytest.mark.parametrize("algorithm", ["sha256", "sha1"])
def test_wrong_bytes_are_thrown_away(tmp_path: Path, algorithm: str) -> None:
    right = hashlib.new(algorithm, CONTENT).hexdigest()
    with serving(other_bytes, whole) as served:
        file = the_file(served, **{algorithm: right})
        with pytest.raises(UserError, match="not the published file"):
            fetch(file, tmp_path, patience=QUICK)
        assert [path.name for path in tmp_path.iterdir()] == []
        assert fetch(file, tmp_path, patience=QUICK).read_bytes() == CONTENT


def test_a_file_that_changed_since_its_first_fetch_is_refused_unless_repinned(
    tmp_path: Path,
) -> None:
    with serving(whole, other_bytes) as served:
        file = the_file(served)
        fetch(file, tmp_path, patience=QUICK).unlink()
        with pytest.raises(UserError, match=r"has changed since its first download.*--repin"):
            fetch(file, tmp_path, patience=QUICK)
        assert not (tmp_path / "data.zip").exists()
        fetch(file, tmp_path, patience=QUICK, repin=True)
        assert (tmp_path / "data.zip").read_bytes() == b"wrong"


def test_a_damaged_copy_is_fetched_again(tmp_path: Path) -> None:
    with serving(whole) as served:
        file = the_file(served)
        fetch(file, tmp_path, patience=QUICK).write_bytes(b"damaged")
        assert fetch(file, tmp_path, patience=QUICK).read_bytes() == CONTENT


def test_more_bytes_than_allowed_are_refused(tmp_path: Path) -> None:
    with (
        serving(whole) as served,
        pytest.raises(UserError, match="larger than the limit of 1,000 bytes"),
    ):
        fetch(the_file(served, max_bytes=1000), tmp_path, patience=QUICK)
