"""Runs: what one was made from, and how it is saved, found and loaded.

A run is one dataset asked of one model with one prompt set. Its identity is the SHA-256 of
everything that its numbers depend on: model weights and precision, data, relations, prompts,
candidates, context, limit and the version of the scoring code. On disk it is a folder with

    run.json        what it was made from, counts, when and how fast it was made
    facts.parquet   one row a query, excluded ones with their reason (see `facts_table`)

written as `<id>.part` and renamed when whole.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lama_core.asking.prompts import PromptKind, PromptSet
from lama_core.asking.ranking import Ranking
from lama_core.asking.scoring import MAX_ROWS, MAX_TOKENS
from lama_core.candidates.columns import Candidates
from lama_core.errors import UserError, did_you_mean
from lama_core.models.base import Context, Kind
from lama_core.paths import ASSETS, data_dir
from lama_core.types import RelationType

if TYPE_CHECKING:
    import pandas as pd

# Raised by one whenever the same spec would give other numbers; never for anything else.
SCORING_VERSION = 1

RUN_FILE = "run.json"
FACTS_FILE = "facts.parquet"
PART = ".part"


@dataclass(frozen=True)
class RunSpec:
    """Everything that a run's numbers depend on, and what is needed to do it again.

    dataset, model: references that can be loaded (a name or a path); not part of the identity.
    ranking: which of the two stored ranks is shown first; not part of the identity.
    candidates: for `relation`, without words: each relation's own objects.
    limit: the first so many facts of each relation, in file order; None is all.
    batch_rows, batch_tokens: what a batch holds; it can change the last bits.
    """

    dataset: str
    dataset_name: str
    data_digest: str
    relations: tuple[str, ...]
    prompts: PromptSet
    model: str
    model_name: str
    model_identity: str
    model_kind: Kind
    candidates: Candidates
    context: Context
    ranking: Ranking = "filtered"
    precision: str = "fp32"
    limit: int | None = None
    batch_rows: int = MAX_ROWS
    batch_tokens: int = MAX_TOKENS

    @cached_property
    def digest(self) -> str:
        """SHA-256 of what the numbers depend on."""
        content = {
            "version": SCORING_VERSION,
            "data": self.data_digest,
            "relations": self.relations,
            "prompts": [self.prompts.kind, self.prompts.templates],
            "model": self.model_identity,
            "kind": self.model_kind,
            "candidates": [self.candidates.per_relation, self.candidates.digest],
            "context": self.context,
            "precision": self.precision,
            "limit": self.limit,
            "batch": [self.batch_rows, self.batch_tokens],
        }
        text = json.dumps(content, sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def run_id(self) -> str:
        """The run's name: dataset, model, prompts and the first ten digits of the digest."""
        names = (self.dataset_name, self.model_name, self.prompts.name)
        return "-".join([*(_slug(name) for name in names), self.digest[:10]])


@dataclass(frozen=True, slots=True)
class RelationInfo:
    """A relation as a run saw it.

    n: queries that count. n_excluded: rows left out, with a reason each.
    """

    name: str
    source: str
    label: str
    type: RelationType | None
    templates: tuple[str, ...]
    n: int
    n_excluded: int


@dataclass(frozen=True)
class RunInfo:
    """What `run.json` says of a finished run; cheap to read.

    folder: where it is. bundled: it came with the project. limit: facts a relation, None is all.
    n: queries that count. seconds: of scoring, the sum over all sittings. made: ISO date, UTC.
    """

    id: str
    folder: Path
    bundled: bool
    digest: str
    dataset: str
    data_digest: str
    model: str
    model_identity: str
    model_kind: Kind
    prompts: str
    prompt_kind: PromptKind
    candidates: str
    candidates_digest: str
    n_candidates: int
    fold_case: bool
    context: Context
    ranking: Ranking
    precision: str
    limit: int | None
    n: int
    n_excluded: int
    relations: tuple[RelationInfo, ...]
    seconds: float
    made: str
    versions: tuple[tuple[str, str], ...]

    @property
    def label(self) -> str:
        """A short name for people: model and dataset, and the prompts if not the manual ones."""
        prompts = "" if self.prompts == "manual" else f", {self.prompts} prompts"
        limit = "" if self.limit is None else f", first {self.limit} a relation"
        return f"{self.model} on {self.dataset}{prompts}{limit}"

    def relation(self, name: str) -> RelationInfo:
        """The relation called `name`. Raises UserError, with the nearest name, if there is none."""
        for relation in self.relations:
            if relation.name == name:
                return relation
        hint = did_you_mean(name, [relation.name for relation in self.relations])
        raise UserError(f"The run {self.id} has no relation {name!r}{hint}.")


@dataclass(frozen=True)
class TopPredictions:
    """The ten best words of every row, raw ranking.

    words: object [row, 10], None past the last. log_probs: float32 [row, 10], -inf past the last,
    NaN for excluded rows.
    """

    words: NDArray[np.object_]
    log_probs: NDArray[np.float32]


@dataclass(frozen=True)
class Run:
    """A finished run: what it was made from, and its rows, read when first asked for."""

    info: RunInfo

    @cached_property
    def facts(self) -> "pd.DataFrame":
        """One row a query (see `facts_table`), without the ten best; NaN where excluded."""
        from lama_core.runs.table import read_facts

        return read_facts(self.info.folder / FACTS_FILE)

    @cached_property
    def top(self) -> TopPredictions:
        """The ten best predictions, in the same row order as `facts`."""
        from lama_core.runs.table import read_top

        return TopPredictions(*read_top(self.info.folder / FACTS_FILE))


@dataclass(frozen=True, slots=True)
class RunListing:
    """The finished runs, bundled ones first, then by date; and what could not be read, and why."""

    runs: tuple[RunInfo, ...]
    problems: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[RunInfo]:
        """The runs in order."""
        return iter(self.runs)

    def __len__(self) -> int:
        """How many runs there are."""
        return len(self.runs)


def runs_dir() -> Path:
    """Folder of the user's own runs; not created here."""
    return data_dir() / "runs"


def bundled_dir() -> Path:
    """Folder of the runs that came with the project."""
    return ASSETS / "results"


def list_runs(folders: Sequence[Path] | None = None) -> RunListing:
    """All finished runs under `folders`; by default the bundled ones and the user's own.

    A folder whose run.json can't be read is not left out in silence: it is named in `problems`.
    """
    found: list[RunInfo] = []
    problems: list[str] = []
    for folder in (bundled_dir(), runs_dir()) if folders is None else folders:
        for path in sorted(folder.glob(f"*/{RUN_FILE}")):
            if path.parent.name.endswith(PART):
                continue
            try:
                found.append(read_info(path.parent))
            except UserError as error:
                problems.append(str(error))
    found.sort(key=lambda info: (not info.bundled, info.made, info.id))
    return RunListing(tuple(found), tuple(problems))


def load_run(name: str | Path) -> Run:
    """The run called `name` (or the beginning of its name, if unique), or in the folder `name`.

    Raises UserError, with the nearest name, if there is none.
    """
    if isinstance(name, Path) or (Path(name) / RUN_FILE).is_file():
        return Run(read_info(Path(name)))
    listing = list_runs()
    for info in listing:
        if info.id == name:
            return Run(info)
    matches = [info for info in listing if info.id.startswith(name)]
    if len(matches) == 1:
        return Run(matches[0])
    if matches:
        raise UserError(
            f"{len(matches)} runs begin with {name!r}: {', '.join(info.id for info in matches)}."
        )
    hint = did_you_mean(name, [info.id for info in listing])
    raise UserError(f"There is no run {name!r}{hint}. `results` lists the runs that are here.")


def read_info(folder: Path) -> RunInfo:
    """What a run folder says of itself. Raises UserError if it is broken or missing."""
    path = folder / RUN_FILE
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        raw["relations"] = tuple(
            RelationInfo(**{**relation, "templates": tuple(relation["templates"])})
            for relation in raw["relations"]
        )
        raw["versions"] = tuple((name, version) for name, version in raw["versions"])
        bundled = folder.resolve().is_relative_to(bundled_dir())
        return RunInfo(id=folder.name, folder=folder, bundled=bundled, **raw)
    except OSError as error:
        raise UserError(f"{path}: the run can't be read: {error.strerror}.") from error
    except (ValueError, TypeError, KeyError) as error:
        raise UserError(
            f"{path}: the run's description is damaged ({error}): make the run again."
        ) from error


def write_info(info: RunInfo, path: Path) -> None:
    """Write run.json whole: under another name first, then renamed."""
    content = asdict(info)
    for name in ("id", "folder", "bundled"):
        del content[name]
    part = path.with_name(path.name + PART)
    with part.open("w", encoding="utf-8") as file:
        json.dump(content, file, ensure_ascii=False, indent=1)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", Path(name).name.lower()).strip("_") or "run"
