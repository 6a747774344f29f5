"""What is here: the starter sets, what was fetched or imported, and what could be fetched.

Each installed set is a folder in `data_dir()/datasets` with a `source.json` that names its format,
licence, citation and counts, so that a list costs no reading. A folder is filled beside its place
and moved in when it has been read whole. One that is damaged is listed as that, and stops no other.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import orjson

from lama_core import paths
from lama_core.datasets import bats, formats, lama, lpaqa
from lama_core.datasets.aliases import ALIASES_FILE, with_aliases
from lama_core.datasets.dataset import SQUAD_RELATION, AnalogyDataset, Content, Dataset
from lama_core.datasets.library import published
from lama_core.errors import NotFetchedError, UserError, did_you_mean
from lama_core.files import current_folder, current_names, read_file, user_path

STARTER = "starter"
STARTER_ANALOGIES = "starter-analogies"
RECORD_FILE = "source.json"
MAX_RECORD = 1 << 20  # bytes
MAX_NAME = 60  # characters; a file system takes 255 bytes
_STARTER_CITATION = "the project's own collection; origins stand beside each fact"


@dataclass(frozen=True, slots=True)
class Listed:
    """A row of the list of sources. n_relations, n_facts (or pairs): None until it is installed.

    size: bytes to fetch, None where it isn't known or nothing is to be fetched. fault: why an
    installed one can't be used, and the remedy; its title then, too.
    """

    name: str
    title: str
    kind: Content
    licence: str
    citation: str
    homepage: str
    n_relations: int | None
    n_facts: int | None
    size: int | None
    installed: bool = True
    path: str = ""
    fault: str = ""


_STARTERS = {
    row.name: row
    for row in (
        published.Source(
            STARTER,
            "Starter facts",
            "facts",
            "CC0 1.0, CC BY 4.0 (GeoNames), WordNet licence; see assets/datasets/starter",
            _STARTER_CITATION,
            "",
        ),
        published.Source(
            STARTER_ANALOGIES, "Starter analogies", "analogies", "CC0 1.0", _STARTER_CITATION, ""
        ),
    )
}


def starter_dir() -> Path:
    """Folder of the facts that come with the project, in LAMA's layout."""
    return paths.ASSETS / "datasets" / STARTER


def starter_analogies_dir() -> Path:
    """Folder of the analogies that come with the project, in BATS's layout."""
    return paths.ASSETS / "datasets" / STARTER_ANALOGIES


def datasets_dir() -> Path:
    """Folder of everything that was fetched or imported."""
    return paths.data_dir() / "datasets"


def installed_dir(name: str) -> Path:
    """Folder where the source `name` lies once it was fetched or imported."""
    return current_folder(datasets_dir() / name)


def installed_names() -> tuple[str, ...]:
    """Names of what was fetched or imported, sorted, damaged ones too; none if it can't be read."""
    return tuple(row.name for row in _installed() if row.path)


def _installed() -> list[Listed]:
    """The rows of what was fetched or imported; one that says so if the library can't be read."""
    try:
        names = current_names(datasets_dir())
    except UserError as error:
        return [_damaged("datasets", str(error), "")]
    return [_row(name) for name in names]


def _row(name: str) -> Listed:
    try:
        return read_record(name)
    except UserError as error:
        return _damaged(name, str(error), str(installed_dir(name)))


def _damaged(name: str, fault: str, path: str) -> Listed:
    empty = published.Source(name, fault, "facts", "", "", "")
    return _listed(empty, path=path, fault=fault)


def _listed(
    source: published.Source,
    n_relations: int | None = None,
    n_facts: int | None = None,
    **more: Any,
) -> Listed:
    own = (source.name, source.title, source.kind)
    texts = (source.licence, source.citation, source.homepage)
    size = source.size if source.files else None
    return Listed(*own, *texts, n_relations, n_facts, size, **more)


def _names_of(*kinds: Content) -> tuple[str, ...]:
    """Names of what is installed and can be used, of these kinds."""
    return tuple(row.name for row in _installed() if row.kind in kinds and not row.fault)


def dataset_names() -> tuple[str, ...]:
    """Names that `load_dataset` takes now: the starter facts, then what is installed."""
    return (STARTER, *_names_of("facts", "prompts"))


def prompt_set_names() -> tuple[str, ...]:
    """Names of the sets of prompts that are installed, such as `lpaqa`."""
    return _names_of("prompts")


def pair_set_names() -> tuple[str, ...]:
    """Those of them that bring training pairs."""
    return tuple(n for n in prompt_set_names() if pairs_dir(Path(n)) != installed_dir(n))


def analogy_names() -> tuple[str, ...]:
    """Names that `load_analogies` takes now: the starter analogies, then what is installed."""
    return (STARTER_ANALOGIES, *_names_of("analogies"))


def lama_vocabulary_path() -> Path | None:
    """LAMA's published list of 21,018 candidates, once LAMA was fetched or imported, else None."""
    folder = installed_dir("lama")
    found = sorted(folder.rglob(published.LAMA_VOCABULARY)) if folder.is_dir() else []
    return found[0] if found else None


def load_dataset(name_or_path: str | Path) -> Dataset:
    """The facts of that name (starter or installed), or those at that path, in any known format.

    Raises UserError, with the nearest name, if there are none.
    """
    name = str(name_or_path)
    if name == STARTER:
        own = _STARTERS[name]
        dataset = formats.load_facts(
            starter_dir(), name=name, licence=own.licence, citation=own.citation
        )
        return with_aliases(dataset, starter_dir() / ALIASES_FILE)
    if name in installed_names():
        record = read_record(name)
        return formats.load_facts(
            installed_dir(name),
            name=name,
            relations_file=relations_file_for(installed_dir(name)),
            licence=record.licence,
            citation=record.citation,
        )
    path = user_path(name_or_path)
    if path.exists():
        return formats.load_facts(path, relations_file=relations_file_for(path))
    raise _not_here("dataset", name, dataset_names())


def load_analogies(name_or_path: str | Path) -> AnalogyDataset:
    """The analogies of that name (starter-analogies or installed), or those at that path.

    Raises UserError, with the nearest name, if there are none.
    """
    name = str(name_or_path)
    if name == STARTER_ANALOGIES:
        return bats.load(starter_analogies_dir(), name=name, licence=_STARTERS[name].licence)
    if name in installed_names():
        record = read_record(name)
        return bats.load(
            installed_dir(name), name=name, licence=record.licence, citation=record.citation
        )
    path = user_path(name_or_path)
    if path.exists():
        return bats.load(path)
    raise _not_here("set of analogies", name, analogy_names())


def safe_name(name: str) -> str:
    """`name` as a folder's name: no separators, no leading dot.

    Raises UserError if nothing is left of it, or it is too long.
    """
    safe = "".join(c if c.isalnum() or c in "-_." else "-" for c in name).strip(".-")
    if not safe:
        raise UserError(f"{name!r} can't name a dataset: use letters and digits")
    if len(safe) > MAX_NAME:
        raise UserError(
            f"{safe[:20]!r}… is too long for a name: give one of at most {MAX_NAME} characters"
        )
    return safe


def prompts_dir(reference: Path) -> Path:
    """The folder of prompts that a user means: of an installed set by its name, or as it is.

    Raises UserError, with the nearest name, if there is neither.
    """
    known = prompt_set_names()
    if str(reference) in known:
        return installed_dir(str(reference))
    path = user_path(reference)
    if not path.is_dir():
        hint = did_you_mean(str(reference), known)
        raise UserError(f"There is no folder and no imported set of prompts {reference}{hint}.")
    return path


def pairs_dir(reference: Path) -> Path:
    """Where the training pairs are that a user means: a file, a folder, or those of a set.

    Raises UserError as `prompts_dir`.
    """
    if (path := user_path(reference)).is_file():
        return path
    path = prompts_dir(reference)
    inner = path / lpaqa.TRAINING_FOLDER
    return inner if inner.is_dir() else path


def relations_file_for(path: Path) -> Path | None:
    """LAMA's relations.jsonl for a set in LAMA's layout that brings none, or None."""
    root = lama.find_root(path)
    if root is None or (root / "relations.jsonl").is_file():
        return None
    of_lama = installed_dir("lama")
    found = sorted(of_lama.rglob("relations.jsonl")) if of_lama.is_dir() else []
    return found[0] if found and not (root.parent / "relations.jsonl").is_file() else None


def listing() -> list[Listed]:
    """The starter sets, then the published sources, then what else was imported."""
    rows = []
    for own, folder in zip(
        _STARTERS.values(), (starter_dir(), starter_analogies_dir()), strict=True
    ):
        counts = _count_lines(folder, own.kind) if folder.is_dir() else ()
        rows.append(_listed(own, *counts, installed=folder.is_dir(), path=str(folder)))
    here = {row.name: row for row in _installed()}
    elsewhere = {source.name: _listed(source, installed=False) for source in published.SOURCES}
    return [*rows, *(elsewhere | here).values()]


def read_record(name: str) -> Listed:
    """What `source.json` says of the installed set `name`. Raises UserError if it is damaged."""
    folder = installed_dir(name)
    path = folder / RECORD_FILE
    remedy = f"remove {folder} and get it again"
    try:
        fields: dict[str, Any] = orjson.loads(read_file(path, MAX_RECORD))
        if fields["title"] == fields["name"]:  # of an import: its name, and it may have another now
            fields["title"] = name
        row = Listed(**{**fields, "name": name, "installed": True, "path": str(folder)})
        fault = _fault(row)
    except UserError as error:
        raise UserError(f"{str(error).rstrip('.')}: {remedy}") from error
    except (ValueError, TypeError, KeyError) as error:
        raise UserError(f"{path} is damaged ({error}): {remedy}") from error
    if fault:
        raise UserError(f"{path} is damaged ({fault}): {remedy}")
    return row


def _fault(row: Listed) -> str:
    """Which part of a record is damaged, or nothing."""
    if row.kind not in get_args(Content):
        return f"its kind is {row.kind!r}"
    texts = (row.title, row.licence, row.citation, row.homepage, row.fault)
    numbers = (row.n_relations, row.n_facts, row.size)
    if not all(isinstance(text, str) for text in texts):
        return "a text is none"
    return "" if all(type(n) in (int, type(None)) for n in numbers) else "a number is none"


def describe(name: str) -> str:
    """An installed set in a few words: `mine (3 relations, 120 facts)`."""
    record = _row(name)
    if record.fault:
        return f"{name} (damaged)"
    what = "pair" if record.kind == "analogies" else "fact"
    counts = ((record.n_relations or 0, "relation"), (record.n_facts or 0, what))
    said = ", ".join(f"{n:,} {one}{'s' * (n != 1)}" for n, one in counts)
    return f"{name} ({said})"


def write_record(folder: Path, dataset: Dataset | AnalogyDataset, kind: Content) -> None:
    """Write `source.json` into `folder` for the set that was read from it."""
    own = published.Source(dataset.name, dataset.name, kind, "not stated", "", "")
    source = next((one for one in published.SOURCES if one.name == dataset.name), own)
    fields = {
        "name": dataset.name,
        "title": source.title,
        "kind": kind,
        "n_relations": len(dataset.relations),
        "n_facts": len(dataset.facts) if isinstance(dataset, Dataset) else dataset.n_pairs,
        "licence": source.licence,
        "citation": source.citation,
        "homepage": source.homepage,
        "size": None,
    }
    (folder / RECORD_FILE).write_bytes(orjson.dumps(fields, option=orjson.OPT_INDENT_2))


def _count_lines(folder: Path, kind: Content) -> tuple[int, int]:
    """(relations, facts) of a starter set, whose lines are all valid (a test sees to that)."""
    if kind == "analogies":
        files = sorted(folder.rglob("*.txt"))
        return len(files), sum(file.read_bytes().count(b"\n") for file in files)
    files = [f for f in sorted(folder.rglob("*.jsonl")) if f.name != "relations.jsonl"]
    n_relations = (folder / "relations.jsonl").read_bytes().count(b"\n")
    has_questions = (folder / SQUAD_RELATION / "test.jsonl").is_file()
    return n_relations + has_questions, sum(file.read_bytes().count(b"\n") for file in files)


def _not_here(what: str, name: str, known: tuple[str, ...]) -> UserError:
    if published.is_published(name):
        return NotFetchedError(f"The source {name!r} is", name)
    hint = did_you_mean(name, [*known, *(source.name for source in published.SOURCES)])
    known_names = f"; known: {', '.join(known)}"
    return UserError(f"there is no {what} and no folder {name!r}{hint or known_names}")
