"""Weights of old formats, read without running or believing what a file says, and written.

Pickles are read by torch's own reader of weights, which builds tensors and plain values and refuses
all else; HDF5 without its links to other files. What a file claims is compared with its bytes
before anything is allocated.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lama_core.errors import UserError
from lama_core.files import read_file
from lama_core.models.model_folder import check_memory

CHUNK = 1 << 24  # numbers that are written at once
# How torch's reader names what it refuses.
FORBIDDEN = re.compile(r"(?:GLOBAL|[Cc]an only \w+ \w+ for|class) ([\w.]+)")
# A stored array may be compressed to so small a part of its size.
COMPRESSED = 100


class Array(Protocol):
    """What is written: a numpy array, or a data set of an open file."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __getitem__(self, rows: Any) -> Any: ...


def read_pickle(path: Path, allowed: Sequence[type] = ()) -> Any:
    """What a pickle of torch's holds: tensors, plain values, and values of the types allowed.

    Raises UserError for one that holds anything else, naming it, and for a damaged file; nothing
    that is in it runs.
    """
    from pickle import UnpicklingError  # noqa: TID251 - what torch's reader of weights raises

    import torch

    check_memory(str(path), path.stat().st_size)
    try:
        with torch.serialization.safe_globals(list(allowed)):
            return torch.load(path, map_location="cpu", weights_only=True)
    except UnpicklingError as error:
        found = FORBIDDEN.search(str(error))
        if not found:
            raise _damaged(path) from error
        raise UserError(
            f"{path} holds {found[1][:80]}, which is no weight and could run code: it was not "
            "read, and nothing in it was run; take the release from its own address."
        ) from error
    except (
        RuntimeError,
        EOFError,
        ValueError,
        OSError,
        LookupError,
        AttributeError,
        TypeError,
        AssertionError,
        MemoryError,
    ) as error:
        raise _damaged(path) from error


def _damaged(path: Path) -> UserError:
    return UserError(
        f"{path} is no whole file of weights that torch wrote: copy or fetch it again."
    )


def read_state(content: Any, path: Path) -> dict[str, NDArray[np.float32]]:
    """A pickle's tensors by name, in 32 bits. Raises UserError for any other content."""
    import torch

    if not isinstance(content, Mapping) or not content:
        raise UserError(f"{path} holds no weights by name: it is none of the known releases.")
    found = {}
    for name, value in content.items():
        if not isinstance(name, str) or not isinstance(value, torch.Tensor):
            raise UserError(f"{path}: {str(name)[:80]!r} is no weight.")
        if value.layout is not torch.strided or value.is_complex():
            raise UserError(f"{path}: {name[:80]!r} is no plain tensor of numbers.")
        stored = value.untyped_storage().nbytes()
        if value.numel() * value.element_size() > max(stored, 1):  # a view that repeats itself
            raise UserError(f"{path}: {name[:80]!r} is larger than what is stored of it.")
        found[name] = value.detach().to(torch.float32).contiguous().numpy()
    return found


class Hdf5:
    """An HDF5 file's arrays, by their names."""

    def __init__(self, path: Path, opened: Any) -> None:
        self.path = path
        self._opened = opened

    def __contains__(self, name: str) -> bool:
        return self._find(name) is not None

    def _find(self, name: str) -> Any:
        """A data set of this very file; None if there is none of that name."""
        import h5py

        group = self._opened
        for part in name.split("/"):
            if not isinstance(group, h5py.Group):
                return None
            # A link may lead to another file.
            if not isinstance(group.get(part, getlink=True), h5py.HardLink):
                return None
            group = group[part]
        outside = not isinstance(group, h5py.Dataset) or group.external or group.is_virtual
        return None if outside else group

    def array(self, name: str, shape: tuple[int, ...]) -> Array:
        """The array of a name. Raises UserError unless it is there, in that shape and length."""
        found = self._find(name)
        if found is None:
            raise UserError(f"{self.path} holds no {name}: it isn't whole, or another release's.")
        if found.shape != shape or found.dtype.kind != "f":
            raise UserError(
                f"{self.path}: {name} has the shape {found.shape}, and {shape} by the options and "
                "the vocabulary: one of them is another release's."
            )
        if found.nbytes > COMPRESSED * max(1, found.id.get_storage_size()):
            raise UserError(f"{self.path}: {name} is not stored in full: copy or fetch it again.")
        check_memory(f"{self.path}: {name}", found.nbytes)
        return found

    def read(self, name: str, *shape: int) -> NDArray[np.float32]:
        """The same, read."""
        return np.asarray(self.array(name, shape)[...], dtype=np.float32)


def check_h5py(name: str) -> None:
    """Raise UserError if HDF5 can't be read here. name: of the file that is to be."""
    try:
        import h5py  # noqa: F401 - whether it is there
    except ImportError as error:
        raise UserError(
            f"{name} is HDF5, and h5py is not installed: `pip install h5py`, then try again."
        ) from error


@contextmanager
def open_hdf5(path: Path) -> Iterator[Hdf5]:
    """An HDF5 file, open in the block.

    Raises UserError where it is none, is cut off, or h5py isn't installed.
    """
    check_h5py(path.name)
    import h5py

    try:
        with h5py.File(path, "r") as opened:
            yield Hdf5(path, opened)
    except (OSError, RuntimeError, KeyError) as error:
        said = (str(error).splitlines() or ["it can't be read"])[0]
        raise UserError(f"{path} is no whole HDF5 file: {said[:200]}.") from error


def write_tensors(path: Path, tensors: Mapping[str, Array]) -> None:
    """Write arrays as safetensors in 32 bits, some rows at a time: none is held whole."""
    header, at = {}, 0
    for name, array in tensors.items():
        end = at + 4 * math.prod(array.shape)
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [at, end]}
        at = end
    text = json.dumps({"__metadata__": {"format": "pt"}, **header}).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as out:
        out.write(len(text).to_bytes(8, "little") + text)
        for array in tensors.values():
            n_rows = max(1, CHUNK * array.shape[0] // max(1, math.prod(array.shape)))
            for first in range(0, array.shape[0], n_rows):
                rows = np.ascontiguousarray(array[first : first + n_rows], dtype="<f4")
                out.write(rows.data)


def take(
    state: Mapping[str, NDArray[np.float32]], name: str, shape: tuple[int, ...], path: Path
) -> NDArray[np.float32]:
    """A weight of a release. Raises UserError unless it is there in that shape."""
    if name not in state:
        raise UserError(f"{path} holds no weight {name}: it isn't whole, or another release's.")
    found = state[name]
    if found.shape != shape:
        raise UserError(
            f"{path}: {name} has the shape {found.shape}, and {shape} by its configuration and "
            f"dictionary: one of them is another release's."
        )
    return found


def size_of(config: Mapping[str, Any], name: str, path: Path, most: int = 1 << 24) -> int:
    """A size that a configuration names. Raises UserError for what is none."""
    value = config.get(name)
    if type(value) is not int or not 0 < value <= most:
        raise UserError(f"{path}: {name} is {str(value)[:40]}, which is no size.")
    return value


def read_lines(path: Path) -> list[str]:
    """The lines of a text. Raises UserError for one that isn't text."""
    try:
        lines = read_file(path).decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 text (byte {error.start}).") from error
    return lines if lines[-1] else lines[:-1]
