"""Models: list, fetch, add, remove and convert them."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lama_core.files import format_bytes, user_path
from lama_core.models.cache import Precision, check_and_add_model, load_model
from lama_core.models.conversion.convert import convert as _convert
from lama_core.models.cpu import NO_BF16 as NO_BF16
from lama_core.models.cpu import find_cpu as find_cpu
from lama_core.models.cpu import has_bf16 as has_bf16
from lama_core.models.devices import use_device as use_device
from lama_core.models.sources.catalog import (
    Entry,
    ModelRequest,
    added_models,
    all_models,
    find_model,
)
from lama_core.models.sources.catalog import forget_model as _forget
from lama_core.models.sources.locations import check_folder, describe_origin, fetch, is_here
from lama_core.models.sources.locations import fault_of as fault_of
from lama_core.models.sources.locations import locate as locate
from lama_core.progress import OnProgress, Progress, Result, ignore
from lama_core.requests import Function

if TYPE_CHECKING:
    import pandas as pd

    from lama_core.models.registry import Model


@dataclass(frozen=True)
class FetchedModel:
    """A listed model and the folder of its files.

    Attributes:
        folder: The folder; None for a model on a server.
    """

    entry: Entry
    folder: Path | None

    def to_json(self) -> dict[str, Any]:
        """Return what `models get --json` prints."""
        where = {} if self.folder is None else {"folder": str(self.folder)}
        return {**model_record(self.entry), **where}


def list_models() -> "pd.DataFrame":
    """Return the models as a table.

    Returns:
        A DataFrame with a row for each model: its kind, size, source, and whether it is on this
        machine (`here`).
    """
    import pandas as pd  # slow to import

    return pd.DataFrame([model_record(entry) for entry in entries()])


def entries() -> tuple[Entry, ...]:
    """Return the entries of the list of models."""
    return tuple(all_models())


def model_record(entry: Entry) -> dict[str, Any]:
    """Return a model's entry as `models info --json` prints it."""
    known = {key: value for key, value in asdict(entry).items() if key not in ("source", "added")}
    located = locate(entry)
    return {
        **known,
        "bytes_to_fetch": entry.source.n_bytes,
        "bytes_in_fp32": entry.bytes_held("fp32"),
        "bytes_in_bf16": entry.bytes_held("bf16"),
        "how": entry.source.how,
        "place": entry.source.place,
        "revision": entry.source.revision,
        "why_not": entry.source.why or fault_of(entry),
        "here": is_here(entry),
        "identity": located.identity if located else None,
    }


def model_info(name: str) -> dict[str, Any]:
    """Return a model's entry as `models info --json` prints it.

    Args:
        name: Name of a listed model, a folder, or a hub name.

    Raises:
        UserError: If there is no such model, or the path isn't a model. The folder of an added
            model may be missing.
    """
    entry = find_model(name)
    if entry.source.how == "folder" and entry.name not in {added.name for added in added_models()}:
        check_folder(Path(entry.source.place))
    return model_record(entry)


def _get(request: ModelRequest) -> FetchedModel:
    entry = find_model(request.name)
    folder = None
    if not is_here(entry) and (origin := describe_origin(entry)):
        size = f" ({format_bytes(entry.source.n_bytes)})" if entry.source.n_bytes else ""
        request.on_note(f"Fetching {entry.title}{size}. {origin}")
    if entry.source.how != "server":
        may_repin = request.repin and entry.source.how in ("hub", "release")
        folder = fetch(entry, request.on_progress, repin=may_repin).folder
    if entry.added or folder is None:
        check_and_add_model(request.name)
    finished = Result("model", entry.name)
    request.on_progress(Progress(f"{entry.name} is on this machine", 1, 1, result=finished))
    return FetchedModel(entry, folder)


get_model = Function(
    ModelRequest,
    _get,
    lambda fetched: fetched.folder,
    """Fetch a model to this machine, or connect to a model on a server.

    Returns:
        The folder with the model's files; None for a model on a server.

    Raises:
        UserError: If the model is unknown, or fetching or connecting fails.
    """,
)


def open_model(
    name: str, *, precision: Precision = "auto", on_progress: OnProgress = ignore
) -> "Model":
    """Return a model, ready for queries; fetch and load it if necessary.

    Args:
        name: Name of a listed model, a folder, a GGUF file, a hub name or server:URL#MODEL.
        precision: Precision of the computation: auto, fp32, bf16 or bf16-weights.
        on_progress: Called with a `Progress` for each step.

    Raises:
        UserError: If the model is unknown, or can't be fetched or loaded.
    """
    return load_model(name, precision=precision, on_progress=on_progress)


def add_model(name: str) -> Entry:
    """Add a model to the list, after checking that it can be queried.

    Args:
        name: A folder, GGUF file, hub name or server:URL#MODEL.

    Raises:
        UserError: If the model can't be queried; gives the reason.
    """
    return check_and_add_model(name)


def forget_model(name: str) -> None:
    """Remove a model that the user added from the list; its files are kept.

    Raises:
        UserError: If the list has no such model, or it comes with the project.
    """
    _forget(find_model(name).name)


def convert_model(
    folder: str | Path, out: str | Path, *, on_progress: OnProgress = ignore
) -> tuple[str, Path]:
    """Convert a release in an old format (ELMo, Transformer-XL, fconv, ERNIE) to a model folder.

    Args:
        folder: Folder with the files of the release.
        out: New folder for the model; it must not exist yet.
        on_progress: Called with a `Progress` for each step.

    Returns:
        The title of the release, and the new folder.

    Raises:
        UserError: If the release is unknown or damaged, or `out` exists.
    """
    source, target = user_path(Path(folder)), user_path(Path(out))
    release = _convert(source, target, on_progress)
    on_progress(Progress("Converted", 1, 1, result=Result("model", str(target))))
    return release.title, target
