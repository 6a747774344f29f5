"""The datasets on this computer (starter, downloaded, imported) and those to download.

Each installed dataset is a folder in `data_dir()/datasets`. Its `source.json` has the format,
licence, citation and counts, so that datasets can be listed without reading the data. A new folder
is moved here after its data were read completely. A damaged dataset is listed as damaged, and
doesn't prevent the use of other datasets.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import orjson

from lama_core import paths
from lama_core.datasets import bats, formats, lama, lpaqa
from lama_core.datasets.aliases import ALIASES_FILE, with_aliases
from lama_core.datasets.dataset import (
    ITEMS,
    SQUAD_RELATION,
    AnalogyDataset,
    AnyDataset,
    Content,
    Dataset,
    QuestionDataset,
    n_relations,
)
from lama_core.datasets.library import published
from lama_core.errors import NotFetchedError, UserError, did_you_mean
from lama_core.files import current_folder, current_names, read_file, user_path

if TYPE_CHECKING:
    import pandas as pd

STARTER = "starter"
STARTER_ANALOGIES = "starter-analogies"
RECORD_FILE = "source.json"
MAX_RECORD = 1 << 20  # bytes
RELATIONS = "relations.jsonl"
MAX_NAME = 60  # characters; file systems allow 255 bytes
SHOWN = (
    "name",
    "title",
    "kind",
    "installed",
    "n_relations",
    "n_facts",
    "licence",
    "citation",
    "homepage",
    "size",
    "path",
)
D = TypeVar("D")
_COMPILED_HERE = "compiled by this project"


@dataclass(frozen=True, slots=True)
class Listed:
    """A row of the list of sources.

    n_relations, n_facts (or pairs, or questions): None until installed; questions have no
    relations. size: bytes to download; None if unknown
    or if there is nothing to download. fault: why an installed dataset is unusable, and the remedy
    (also in `title`); empty for a usable one.
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

    @property
    def item(self) -> str:
        """The word for what `n_facts` counts."""
        return ITEMS[self.kind]


_STARTERS = {
    row.name: row
    for row in (
        published.Source(
            STARTER,
            "Starter facts",
            "facts",
            "CC0 1.0, CC BY 4.0 (GeoNames), WordNet licence; see assets/datasets/starter",
            f"{_COMPILED_HERE} in the style of LAMA's sources; each fact names its origin",
            "",
        ),
        published.Source(
            STARTER_ANALOGIES, "Starter analogies", "analogies", "CC0 1.0", _COMPILED_HERE, ""
        ),
    )
}


def starter_dir() -> Path:
    """Return the folder of the starter facts, in LAMA's layout."""
    return paths.ASSETS / "datasets" / STARTER


def starter_analogies_dir() -> Path:
    """Return the folder of the starter analogies, in BATS's layout."""
    return paths.ASSETS / "datasets" / STARTER_ANALOGIES


def datasets_dir() -> Path:
    """Return the folder of the downloaded and imported datasets."""
    return paths.data_dir() / "datasets"


def installed_dir(name: str) -> Path:
    """Return the folder of the dataset `name` once it is installed."""
    return current_folder(datasets_dir() / name)


def installed_names() -> tuple[str, ...]:
    """Return the sorted names of installed datasets, also damaged ones; none if unreadable."""
    return tuple(row.name for row in _installed() if row.path)


def _installed() -> list[Listed]:
    """Return the rows of installed datasets; one row with the error if they can't be listed."""
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
    return _listed(published.Source(name, fault, "facts", "", "", ""), path=path, fault=fault)


def _listed(
    source: published.Source,
    n_relations: int | None = None,
    n_facts: int | None = None,
    **more: Any,
) -> Listed:
    names = (source.name, source.title, source.kind)
    origin = (source.licence, source.citation, source.homepage)
    size = source.size if source.files else None
    return Listed(*names, *origin, n_relations, n_facts, size, **more)


def _names_of(*kinds: Content) -> tuple[str, ...]:
    """Return the names of the usable installed datasets of these kinds."""
    return tuple(row.name for row in _installed() if row.kind in kinds and not row.fault)


def dataset_names() -> tuple[str, ...]:
    """Return the names that `load_dataset` accepts: the starter facts, then installed ones."""
    return (STARTER, *_names_of("facts", "prompts"))


def prompt_set_names() -> tuple[str, ...]:
    """Return the names of the installed sets of prompts, such as `lpaqa`."""
    return _names_of("prompts")


def pair_set_names() -> tuple[str, ...]:
    """Return the names of the installed sets of prompts that have training pairs."""
    return tuple(n for n in prompt_set_names() if pairs_dir(Path(n)) != installed_dir(n))


def analogy_names() -> tuple[str, ...]:
    """Return the names that `load_analogies` accepts: starter analogies, then installed ones."""
    return (STARTER_ANALOGIES, *_names_of("analogies"))


def question_set_names() -> tuple[str, ...]:
    """Return the names of the installed sets of multiple-choice analogy questions."""
    return _names_of("questions")


def lama_vocabulary_path() -> Path | None:
    """Return the file of LAMA's 21,018 published candidates, or None if LAMA isn't installed."""
    return _in_lama(published.LAMA_VOCABULARY)


def _in_lama(name: str) -> Path | None:
    """Return the file with this name in the installed LAMA; None if there is none."""
    return next(iter(sorted(installed_dir("lama").rglob(name))), None)


@lru_cache(maxsize=1)
def _starter(folder: Path, _changed: tuple[int, ...]) -> Dataset:
    """Return the starter facts. A run needs them several times, and reading them takes 0.3 s."""
    about = _STARTERS[STARTER]
    dataset = formats.load_facts(
        folder, name=STARTER, licence=about.licence, citation=about.citation
    )
    return with_aliases(dataset, folder / ALIASES_FILE)


def load_dataset(name_or_path: str | Path) -> Dataset:
    """Return the dataset with this name (starter or installed), or at this path in a known format.

    Raises UserError, with the nearest name, if there is no such dataset.
    """
    if str(name_or_path) == STARTER:
        folder = starter_dir()
        return _starter(folder, tuple(file.stat().st_mtime_ns for file in folder.rglob("*")))
    return _load(name_or_path, "dataset", dataset_names, _load_facts)


def _load_facts(path: Path, **described: str) -> Dataset:
    return formats.load_facts(path, relations_file=relations_file_for(path), **described)


def _load(
    name_or_path: str | Path, what: str, known: Callable[[], Sequence[str]], load: Callable[..., D]
) -> D:
    """Return what `load` reads of the installed dataset with this name, or at this path.

    Args:
        name_or_path: The name or the path.
        what: What is loaded, for the error.
        known: Returns the names that can be loaded, for the error.
        load: Reads a path; keyword arguments: name, licence and citation.

    Raises:
        UserError: If there is no such dataset; suggests the nearest name.
    """
    name = str(name_or_path)
    if name in installed_names():
        record = read_record(name)
        return load(
            installed_dir(name), name=name, licence=record.licence, citation=record.citation
        )
    path = user_path(name_or_path)
    if path.exists():
        return load(path)
    if published.is_published(name):
        raise NotFetchedError(f"The source {name!r} is", name)
    names = known()
    hint = did_you_mean(name, [*names, *(source.name for source in published.SOURCES)])
    others = f"; known: {', '.join(names)}" if names else ": install one with `data import`"
    raise UserError(f"No {what} or folder is called {name!r}{hint or others}")


def load_analogies(name_or_path: str | Path) -> AnalogyDataset:
    """Return the analogies with this name (starter-analogies or installed) or at this path.

    Raises UserError, with the nearest name, if there are no such analogies.
    """
    if str(name_or_path) == STARTER_ANALOGIES:
        licence = _STARTERS[STARTER_ANALOGIES].licence
        return bats.load(starter_analogies_dir(), name=STARTER_ANALOGIES, licence=licence)
    return _load(name_or_path, "set of analogies", analogy_names, bats.load)


def load_questions(name_or_path: str | Path) -> QuestionDataset:
    """Return the multiple-choice analogy questions with this name (installed) or at this path.

    Raises UserError, with the nearest name, if there are no such questions.
    """
    return _load(name_or_path, "set of questions", question_set_names, formats.load_questions)


def safe_name(name: str) -> str:
    """Return `name` as a folder name, without separators and leading dots.

    Raises UserError if the result is empty or too long.
    """
    safe = "".join(c if c.isalnum() or c in "-_." else "-" for c in name).strip(".-")
    if not safe:
        raise UserError(f"{name!r} can't be the name of a dataset: use letters and digits")
    if len(safe) > MAX_NAME:
        raise UserError(
            f"the name {safe[:20]!r}… is too long: give one of at most {MAX_NAME} characters"
        )
    return safe


def prompts_dir(reference: Path) -> Path:
    """Return the folder of prompts for the name of an installed set, or for a path.

    Raises UserError, with the nearest name, if there is neither.
    """
    known = prompt_set_names()
    if str(reference) in known:
        return installed_dir(str(reference))
    path = user_path(reference)
    if not path.is_dir():
        hint = did_you_mean(str(reference), known)
        raise UserError(f"No folder or installed set of prompts is called {reference}{hint}.")
    return path


def pairs_dir(reference: Path) -> Path:
    """Return the file or folder of training pairs for a path or the name of an installed set.

    Raises UserError as `prompts_dir`.
    """
    if (path := user_path(reference)).is_file():
        return path
    path = prompts_dir(reference)
    inner = path / lpaqa.TRAINING_FOLDER
    return inner if inner.is_dir() else path


def relations_file_for(path: Path) -> Path | None:
    """Return the installed LAMA's relations.jsonl if `path` has LAMA's layout without this file."""
    root = lama.find_root(path)
    if root is None or any((root / name).is_file() for name in lama.TEMPLATE_FILES):
        return None
    return None if (root.parent / RELATIONS).is_file() else _in_lama(RELATIONS)


def listing() -> list[Listed]:
    """Return the rows of starter datasets, then published sources, then other imports."""
    folders = zip(_STARTERS.values(), (starter_dir(), starter_analogies_dir()), strict=True)
    rows = [
        _listed(starter, *_count_lines(folder, starter.kind), path=str(folder))
        for starter, folder in folders
    ]
    present = {row.name: row for row in _installed()}
    all_published = {source.name: _listed(source, installed=False) for source in published.SOURCES}
    return [*rows, *(all_published | present).values()]


def list_datasets() -> "pd.DataFrame":
    """Return the knowledge sources as a table, installed ones and those that can be fetched.

    Returns:
        A DataFrame with a row for each source: name, kind, size, licence, citation and folder.
    """
    import pandas as pd  # slow to import

    return pd.DataFrame(dataset_records())


def dataset_records() -> list[dict[str, Any]]:
    """Return the knowledge sources as `data list --json` prints them."""
    records = [asdict(row) for row in listing()]
    return [{name: record[name] for name in SHOWN} for record in records]


def read_record(name: str) -> Listed:
    """Return the content of an installed dataset's `source.json`. Raises UserError if damaged."""
    folder = installed_dir(name)
    path = folder / RECORD_FILE
    remedy = f"delete {folder} and install the dataset again"
    try:
        fields: dict[str, Any] = orjson.loads(read_file(path, MAX_RECORD))
        if fields["title"] == fields["name"]:  # an import, which may have been renamed
            fields["title"] = name
        record = {**fields, "name": name, "installed": True, "path": str(folder)}
        return msgspec.convert(record, Listed)
    except UserError as error:
        raise UserError(f"{str(error).rstrip('.')}: {remedy}") from error
    except (ValueError, TypeError, KeyError, msgspec.ValidationError) as error:
        raise UserError(f"{path} is damaged ({error}): {remedy}") from error


def describe(name: str) -> str:
    """Return a short description of an installed dataset: `mine (3 relations, 120 facts)`."""
    record = _row(name)
    if record.fault:
        return f"{name} (damaged)"
    counts = ((record.n_relations, "relation"), (record.n_facts or 0, record.item))
    shown = ", ".join(f"{n:,} {noun}{'s' * (n != 1)}" for n, noun in counts if n is not None)
    return f"{name} ({shown})"


def write_record(folder: Path, dataset: AnyDataset, kind: Content) -> None:
    """Write `source.json` into `folder`, for the dataset read from there."""
    imported = published.Source(dataset.name, dataset.name, kind, "not stated", "", "")
    source = next((known for known in published.SOURCES if known.name == dataset.name), imported)
    fields = {
        "name": dataset.name,
        "title": source.title,
        "kind": kind,
        "n_relations": n_relations(dataset),
        "n_facts": dataset.n_items,
        "licence": source.licence,
        "citation": source.citation,
        "homepage": source.homepage,
        "size": None,
    }
    (folder / RECORD_FILE).write_bytes(orjson.dumps(fields, option=orjson.OPT_INDENT_2))


def _count_lines(folder: Path, kind: Content) -> tuple[int, int]:
    """Count the relations and facts of a starter dataset by lines; all its lines are usable."""
    if kind == "analogies":
        files = sorted(folder.rglob("*.txt"))
        return len(files), sum(file.read_bytes().count(b"\n") for file in files)
    files = [f for f in sorted(folder.rglob("*.jsonl")) if f.name != "relations.jsonl"]
    n_relations = (folder / "relations.jsonl").read_bytes().count(b"\n")
    has_questions = (folder / SQUAD_RELATION / "test.jsonl").is_file()
    return n_relations + has_questions, sum(file.read_bytes().count(b"\n") for file in files)
