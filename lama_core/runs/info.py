"""A finished run: what it was made from (`run.json`), and its rows (`facts.parquet`).

    run.json        what every kind of run says of itself; cheap to read
    details.json    what only its kind has to say, where it has anything
    facts.parquet   one row a query (see `table`)
    candidates.parquet  the words that were ranked, where they are words
    title.txt       a name that its owner gave it, if any; see `keeping`

A run is written into `<id>.part` and renamed when it is whole; see `execute`.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from lama_core.errors import UserError, did_you_mean
from lama_core.files import read_file, write_text_atomically
from lama_core.models.cache import Precision
from lama_core.models.protocols import Context
from lama_core.paths import ASSETS
from lama_core.scoring.prompt_choice import PromptKind
from lama_core.scoring.ranking import Ranking
from lama_core.types import Relation, RelationType

if TYPE_CHECKING:
    import pandas as pd

RUN_FILE = "run.json"
DETAILS_FILE = "details.json"
FACTS_FILE = "facts.parquet"
CANDIDATES_FILE = "candidates.parquet"
TITLE_FILE = "title.txt"
MAX_TITLE = 80  # characters
# Of `run.json`; the first form had none, and runs of cloze queries only.
FORM = 2
STATEMENTS = "statements"  # the kind of probe that ranks whole answers
GENERATION = "generation"  # the kind of probe that generates answers
OWN_WORDS = "relation"  # candidates: each relation ranks its own


@dataclass(frozen=True, slots=True)
class RelationInfo:
    """A relation as a run saw it.

    n: queries that count. n_excluded: rows left out, with a reason each. domains: what it is
    about, as the data say.
    """

    name: str
    source: str
    label: str
    type: RelationType | None
    templates: tuple[str, ...]
    n: int
    n_excluded: int
    domains: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, relation: Relation, templates: tuple[str, ...], n: int, n_excluded: int
    ) -> "RelationInfo":
        """A relation of the data, and how it was asked."""
        one = relation
        return cls(one.name, one.source, one.label, one.type, templates, n, n_excluded, one.domains)


@dataclass(frozen=True, kw_only=True)
class RunInfo:
    """What `run.json` says of a finished run.

    kind, version: of the probe, and its scoring version. folder: where it is. bundled: it came with
    the project. model_kind: a `models.base.Kind`, or a baseline's method. limit: facts a relation,
    None is all. n: queries that count. seconds: of scoring, over all sittings. made: ISO date, UTC.
    device: where the last sitting computed, empty of a run that doesn't say; not of its identity.
    title: what its owner calls it, or empty. beside: the runs that it is seen beside, see
    `aligned`. exact_to: where it is ranked there on other words than its own, the k up to which P@k
    is exact. None of them is of the run itself.
    """

    id: str
    folder: Path
    bundled: bool
    kind: str
    version: int
    digest: str
    dataset: str
    data_digest: str
    model: str
    model_identity: str
    model_kind: str
    precision: Precision
    prompts: str
    prompt_kind: PromptKind
    candidates: str
    candidates_digest: str
    n_candidates: int
    fold_case: bool
    context: Context
    ranking: Ranking
    limit: int | None
    n: int
    n_excluded: int
    relations: tuple[RelationInfo, ...]
    seconds: float
    made: str
    versions: tuple[tuple[str, str], ...]
    device: str = ""
    title: str = ""
    beside: tuple["RunInfo", ...] = ()
    exact_to: int | None = None

    @property
    def counts(self) -> Literal["facts", "queries"]:
        """What its numbers count: queries, where a fact is asked in several ways."""
        several = any(len(one.templates) > 1 for one in self.relations)
        return "queries" if several or self.prompt_kind == "ten sentences" else "facts"

    @property
    def ranks_statements(self) -> bool:
        """Whether whole answers are ranked, by the statements with them, and not words."""
        return self.kind == STATEMENTS

    @property
    def generates(self) -> bool:
        """Whether its answers are generated texts, which have no ranks beyond the first."""
        return self.kind == GENERATION

    @property
    def ranks_words(self) -> bool:
        """Whether words at a blank are ranked, and neither whole answers nor nothing."""
        return not self.ranks_statements and not self.generates

    @property
    def guessable(self) -> bool:
        """Whether its chance level is worth showing: it ranks answers or a relation's words."""
        return self.ranks_statements or self.candidates == OWN_WORDS

    @property
    def n_said(self) -> str:
        """How many words it ranked, as text: where each relation has its own, at most so many."""
        return f"{'at most ' * (self.candidates == OWN_WORDS)}{self.n_candidates:,}"

    @property
    def label(self) -> str:
        """A short name for people: its owner's; else model and dataset, and unusual prompts."""
        if self.title:
            return self.title
        prompts = "" if self.prompts == "manual" else f", {self.prompts}"
        prompts += " prompts" * (prompts != "" and self.ranks_words)
        limit = "" if self.limit is None else f", first {self.limit} a relation"
        return f"{self.model} on {self.dataset}{prompts}{limit}"

    def relation(self, name: str) -> RelationInfo:
        """The relation called `name`. Raises UserError, with the nearest name, if there is none."""
        for relation in self.relations:
            if relation.name == name:
                return relation
        hint = did_you_mean(name, [relation.name for relation in self.relations])
        raise UserError(f"The run {self.id} has no relation {name!r}{hint}.")


# What of it `run.json` holds: what is of the run itself.
NOT_STORED = {"id", "folder", "bundled", "title", "beside", "exact_to"}
STORED = {one.name for one in fields(RunInfo)} - NOT_STORED


@dataclass(frozen=True)
class TopPredictions:
    """The ten best words of every row, raw ranking.

    words: object [row, 10], None past the last. log_probs: float32 [row, 10], -inf past the last,
    NaN for excluded rows.
    """

    words: NDArray[np.object_]
    log_probs: NDArray[np.float32]


@dataclass(frozen=True)
class AnswerScores:
    """The scores of all answers to one fact, in the answers' order.

    words: the answers. scores: float32 [answer], as they were scored: log-likelihoods, -inf of an
    answer that the model can't write.
    """

    words: tuple[str, ...]
    scores: NDArray[np.float32]


@dataclass(frozen=True)
class Run:
    """A finished run: what it was made from, and its rows, read when first asked for.

    seen, seen_top, seen_words: rows, ten best and ranked words that take the place of the files',
    where the run is seen beside others.
    """

    info: RunInfo
    seen: "pd.DataFrame | None" = field(default=None, compare=False, repr=False)
    seen_top: TopPredictions | None = field(default=None, compare=False, repr=False)
    seen_words: Mapping[str, frozenset[str]] | None = field(default=None, compare=False, repr=False)

    @cached_property
    def facts(self) -> "pd.DataFrame":
        """One row a query (see `table`), without the ten best; NaN where excluded."""
        from lama_core.runs.facts_table import read_facts

        return read_facts(self.info.folder / FACTS_FILE) if self.seen is None else self.seen

    @cached_property
    def top(self) -> TopPredictions:
        """The ten best predictions, in the same row order as `facts`."""
        from lama_core.runs.facts_table import read_top

        return self.seen_top or TopPredictions(*read_top(self.info.folder / FACTS_FILE))

    @cached_property
    def words(self) -> Mapping[str, frozenset[str]] | None:
        """The words that were ranked, of each relation where each has its own, else under "".

        None for a run that doesn't say.
        """
        from lama_core.runs.facts_table import read_candidates

        if self.seen_words is not None:
            return self.seen_words
        path = self.info.folder / CANDIDATES_FILE
        if not path.is_file():
            return None
        return {name: frozenset(known) for name, known in read_candidates(path).items()}

    @cached_property
    def n_words(self) -> Mapping[str, int]:
        """How many words each relation ranked; only those of which it is known."""
        names = [one.name for one in self.info.relations]
        if self.info.candidates != OWN_WORDS:
            return dict.fromkeys(names, self.info.n_candidates) if self.info.n_candidates else {}
        words = self.words or {}
        return {name: len(words[name]) for name in names if name in words}

    def scores_of(self, row: int) -> AnswerScores | None:
        """The scores of all answers to the fact of a row of `facts`; reads that row alone.

        None where they weren't kept. Raises UserError if the files are damaged.
        """
        from lama_core.runs.facts_table import read_candidates, read_scores

        folder = self.info.folder
        scores = read_scores(folder / FACTS_FILE, row)
        if scores is None:
            return None
        known = read_candidates(folder / CANDIDATES_FILE)
        words = known.get(str(self.facts["relation"].iloc[row])) or known.get("", ())
        if len(words) != len(scores):
            raise UserError(
                f"{folder}: {len(scores):,} scores of {len(words):,} answers: delete the run and "
                "make it again."
            )
        return AnswerScores(words, scores)

    @cached_property
    def details(self) -> dict[str, Any]:
        """What only its kind has to say; empty where it has nothing."""
        path = self.info.folder / DETAILS_FILE
        return _read_json(path) if path.is_file() else {}


def read_info(folder: Path) -> RunInfo:
    """What a run folder says of itself. Raises UserError if it is broken or missing."""
    path = folder / RUN_FILE
    raw = _read_json(path)
    try:
        if raw.pop("form", 1) < FORM:
            raw |= {"kind": "cloze", "version": 1}
        if unknown := raw.keys() - STORED:
            raise ValueError(f"unknown field {min(unknown)!r}")
        raw |= {"id": folder.name, "folder": folder, "title": _read_title(folder)}
        raw["bundled"] = folder.resolve().is_relative_to(ASSETS)
        return msgspec.convert(raw, RunInfo)
    except (msgspec.MsgspecError, ValueError, TypeError) as error:
        raise _damaged(path, error) from error


def write_info(info: RunInfo, folder: Path) -> None:
    """Write `run.json` whole."""
    content = {"form": FORM} | {k: v for k, v in asdict(info).items() if k in STORED}
    write_text_atomically(
        folder / RUN_FILE, json.dumps(content, ensure_ascii=False, indent=1) + "\n"
    )


def write_details(details: Mapping[str, Any], folder: Path) -> None:
    """Write `details.json` whole, if there is anything to write."""
    if details:
        text = json.dumps(details, ensure_ascii=False, allow_nan=False)
        write_text_atomically(folder / DETAILS_FILE, text + "\n")


def _read_title(folder: Path) -> str:
    path = folder / TITLE_FILE
    if not path.is_file():
        return ""
    first, *_ = read_file(path).decode("utf-8", "replace").splitlines() or [""]
    return first[:MAX_TITLE]


def _read_json(path: Path) -> dict[str, Any]:
    try:
        return msgspec.json.decode(read_file(path), type=dict[str, Any])
    except UserError as error:
        raise UserError(f"{error} Delete the run and make it again.") from error
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> UserError:
    return UserError(
        f"{path}: the run's description is damaged ({error}): delete the run and make it again."
    )
