"""Downloads that can be resumed, stored checksums, and safe unpacking of archives."""

from dataclasses import dataclass

_GB = 1 << 30


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to download.

    size: bytes, approximate without a checksum. max_bytes: larger responses are refused.
    by_hand: how to install a file that the user downloaded another way, for error messages.
    """

    url: str
    name: str
    size: int | None = None
    sha256: str | None = None
    sha1: str | None = None
    max_bytes: int = _GB
    by_hand: str = "use `data import`"
