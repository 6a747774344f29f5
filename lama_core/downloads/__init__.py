"""Files from elsewhere: fetch and resume, remember checksums, unpack safely."""

from dataclasses import dataclass

_GB = 1 << 30


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to fetch.

    size: bytes, approximate unless there is a checksum. max_bytes: a larger answer is refused.
    by_hand: what to do with a file that was obtained another way.
    """

    url: str
    name: str
    size: int | None = None
    sha256: str | None = None
    sha1: str | None = None
    max_bytes: int = _GB
    by_hand: str = "use `data import`"
