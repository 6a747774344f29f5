"""What a run is made from, and its identity: for every kind of probe.

A kind of probe is a `RunSpec` of its own. What its numbers depend on is in its digest, by content
and never by a path: who scores, with which weights and precision, the data, prompts, training pairs
and candidates, every option, and the scoring version of its kind, which is raised whenever the same
specification would give other numbers, and for nothing else.
"""

import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from lama_core.candidates.columns import Candidates
from lama_core.datasets import load_dataset
from lama_core.errors import UserError
from lama_core.models import cache
from lama_core.models.cache import Precision
from lama_core.models.protocols import Context
from lama_core.models.server.addresses import is_server
from lama_core.progress import OnProgress, ignore
from lama_core.runs.info import RelationInfo
from lama_core.scoring.executors import Work
from lama_core.scoring.prompt_choice import PromptKind
from lama_core.scoring.ranking import Ranking

# (reference, precision=...) -> whoever is asked.
Load = Callable[..., Any]


def load_by_name(reference: str, *, precision: Any, on_progress: OnProgress = ignore) -> Any:
    """The model that a user means, by `models.loader.load_model`."""
    return cache.load_model(reference, precision=precision, on_progress=on_progress)


@dataclass(frozen=True)
class Finished:
    """What comes of a run's parts.

    details: what only its kind has to say, as plain values. words: what was ranked, of each
    relation where each has its own, else under ""; empty where it wasn't words.
    """

    rows: pa.Table
    relations: tuple[RelationInfo, ...]
    n_candidates: int = 0
    details: Mapping[str, Any] = field(default_factory=dict)
    words: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class ScoringJob:
    """One run's work, and what becomes of it.

    finish: the run from the rows of its parts, in the parts' order.
    """

    work: Work
    finish: Callable[[Sequence[pa.Table]], Finished]


@dataclass(frozen=True, kw_only=True)
class RunSpec(ABC):
    """A run to be made.

    dataset, model: references that can be loaded (a name or a path); not part of the identity.
    model_identity: which code scores, the digest of its weights, and the precision.
    model_kind: a `models.base.Kind`, or the method of a baseline.
    ranking: which of the two stored ranks is shown first; not part of the identity.
    limit: facts of each relation; None is all.
    """

    kind: ClassVar[str]
    version: ClassVar[int]

    dataset: str
    dataset_name: str
    data_digest: str
    relations: tuple[str, ...]
    model: str
    model_name: str
    model_identity: str
    model_kind: str
    precision: Precision = "fp32"
    context: Context = "both"
    ranking: Ranking = "filtered"
    limit: int | None = None

    @abstractmethod
    def options(self) -> dict[str, Any]:
        """What else the numbers depend on, as plain values."""

    @abstractmethod
    def prompt_name(self) -> str:
        """What its prompts are called, for people."""

    def prompt_kind(self) -> PromptKind:
        """Where its texts come from."""
        return "template"

    def candidate_list(self) -> tuple[str, str, bool]:
        """Name and digest of what is ranked, and whether case is folded."""
        known: Candidates | None = getattr(self, "candidates", None)
        return (known.name, known.digest, known.fold_case) if known else ("", "", False)

    def title(self) -> str:
        """What a progress bar says of it."""
        return self.model_name

    def scorer_key(self) -> tuple[Any, ...]:
        """What runs that are made together must share to share who is asked."""
        return (self.model, self.precision)

    def open(self, load: Load) -> Any:
        """Who is asked: the model. Raises UserError if it has other weights by now."""
        return self.unchanged(load(self.model, precision=self.precision))

    def unchanged(self, scorer: Any) -> Any:
        """The scorer. Raises UserError if it isn't the one that the specification names."""
        if scorer.identity != self.model_identity:
            raise UserError(
                f"{self.model_name} has changed since this run was planned: plan it again. What "
                "was scored before is kept."
            )
        return scorer

    def load_data(self) -> Any:
        """The data. Raises UserError if they are no longer those of the specification."""
        return self.same_data(load_dataset(self.dataset))

    def same_data(self, dataset: Any, *, same: bool = True) -> Any:
        """The data that were loaded. same: what else the numbers depend on is unchanged."""
        if dataset.digest != self.data_digest or not same:
            raise UserError(
                f"The dataset {self.dataset_name!r} has changed since this run was planned: plan "
                "it again, which begins a new run. What was scored before is kept."
            )
        return dataset

    @abstractmethod
    def prepare(self, scorer: Any, on_note: Callable[[str], None]) -> ScoringJob:
        """The work. Raises UserError if the data are no longer what the specification names."""

    @cached_property
    def digest(self) -> str:
        """SHA-256 of what the numbers depend on."""
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
    if is_server(name):  # its address is nobody's business
        name = f"server {name.partition('#')[2]}"
    return re.sub(r"[^a-z0-9]+", "_", Path(name).name.lower()).strip("_") or "run"
