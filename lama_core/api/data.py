"""Knowledge sources: list, load, fetch, import, rename and delete them."""

import shutil
import sys
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lama_core.candidates.lists import named_candidates
from lama_core.candidates.spelling import Spelling
from lama_core.datasets import formats, user_table
from lama_core.datasets import load_dataset as load_dataset
from lama_core.datasets.column_guess import guess_columns
from lama_core.datasets.dataset import AnyDataset, Dataset, n_relations
from lama_core.datasets.library import download, installed
from lama_core.datasets.library.download import GetRequest, Installed
from lama_core.datasets.library.download import ImportRequest as ImportRequest
from lama_core.datasets.library.installed import Listed
from lama_core.datasets.library.manage import dataset_bytes as dataset_bytes
from lama_core.datasets.library.manage import delete_dataset as delete_dataset
from lama_core.datasets.library.manage import rename_dataset as rename_dataset
from lama_core.datasets.library.manage import users_of as users_of
from lama_core.datasets.library.published import source
from lama_core.datasets.proposed_sentences import proposed_template as proposed_template
from lama_core.datasets.user_table import Scan as Scan
from lama_core.datasets.user_table import TablePreview as TablePreview
from lama_core.datasets.variants import Guess
from lama_core.errors import UserError
from lama_core.files import user_path
from lama_core.models.cache import load_model
from lama_core.models.protocols import KINDS
from lama_core.models.sources.catalog import find_model
from lama_core.progress import OnProgress, Progress, Result
from lama_core.queries.blank_answers import query_model
from lama_core.requests import Function, Request
from lama_core.scoring.blanks import parse_query
from lama_core.scoring.shared_fields import DEFAULT_MODEL

if TYPE_CHECKING:
    import pandas as pd

PREVIEWED = 5  # rows
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


def list_datasets() -> "pd.DataFrame":
    """Return the knowledge sources as a table, installed ones and those that can be fetched.

    Returns:
        A DataFrame with a row for each source: name, kind, size, licence, citation and folder.
    """
    import pandas as pd  # slow to import

    return pd.DataFrame(dataset_records())


def dataset_records() -> list[dict[str, Any]]:
    """Return the knowledge sources as `data list --json` prints them."""
    records = [asdict(row) for row in list_sources()]
    return [{name: record[name] for name in SHOWN} for record in records]


def list_sources() -> tuple[Listed, ...]:
    """Return the knowledge sources, installed ones and those that can be fetched."""
    return tuple(installed.listing())


@dataclass(frozen=True)
class AddedDataset:
    """A fetched or imported source."""

    installed: Installed

    def to_json(self) -> dict[str, Any]:
        """Return what `data get --json` and `data import --json` print."""
        dataset = self.installed.dataset
        return {
            "name": dataset.name,
            "n_relations": n_relations(dataset),
            "n_facts": dataset.n_items,
            "sources": _by_source(dataset),
            "dropped": [asdict(item) for item in dataset.report.dropped],
            "notes": list(dataset.report.notes),
            "digest": dataset.digest,
            "path": str(self.installed.folder),
        }


def _by_source(dataset: AnyDataset) -> list[dict[str, Any]]:
    """Return the number of relations and facts for each source; [] for data without facts."""
    if not isinstance(dataset, Dataset):
        return []
    n_facts = dataset.n_facts_by_source()
    return [
        {
            "source": name,
            "n_relations": sum(relation.source == name for relation in dataset.relations),
            "n_facts": n_facts.get(name, 0),
        }
        for name in dataset.sources()
    ]


def _get(request: GetRequest) -> AddedDataset:
    published = source(request.name)
    note = f"{published.title}; licence: {published.licence}; cite: {published.citation}"
    request.on_note(f"{note}; {published.note}" if published.note else note)
    guess = _guess_with(request.guesser, request.on_progress) if request.guesser else None
    return _added(
        request,
        download.get_dataset(
            request.name,
            on_progress=request.on_progress,
            repin=request.repin,
            compute=request.compute,
            guess=guess,
        ),
    )


def _added(request: Request, dataset: Installed) -> AddedDataset:
    name = dataset.folder.name
    request.on_progress(Progress(f"{name} is installed", 1, 1, result=Result("data", name)))
    return AddedDataset(dataset)


def _guess_with(model_name: str, on_progress: OnProgress) -> Guess:
    """Return a function that gives a model's most probable words at a blank."""
    model = load_model(model_name, on_progress=on_progress)
    if not KINDS[model.kind].sees_both:
        raise UserError(f"{model_name} can't use the text after a blank. Choose a masked model.")
    candidates = named_candidates("full", [model.vocabulary])

    def guess(text: str, k: int) -> list[str]:
        answer = query_model(model, parse_query(text), candidates, top_k=k)
        return [prediction.token for prediction in answer.blanks[0].predictions]

    return guess


get_data = Function(
    GetRequest,
    _get,
    lambda added: added.installed.dataset,
    """Download a published source from its authors; an interrupted download resumes.

    Returns:
        The dataset.

    Raises:
        UserError: If the source is unknown, the download fails, or its checksum differs.
    """,
)


def _import(request: ImportRequest) -> AddedDataset:
    if request.path == "-":
        if not request.name:
            raise UserError("A table from standard input needs a name: give --name.")
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / request.name.replace("/", "-")
            with file.open("wb") as copy:
                shutil.copyfileobj(sys.stdin.buffer, copy)
            return _import(replace(request, path=str(file)))
    return _added(
        request,
        download.import_dataset(
            Path(request.path),
            name=request.name,
            replace=request.replace,
            columns=request.columns(),
            on_progress=request.on_progress,
        ),
    )


import_data = Function(
    ImportRequest,
    _import,
    lambda added: added.installed.dataset,
    """Import a source from this machine, and report which rows are excluded and why.

    Returns:
        The dataset; `.report` lists the excluded rows with their reasons.

    Raises:
        UserError: If the path has no known format, or the name is already in use.
    """,
)


def is_table(path: Path) -> bool:
    """Whether a file is a table, or may be one whose columns have other names."""
    path = user_path(path)
    try:
        return formats.detect(path).name == "table"
    except UserError:
        return len(user_table.first_names(path)) > 1


def preview_table(path: Path) -> TablePreview:
    """Return the first rows of a table; a role without a matching name has the column "".

    Raises:
        UserError: If the file can't be read.
    """
    header, rows = user_table.first_rows(user_path(path), PREVIEWED)
    columns = {role: user_table.named_column(header, role) for role in user_table.ROLES}
    return TablePreview(header, rows, columns, guess_columns(header, rows, columns))


def scan_table(path: Path, request: ImportRequest) -> Scan:
    """Return the relations and facts that an import would find in a table, without importing it.

    Args:
        path: The table.
        request: Names of the columns.

    Raises:
        UserError: If a column is missing, or a template is invalid.
    """
    return user_table.scan(user_path(path), request.columns())


@dataclass(frozen=True)
class MultiTokenAnswers:
    """The objects of a dataset that a model can't predict at a single blank.

    Attributes:
        model: Title of the model.
        long: The distinct objects that aren't a single token of the model, in file order.
        n_objects: Number of distinct objects.
    """

    model: str
    long: tuple[str, ...]
    n_objects: int


def find_multi_token_answers(dataset: Dataset) -> MultiTokenAnswers:
    """Return the facts' objects that are several tokens of the embedded model.

    Cloze queries exclude their facts.
    """
    spelling = Spelling(load_model(DEFAULT_MODEL).vocabulary)
    objects = tuple(dict.fromkeys(fact.object for fact in dataset.facts))
    long = tuple(word for word in objects if not spelling.tokens(word))
    return MultiTokenAnswers(find_model(DEFAULT_MODEL).title, long, len(objects))
