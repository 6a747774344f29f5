"""Where workers that share no disk store the parts of runs."""

from contextlib import suppress

from lama_core.errors import UserError, reason_of


class Address:
    """The parts at an address that `fsspec` knows, such as `s3://bucket/folder`.

    A file that was cut while it was written is found damaged by its digest, and written again.
    """

    def __init__(self, address: str) -> None:
        import fsspec

        self._address = address
        try:
            self._files, self._root = fsspec.core.url_to_fs(address)
        except (ValueError, ImportError, OSError) as error:
            raise UserError(f"Parts can't be stored at {address!r}: {reason_of(error)}.") from error

    def read(self, name: str) -> bytes | None:
        try:
            content: bytes = self._files.cat_file(f"{self._root}/{name}")
        except FileNotFoundError:
            return None
        return content

    def write(self, name: str, content: bytes) -> None:
        self._files.makedirs(self._root, exist_ok=True)
        self._files.pipe_file(f"{self._root}/{name}", content)

    def delete(self) -> None:
        with suppress(FileNotFoundError):
            self._files.rm(self._root, recursive=True)

    def __str__(self) -> str:
        return self._address
