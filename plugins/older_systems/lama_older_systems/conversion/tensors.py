"""Read weights of old formats from untrusted files, and write safetensors.

torch's restricted loader reads pickles: it builds only tensors and plain values. Links from an HDF5
file to other files are ignored. Sizes are compared with the file's bytes before memory is
allocated.
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
from lama_core.models.model_folder import LIBRARY_ERRORS, check_memory

CHUNK = 1 << 24  # numbers to write at once
# Finds the refused name in an error of torch's restricted loader.
FORBIDDEN = re.compile(r"(?:GLOBAL|[Cc]an only \w+ \w+ for|class) ([\w.]+)")
# Largest accepted compression ratio of an HDF5 array.
COMPRESSED = 100


class Array(Protocol):
    """An array to write: a numpy array, or a data set of an open HDF5 file."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __getitem__(self, rows: Any) -> Any: ...


def read_pickle(path: Path, allowed: Sequence[type] = ()) -> Any:
    """Return a torch pickle's content: tensors, plain values and instances of `allowed`.

    No code in the pickle runs. Raises UserError if it references anything else, or is damaged.
    """
    from pickle import UnpicklingError  # noqa: TID251 - raised by torch's restricted loader

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
            f"Refused: {path} references {found[1][:80]}, which could run code; nothing was "
            "executed. Download the official release."
        ) from error
    except (EOFError, *LIBRARY_ERRORS) as error:
        raise _damaged(path) from error


def _damaged(path: Path) -> UserError:
    return UserError(f"Damaged or not a torch file: {path}. Copy or download it again.")


def read_state(content: Any, path: Path) -> dict[str, NDArray[np.float32]]:
    """Return a pickle's tensors by name in float32; raise UserError for any other content."""
    import torch

    if not isinstance(content, Mapping) or not content:
        raise UserError(f"{path} has no named weights: it isn't a supported release.")
    found = {}
    for name, value in content.items():
        if not isinstance(name, str) or not isinstance(value, torch.Tensor):
            raise UserError(f"{path}: {str(name)[:80]!r} is not a tensor.")
        if value.layout is not torch.strided or value.is_complex() or value.is_quantized:
            raise UserError(f"{path}: {name[:80]!r} is not a dense, real, unquantised tensor.")
        if value.is_meta:
            raise UserError(f"{path}: tensor {name[:80]!r} has no data: the file is incomplete.")
        stored = value.untyped_storage().nbytes()
        if value.numel() * value.element_size() > max(stored, 1):  # a view with repeated elements
            raise UserError(f"{path}: tensor {name[:80]!r} is larger than its stored data.")
        found[name] = value.detach().to(torch.float32).contiguous().numpy()
    return found


class Hdf5:
    """The arrays of an open HDF5 file, by name."""

    def __init__(self, path: Path, opened: Any) -> None:
        self.path = path
        self._opened = opened

    def __contains__(self, name: str) -> bool:
        return self._find(name) is not None

    def _find(self, name: str) -> Any:
        """Return the array with this name; None if it is missing or stored in another file."""
        import h5py

        group = self._opened
        for part in name.split("/"):
            if not isinstance(group, h5py.Group):
                return None
            # Only hard links stay in this file.
            if not isinstance(group.get(part, getlink=True), h5py.HardLink):
                return None
            group = group[part]
        outside = not isinstance(group, h5py.Dataset) or group.external or group.is_virtual
        return None if outside else group

    def array(self, name: str, shape: tuple[int, ...]) -> Array:
        """Return an array without reading it.

        Raises UserError unless it has this shape, contains floats and is stored in full.
        """
        found = self._find(name)
        if found is None:
            raise UserError(f"{self.path} has no {name}: incomplete, or another release.")
        if found.shape != shape or found.dtype.kind != "f":
            raise UserError(
                f"{self.path}: {name} has shape {found.shape}; the options and the vocabulary "
                f"require {shape}. One of these files belongs to another release."
            )
        if found.nbytes > COMPRESSED * max(1, found.id.get_storage_size()):
            raise UserError(f"{self.path}: {name} is incomplete. Copy or download it again.")
        check_memory(f"{self.path}: {name}", found.nbytes)
        return found

    def read(self, name: str, *shape: int) -> NDArray[np.float32]:
        """Read an array into memory, with the checks of `array`."""
        return np.asarray(self.array(name, shape)[...], dtype=np.float32)


def check_h5py(name: str) -> None:
    """Raise UserError if h5py isn't installed. name: the HDF5 file to read."""
    try:
        import h5py  # noqa: F401 - only whether it is installed
    except ImportError as error:
        raise UserError(
            f"{name} is HDF5, and h5py is not installed. Run `pip install h5py`, then try again."
        ) from error


@contextmanager
def open_hdf5(path: Path) -> Iterator[Hdf5]:
    """Open an HDF5 file for the block.

    Raises UserError if the file isn't HDF5 or is truncated, or if h5py isn't installed.
    """
    check_h5py(path.name)
    import h5py

    try:
        with h5py.File(path, "r") as opened:
            yield Hdf5(path, opened)
    except (OSError, RuntimeError, KeyError) as error:
        reason = (str(error).splitlines() or ["it can't be read"])[0]
        raise UserError(f"Not a complete HDF5 file: {path} ({reason[:200]}).") from error


def write_tensors(path: Path, tensors: Mapping[str, Array]) -> None:
    """Write arrays as float32 safetensors, some rows at a time to save memory."""
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


def get_weight(
    state: Mapping[str, NDArray[np.float32]], name: str, shape: tuple[int, ...], path: Path
) -> NDArray[np.float32]:
    """Return a weight of a release; raise UserError unless it exists in that shape."""
    if name not in state:
        raise UserError(f"{path} has no weight {name}: incomplete, or another release.")
    found = state[name]
    if found.shape != shape:
        raise UserError(
            f"{path}: {name} has shape {found.shape}; the configuration and the dictionary "
            f"require {shape}. One of these files belongs to another release."
        )
    return found


def size_of(config: Mapping[str, Any], name: str, path: Path, most: int = 1 << 24) -> int:
    """Return a size in a configuration; raise UserError unless it is an integer in 1..most."""
    value = config.get(name)
    if type(value) is not int or not 0 < value <= most:
        raise UserError(f"{path}: invalid {name}: {str(value)[:40]}. Expected 1 to {most:,}.")
    return value


def read_lines(path: Path) -> list[str]:
    """Return a text file's lines; raise UserError if it isn't UTF-8."""
    try:
        lines = read_file(path).decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 text (byte {error.start}).") from error
    return lines if lines[-1] else lines[:-1]
