"""Specifications and identities of runs, for every kind of probe.

Each kind of probe subclasses `RunSpec`. Its digest covers everything that the numbers depend on, by
content and never by path: scoring code, weights, precision, data, prompts, training pairs,
candidates, every option, and the scoring version of the kind of probe. The scoring version rises if
and only if the same specification would give different numbers.
"""

import hashlib
import json
import os
import re
from abc import ABC, abstractmethod
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from lama_core import plugins
from lama_core.candidates.columns import Candidates
from lama_core.datasets import load_dataset
from lama_core.errors import UserError
from lama_core.models import cache
from lama_core.models.cache import Precision
from lama_core.models.protocols import Context
from lama_core.models.sources.catalog import is_served
from lama_core.progress import OnProgress, ignore
from lama_core.requests import StoredRequest, record
from lama_core.runs.info import Imported, RelationInfo
from lama_core.scoring.executors import Work
from lama_core.scoring.preparation import NoFactCounts
from lama_core.scoring.prompt_choice import PromptKind
from lama_core.scoring.ranking import Ranking

# (reference, precision=...) -> the model or baseline that scores.
Load = Callable[..., Any]


def load_by_name(reference: str, *, precision: Any, on_progress: OnProgress = ignore) -> Any:
    """Load a model by its name or path with `models.cache.load_model`."""
    return cache.load_model(reference, precision=precision, on_progress=on_progress)


@dataclass(frozen=True)
class Finished:
    """The content of a finished run.

    details: fields that only this kind of run has, as plain values. words: the ranked words, by
    relation, or under "" for one common list; {} if the run doesn't rank words.
    """

    rows: pa.Table
    relations: tuple[RelationInfo, ...]
    n_candidates: int = 0
    details: Mapping[str, Any] = field(default_factory=dict)
    words: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class ScoringJob:
    """The scoring work on one range of a run's facts; most runs have one range.

    finish: makes the range's content from the rows of its parts, in the parts' order.
    """

    work: Work
    finish: Callable[[Sequence[pa.Table]], Finished]


@dataclass(frozen=True, kw_only=True)
class RunSpec(ABC):
    """The specification of a run.

    Attributes:
        kind: Kind of probe; an argument of the class statement.
        version: Scoring version of the kind of probe; also an argument. Raise it if and only if
            the same specification gives other numbers.
        request: What was asked: a request of this kind, which can name further models. It isn't
            part of the identity; the fields that the numbers depend on are in `options`.
        folder: The working folder from which relative paths in the request start.
        model: Name or path of the model; not part of the identity.
        model_identity: Scoring code, digest of the weights, and precision.
        model_kind: A `models.protocols.Kind`, or the method of a baseline.
        imported: Where the numbers come from, if another tool made them.
        n_ranges: The number of ranges of facts that are prepared and scored on their own.
        grows: Whether a range is made from the content of those before it; only an executor of this
            process makes such runs.
    """

    kind: ClassVar[str]
    version: ClassVar[int]
    grows: ClassVar[bool] = False

    request: Any
    dataset_name: str
    data_digest: str
    relations: tuple[str, ...]
    model: str
    model_name: str
    model_identity: str
    model_kind: str
    precision: Precision = "fp32"
    context: Context = "both"
    imported: Imported | None = None
    n_ranges: int = 1
    folder: str = field(default_factory=os.getcwd, compare=False)

    def __init_subclass__(cls, *, kind: str = "", version: int = 0) -> None:
        """Set `kind` and `version`; a subclass without a kind has those of its base."""
        if kind:
            cls.kind, cls.version = kind, version

    @property
    def stored_request(self) -> StoredRequest:
        """The request, for the files of the run."""
        package = plugins.package_of(type(self.request).__module__)
        return StoredRequest(self.request.python, record(self.request), self.folder, package)

    @property
    def ranking(self) -> Ranking:
        """Which of the two stored ranks is shown by default; not part of the identity."""
        ranking: Ranking = getattr(self.request, "ranking", "filtered")
        return ranking

    @property
    def limit(self) -> int | None:
        """Maximum number of facts per relation; None is all."""
        limit: int | None = getattr(self.request, "limit", None)
        return limit

    @abstractmethod
    def options(self) -> dict[str, Any]:
        """Return this kind of probe's options that the numbers depend on, as plain values."""

    @abstractmethod
    def prompt_name(self) -> str:
        """Return the displayed name of the prompts."""

    def prompt_kind(self) -> PromptKind:
        """Return the source of the queries' texts."""
        return "template"

    def candidate_list(self) -> tuple[str, str, bool]:
        """Return name and digest of the candidates, and whether case is folded."""
        known: Candidates | None = getattr(self, "candidates", None)
        return (known.name, known.digest, known.fold_case) if known else ("", "", False)

    def title(self) -> str:
        """Return the title of the progress bar."""
        return self.model_name

    def scorer_key(self) -> tuple[Any, ...]:
        """Return a key: runs with the same key share one loaded model."""
        return (self.model, self.precision)

    def open(self, load: Load) -> Any:
        """Load the model, or raise UserError if its weights have changed."""
        return self.unchanged(load(self.model, precision=self.precision))

    def unchanged(self, scorer: Any) -> Any:
        """Return the scorer, or raise UserError if its identity isn't the specification's."""
        if scorer.identity != self.model_identity:
            raise self.changed()
        return scorer

    def changed(self) -> UserError:
        """Return the error for a model that has changed."""
        return UserError(
            f"{self.model_name} has changed since this run was planned. Start a new run; finished "
            "parts are kept."
        )

    def load_data(self) -> Any:
        """Load the data, or raise UserError if they have changed."""
        return self.same_data(load_dataset(self.request.dataset))

    def same_data(self, dataset: Any) -> Any:
        """Return the data, or raise UserError if their digest has changed."""
        if dataset.digest != self.data_digest:
            raise UserError(
                f"The dataset {self.dataset_name!r} has changed since this run was planned. Start "
                "a new run; finished parts are kept."
            )
        return dataset

    @abstractmethod
    def prepare(self, scorer: Any, on_note: Callable[[str], None]) -> ScoringJob:
        """Prepare the scoring work, or raise UserError if the data have changed."""

    def ranges(
        self, scorer: Any, on_note: Callable[[str], None], earlier: Callable[[int], Finished]
    ) -> Callable[[int], ScoringJob]:
        """Return a function that prepares a range, by its number.

        earlier: returns the content of a finished range, for a run that `grows`.
        """
        job = self.prepare(scorer, on_note)
        return lambda _: job

    def join(self, ranges: Sequence[Finished]) -> Finished:
        """Return a run's content from that of its ranges, which must have the same details."""
        if not any(relation.n for one in ranges for relation in one.relations):
            raise NoFactCounts(f"No fact can be scored with {self.model_name}.")
        relations = [
            replace(
                same[0],
                n=sum(one.n for one in same),
                n_excluded=sum(one.n_excluded for one in same),
            )
            for same in zip(*(one.relations for one in ranges), strict=True)
        ]
        return Finished(
            pa.concat_tables([one.rows for one in ranges]).unify_dictionaries(),
            tuple(relations),
            max(one.n_candidates for one in ranges),
            ranges[0].details,
            dict(ChainMap(*(dict(one.words) for one in ranges))),
        )

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that the numbers depend on."""
        content = {
            "kind": self.kind,
            "version": self.version,
            "data": self.data_digest,
            "relations": self.relations,
            "model": self.model_identity,
            "model kind": self.model_kind,
            "precision": self.precision,
            "context": self.context,
            "limit": self.limit,
            "options": self.options(),
        }
        text = json.dumps(content, sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def run_id(self) -> str:
        """The run's name: dataset, model, prompts and the first ten digits of the digest."""
        names = (self.dataset_name, self.model_name, self.prompt_name())
        return "-".join([*(_slug(name) for name in names), self.digest[:10]])


def _slug(name: str) -> str:
    if is_served(name):  # keep the server's address private
        name = f"server {name.partition('#')[2]}"
    return re.sub(r"[^a-z0-9]+", "_", Path(name).name.lower()).strip("_") or "run"
