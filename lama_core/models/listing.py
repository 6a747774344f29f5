"""The list of models: list_models, model_info and get_model."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lama_core.files import format_bytes
from lama_core.models.cache import check_and_add_model
from lama_core.models.sources.catalog import (
    Entry,
    ModelRequest,
    added_models,
    all_models,
    find_model,
)
from lama_core.models.sources.locations import (
    check_folder,
    describe_origin,
    fault_of,
    fetch,
    is_here,
    locate,
)
from lama_core.progress import Progress, Result
from lama_core.requests import Function

if TYPE_CHECKING:
    import pandas as pd


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
        record = model_record(self.entry)
        return record if self.folder is None else record | {"folder": str(self.folder)}


def list_models() -> "pd.DataFrame":
    """Return the models as a table.

    Returns:
        A DataFrame with a row for each model: its kind, size, source, and whether it is on this
        machine (`here`).
    """
    import pandas as pd  # slow to import

    return pd.DataFrame([model_record(entry) for entry in all_models()])


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
        folder = fetch(
            entry,
            request.on_progress,
            repin=request.repin and entry.source.how in ("hub", "release"),
        ).folder
    if entry.added or folder is None:
        check_and_add_model(request.name)
    request.on_progress(
        Progress(f"{entry.name} is on this machine", 1, 1, result=Result("model", entry.name))
    )
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
