"""Knowledge sources: listed, loaded, fetched, imported, renamed and deleted."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lama_core.asking.blanks import parse_query
from lama_core.candidates.lists import named_candidates
from lama_core.datasets import load_dataset
from lama_core.datasets.base import AnalogyDataset, Dataset
from lama_core.datasets.library import download, installed
from lama_core.datasets.library.catalog import source
from lama_core.datasets.library.download import GetRequest, ImportRequest, Installed
from lama_core.datasets.library.installed import Listed
from lama_core.datasets.library.keeping import (
    dataset_bytes,
    delete_dataset,
    rename_dataset,
    users_of,
)
from lama_core.datasets.variants import Guess
from lama_core.errors import UserError
from lama_core.models.base import KINDS
from lama_core.models.loader import load_model
from lama_core.probes.cloze.ask import ask
from lama_core.progress import OnProgress, Progress, Result
from lama_core.requests import Function, Request

if TYPE_CHECKING:
    import pandas as pd

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
    """Return the knowledge sources: what is here, what can be fetched, licence and citation."""
    import pandas as pd  # heavy

    return pd.DataFrame(dataset_records())


def dataset_records() -> list[dict[str, Any]]:
    """Return the sources as plain values, as `data list --json` prints them."""
    records = [asdict(row) for row in listed()]
    return [{name: record[name] for name in SHOWN} for record in records]


def listed() -> tuple[Listed, ...]:
    """Return the sources with all that is known of them."""
    return tuple(installed.listing())


@dataclass(frozen=True)
class Brought:
    """A source that was fetched or imported."""

    installed: Installed

    def to_json(self) -> dict[str, Any]:
        """Return what `data get --json` and `data import --json` print."""
        dataset = self.installed.dataset
        is_facts = isinstance(dataset, Dataset)
        return {
            "name": dataset.name,
            "n_relations": len(dataset.relations),
            "n_facts": len(dataset.facts) if isinstance(dataset, Dataset) else dataset.n_pairs,
            "sources": by_source(dataset) if is_facts else [],
            "dropped": [asdict(item) for item in dataset.report.dropped],
            "notes": list(dataset.report.notes),
            "digest": dataset.digest,
            "path": str(self.installed.folder),
        }


def by_source(dataset: Dataset | AnalogyDataset) -> list[dict[str, Any]]:
    """Return the numbers of relations and facts of each source of a dataset."""
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


def _get(request: GetRequest) -> Brought:
    published = source(request.name)
    told = f"{published.title}; licence: {published.licence}; cite: {published.citation}"
    request.on_note(f"{told}; {published.note}" if published.note else told)
    guess = _guess_with(request.guesser, request.on_progress) if request.guesser else None
    return _brought(
        request,
        download.get_dataset(
            request.name,
            on_progress=request.on_progress,
            repin=request.repin,
            compute=request.compute,
            guess=guess,
        ),
    )


def _brought(request: Request, found: Installed) -> Brought:
    name = found.folder.name
    request.on_progress(Progress(f"{name} is here", 1, 1, result=Result("data", name)))
    return Brought(found)


def _guess_with(model_name: str, on_progress: OnProgress) -> Guess:
    """Return what gives a model's likeliest words of its whole vocabulary at a blank."""
    model = load_model(model_name, on_progress=on_progress)
    if not KINDS[model.kind].sees_both:
        raise UserError(f"{model_name} sees no right side: choose a masked model.")
    candidates = named_candidates("full", [model.vocabulary])
    columns = candidates.columns(model.vocabulary)

    def guess(text: str, k: int) -> list[str]:
        answer = ask(model, parse_query(text), candidates, top_k=k, columns=columns)
        return [prediction.token for prediction in answer.blanks[0].predictions]

    return guess


get_data = Function(
    GetRequest,
    _get,
    lambda brought: brought.installed.dataset,
    """Fetch a published source from its authors' address; a broken download is continued.

    Returns:
        The dataset.
    """,
)


def _import(request: ImportRequest) -> Brought:
    return _brought(
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
    lambda brought: brought.installed.dataset,
    """Import a source that is on this machine, and report what was excluded and why.

    Returns:
        The dataset; `.report` says what was excluded.
    """,
)


__all__ = [
    "Brought",
    "by_source",
    "dataset_bytes",
    "dataset_records",
    "delete_dataset",
    "get_data",
    "import_data",
    "list_datasets",
    "listed",
    "load_dataset",
    "rename_dataset",
    "users_of",
]
