"""A finished run: its description (`run.json`) and its rows (`facts.parquet`).

    run.json            description with the same fields for every kind of run; cheap to read
    details.json        fields of this kind of run only, if it has any
    facts.parquet       one row per query (see `facts_table`)
    candidates.parquet  the ranked words, unless the run ranked something else
    title.txt           a name given by the user, if any; see `manage`

`run.json` contains the SHA-256 of each of the other files except the title, and a checksum of its
other fields. They are verified when a file is first read, and after it has changed (by its size and
time of change). Runs of earlier versions have neither: they are read without verification.

A run is written into `<id>.part`, which is renamed when the run is finished; see `execute`.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from lama_core.errors import UserError, did_you_mean
from lama_core.files import MAX_TABLE, open_file, read_error, read_file, write_text_atomically
from lama_core.models.cache import Precision
from lama_core.models.protocols import Context
from lama_core.models.sources.checkpoints import Checkpoint
from lama_core.paths import ASSETS
from lama_core.requests import StoredRequest
from lama_core.rounding import counted, percent, plural
from lama_core.scoring.prompt_choice import PromptKind
from lama_core.scoring.ranking import Ranking
from lama_core.types import Relation, RelationType

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

RUN_FILE = "run.json"
DETAILS_FILE = "details.json"
FACTS_FILE = "facts.parquet"
CANDIDATES_FILE = "candidates.parquet"
TITLE_FILE = "title.txt"
REQUESTS_FILE = "requests.json"  # the requests of the bundled runs
MAX_TITLE = 80  # characters
# The files whose digests `run.json` contains.
DIGESTED = (FACTS_FILE, CANDIDATES_FILE, DETAILS_FILE)
CHECKSUM = "checksum"  # the field of a JSON file with the digest of its other fields
REMEDY = "Delete the run and make it again."
FORM = 2  # version of the format of `run.json`
STATEMENTS = "statements"  # the kind of probe that ranks whole answers
GENERATION = "generation"  # the kind of probe that generates answers
ENSEMBLE = "ensemble"  # the kind of run whose prompts answer together
IMPORTED = "imported"  # the kind of run that another tool made
# The kinds of run whose rows are facts, so that Results and Wrong answers can show them.
FACT_KINDS = ("cloze", "contrast", ENSEMBLE, STATEMENTS, GENERATION, IMPORTED)
ORDINALS = dict(enumerate(("first", "second", "third", "fourth", "fifth")))
OWN_WORDS = "relation"  # name of the candidates if they are the objects of the fact's relation


@dataclass(frozen=True, slots=True)
class RelationInfo:
    """A relation in a run.

    templates: those that the rows are numbered by. n: queries that count. n_excluded: excluded
    rows. domains: the relation's topics in the data. used: numbers of the templates that were used;
    () is all.
    """

    name: str
    source: str
    label: str
    type: RelationType | None
    templates: tuple[str, ...]
    n: int
    n_excluded: int
    domains: tuple[str, ...] = ()
    used: tuple[int, ...] = ()

    @property
    def n_templates(self) -> int:
        """How many templates were used; 0 if they aren't known."""
        return len(self.used or self.templates)

    def template_key(self, number: int) -> str:
        """Return what is the same for equal templates of several runs; a number without a text."""
        if number < len(self.templates):
            return " ".join(self.templates[number].replace("[MASK]", "[Y]").split())
        return str(number)

    @classmethod
    def of(
        cls, relation: Relation, templates: tuple[str, ...], n: int, n_excluded: int
    ) -> "RelationInfo":
        """Return the description of a relation of the data, queried with these templates."""
        named = (relation.name, relation.source, relation.label, relation.type)
        return cls(*named, templates, n, n_excluded, relation.domains)


@dataclass(frozen=True, slots=True)
class Imported:
    """Where the numbers of an imported run come from, and which of them there are.

    Attributes:
        tool: The tool that made them; "" if unknown.
        tool_version: Its version; "" if unknown.
        created: When it made them, as it wrote the date; "" if unknown.
        file: Name of the imported file or folder.
        digest: SHA-256 of the files.
        ranks: What the right answer is ranked among: whole answers whose scores are all known,
            others that aren't known, or "" if it isn't ranked, only right or wrong.
        probabilities: Whether the first answers have log-probabilities.
        n_unusable: How many rows of the files aren't in the run for a reason that may depend on the
            model's answer, so that the scores aren't those of all rows; None if that isn't known.
        bounds: Lowest and highest possible P@1 over all rows, unusable ones included; None if that
            isn't known.
    """

    tool: str
    tool_version: str
    created: str
    file: str
    digest: str
    ranks: Literal["answers", "unknown", ""]
    probabilities: bool
    n_unusable: int | None = 0
    bounds: tuple[float, float] | None = None

    def unusable(self, n: int) -> str:
        """Return how many rows aren't in the run, and P@1 over all; "" if none. n: usable rows."""
        if self.n_unusable == 0:
            return ""
        if self.n_unusable is None or self.bounds is None:
            return "The number of unusable rows isn't known, and so neither is P@1 over all rows"
        lost, (low, high) = self.n_unusable, map(percent, self.bounds)
        return (
            f"{lost:,} of {counted(n + lost, 'row')} {'is' if lost == 1 else 'are'} unusable, "
            f"perhaps because of the model's answer: P@1 over all of them is between {low} and "
            f"{high} %"
        )

    @property
    def source(self) -> str:
        """The tool and its version, or the file's name."""
        return f"{self.tool} {self.tool_version}".strip() or self.file


@dataclass(frozen=True, kw_only=True)
class RunInfo:
    """The description of a finished run, as in `run.json`.

    Attributes:
        folder: The run's folder.
        bundled: Whether the run came with the project.
        kind: Kind of probe.
        version: Scoring version of the kind of probe.
        model_kind: A `models.protocols.Kind`, or the method of a baseline.
        limit: Maximum number of facts per relation; None is all.
        n: Queries that count.
        seconds: Scoring time, summed over all sessions if the run was resumed.
        made: ISO date, UTC.
        device: Device of the last session; "" if unknown. Not part of the run's identity.
        files: Name and SHA-256 of each file; () in runs of earlier versions.
        checkpoint: Series and training step, if the model is a checkpoint of a training run. Not
            part of the run's identity.
        imported: Where the numbers come from, if another tool made them.
        request: The request that made the run and perhaps others; None in runs of earlier versions.
            Not part of the run's identity.
        title: The name given by the user, or "".
        beside: The runs that this one is aligned with; see `alignment`. Not stored.
        exact_to: If alignment ranked shared candidates, the largest k for which P@k is exact; else
            None. Not stored.
        only: The chosen facts that the run is restricted to, as a text; see `chosen_facts`. Not
            stored.
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
    files: tuple[tuple[str, str], ...] = ()
    checkpoint: Checkpoint | None = None
    imported: Imported | None = None
    request: StoredRequest | None = field(default=None, compare=False)
    title: str = ""
    beside: tuple["RunInfo", ...] = ()
    exact_to: int | None = None
    only: str = ""

    @cached_property
    def unit(self) -> str:
        """What the run counts: a `query` if a fact has several, else a `fact`; perhaps chosen ones.

        An ensemble asks a fact with several templates and counts it once.
        """
        several = self.kind != ENSEMBLE and any(one.n_templates > 1 for one in self.relations)
        is_query = several or self.prompt_kind == "ten sentences"
        return "chosen " * bool(self.only) + ("query" if is_query else "fact")

    @property
    def counts(self) -> str:
        """Plural of `unit`."""
        return plural(self.unit)

    @property
    def scored_relations(self) -> tuple[RelationInfo, ...]:
        """The relations with a query that counts."""
        return tuple(one for one in self.relations if one.n)

    @property
    def ranks_statements(self) -> bool:
        """Whether the run ranks whole answers by their statements, and not words at a blank."""
        return self.kind == STATEMENTS or (self.imported and self.imported.ranks) == "answers"

    @property
    def generates(self) -> bool:
        """Whether the run's answers are generated texts; they are right (rank 1) or not ranked."""
        return self.kind == GENERATION

    @property
    def ranks_words(self) -> bool:
        """Whether words at a blank are ranked; not whole answers, and not generated texts."""
        return not self.ranks_statements and self.has_ranks

    @property
    def has_ranks(self) -> bool:
        """Whether right answers are ranked; else they are right (rank 1) or not ranked."""
        return not self.generates and (self.imported is None or self.imported.ranks != "")

    @property
    def unusable(self) -> str:
        """How many rows of imported results aren't in the run, a sentence; "" if all are."""
        return self.imported.unusable(self.n) if self.imported else ""

    @property
    def has_probabilities(self) -> bool:
        """Whether the first answers have log-probabilities."""
        return self.imported is None or self.imported.probabilities

    @property
    def way(self) -> str:
        """The kind of probe; of imported results the kind whose runs have the same numbers."""
        if self.imported is None:
            return self.kind
        return {"answers": STATEMENTS, "unknown": "cloze", "": GENERATION}[self.imported.ranks]

    @property
    def guessable(self) -> bool:
        """Whether to show the chance level: if the candidates are whole answers or `OWN_WORDS`."""
        return self.ranks_statements or self.candidates == OWN_WORDS

    @property
    def n_said(self) -> str:
        """Number of ranked words as text: `21,018`, or `at most 900` if relations differ."""
        if self.imported and not self.n_candidates:
            return "unknown"
        return f"{'at most ' * (self.candidates == OWN_WORDS)}{self.n_candidates:,}"

    @property
    def prompts_said(self) -> str:
        """The prompts in words."""
        return prompts_in_words(self.prompts)

    @property
    def label(self) -> str:
        """Name to show: the user's title, else model, dataset, unusual prompts, limit, tool."""
        if self.title:
            return self.title
        prompts = "" if self.prompts == "manual" or self.imported else f", {self.prompts}"
        prompts += " prompts" * (prompts != "" and self.ranks_words)
        limit = "" if self.limit is None else f", first {self.limit} a relation"
        made = f", imported from {self.imported.source}" if self.imported else ""
        made += " (not all rows)" * bool(self.unusable)
        return f"{self.model} on {self.dataset}{prompts}{limit}{made}"

    def path(self, name: str) -> Path:
        """Return the path of one of the run's files after checking its digest.

        Raises:
            UserError: If the file is missing or has changed since it was saved.
        """
        path, digest = self.folder / name, dict(self.files).get(name)
        if digest is not None and not path.exists():
            raise UserError(f"{path} is missing. {REMEDY}")
        if digest is None:
            return path
        status = path.stat()
        if _digest_of(path, status.st_size, status.st_mtime_ns) == digest:
            return path
        raise UserError(
            f"{path}: the file is damaged (its SHA-256 differs from the one in {RUN_FILE}). "
            f"{REMEDY}"
        )

    def has(self, name: str) -> bool:
        """Whether the run has a file of this name."""
        return name in dict(self.files) if self.files else (self.folder / name).is_file()

    def relation(self, name: str) -> RelationInfo:
        """Return the relation called `name`, or raise UserError with the most similar name."""
        for relation in self.relations:
            if relation.name == name:
                return relation
        hint = did_you_mean(name, [relation.name for relation in self.relations])
        raise UserError(f"The run {self.id} has no relation {name!r}{hint}.")


# Fields that `run.json` doesn't contain, and those that it contains.
NOT_STORED = {"id", "folder", "bundled", "title", "beside", "exact_to", "only"}
STORED = {one.name for one in fields(RunInfo)} - NOT_STORED


@dataclass(frozen=True)
class TopPredictions:
    """The ten best words of every row, raw ranking.

    Attributes:
        codes: Indices into `known`, int32 [row, 10]; -1 past the last prediction and in excluded
            rows.
        known: The words, object [code]; None, the last one, is for the code -1.
        log_probs: float32 [row, 10], -inf past the last, NaN for excluded rows.
    """

    codes: NDArray[np.int32]
    known: NDArray[np.object_]
    log_probs: NDArray[np.float32]

    @property
    def words(self) -> NDArray[np.object_]:
        """The words, object [row, 10], None past the last."""
        words: NDArray[np.object_] = self.known[self.codes]
        return words

    def of(self, row: int) -> list[tuple[str, float]]:
        """Return the words of a row with their log-probabilities, best first."""
        pairs = zip(self.known[self.codes[row]], self.log_probs[row].tolist(), strict=True)
        return [(word, log_prob) for word, log_prob in pairs if word is not None]

    def only(self, kept: NDArray[np.bool_]) -> "TopPredictions":
        """Return only the words that are kept, bool [row, 10], in their order."""
        order = np.argsort(~kept, axis=1, kind="stable")
        codes = np.take_along_axis(np.where(kept, self.codes, -1), order, axis=1)
        empty = np.where(np.isnan(self.log_probs), np.nan, -np.inf).astype(np.float32)
        log_probs = np.where(kept, self.log_probs, empty)
        return TopPredictions(codes, self.known, np.take_along_axis(log_probs, order, axis=1))


@dataclass(frozen=True)
class AnswerScores:
    """The scores of all answers to one fact, in the answers' order.

    words: the answers. scores: float32 [answer], log-likelihoods; -inf for an answer that the model
    can't write.
    """

    words: tuple[str, ...]
    scores: NDArray[np.float32]


@dataclass(frozen=True)
class Run:
    """A finished run: its description, and its rows, of which each column is read once.

    Attributes:
        info: The description.
        changed: Columns that replace those in the file. A row that a changed column `excluded`
            excludes has no answers, whatever the file contains.
        choose_firsts: Returns the columns `FIRSTS` and `FLAGS` that replace those in the file, if
            any do; it is called when one of them is read, because most views need none.
        top_kept: Which of the ten best predictions to keep, bool [row, 10]; None is all.
        changed_words: The ranked words, if they replace those in the file.
        kept: Columns of the file that have been read.
        derived: What others computed from the rows, by a key of theirs.
    """

    info: RunInfo
    changed: "dict[str, pa.ChunkedArray]" = field(default_factory=dict, compare=False, repr=False)
    choose_firsts: "Callable[[], dict[str, pa.ChunkedArray]] | None" = field(
        default=None, compare=False, repr=False
    )
    top_kept: NDArray[np.bool_] | None = field(default=None, compare=False, repr=False)
    changed_words: "Mapping[str, pa.Array] | None" = field(default=None, compare=False, repr=False)
    kept: "dict[str, pa.ChunkedArray]" = field(default_factory=dict, compare=False, repr=False)
    # Not passed on by `replace`, because a changed run has other rows.
    derived: dict[Any, Any] = field(init=False, default_factory=dict, compare=False, repr=False)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns of `facts`; runs of facts always have an `origin`."""
        from lama_core.runs.facts_table import column_names

        stored = column_names(self.info.path(FACTS_FILE), lists=False)
        return tuple(dict.fromkeys([*stored, *self.changed, *["origin"] * ("type" in stored)]))

    def table(self, names: Sequence[str]) -> "pa.Table":
        """Return columns of the rows (see `facts_table`), words dictionary-encoded."""
        import pyarrow as pa
        import pyarrow.compute as pc

        from lama_core.runs.facts_table import ANSWERED, FIRSTS, FLAGS, read_columns

        changed = self.changed
        if self.choose_firsts is not None and not {*FIRSTS, *FLAGS}.isdisjoint(names):
            changed = {**changed, **(self._firsts or {})}
        lacking = [name for name in names if name not in changed and name not in self.kept]
        if lacking:
            found = read_columns(self.info.path(FACTS_FILE), lacking)
            self.kept.update(zip(lacking, found.columns, strict=True))
        every = {**self.kept, **changed}
        columns = {name: every[name] for name in names}
        if "excluded" in self.changed:
            counts = pc.is_null(self.changed["excluded"])
            for name in columns.keys() & set(ANSWERED):
                none = pa.scalar(None, columns[name].type)
                columns[name] = pc.if_else(counts, columns[name], none)
        return pa.table(columns)

    @cached_property
    def _firsts(self) -> "dict[str, pa.ChunkedArray] | None":
        return self.choose_firsts and self.choose_firsts()

    @cached_property
    def facts(self) -> "pd.DataFrame":
        """One row per query (see `facts_table`), without the ten best.

        Repeated words are categories; ranks and log-probabilities are floats, NaN where excluded.
        """
        import pandas as pd

        self.table(self.names)  # reads all columns at once
        return pd.DataFrame({name: self.column(name) for name in self.names})

    def has_column(self, name: str) -> bool:
        """Whether `facts` has a column of this name."""
        return name in self.names

    def column(self, name: str) -> "pd.Series[Any]":
        """Return a column of `facts`."""
        from lama_core.runs.facts_table import to_series

        return to_series(self.table([name])[name], name)

    def codes(self, name: str) -> NDArray[np.int64]:
        """Return the codes of a column of words, int64 [row]; -1 where the word is missing."""
        from lama_core.runs.facts_table import whole

        codes = whole(self.table([name])[name]).dictionary_encode().indices.fill_null(-1)
        return codes.to_numpy(zero_copy_only=False).astype(np.int64)

    def words_of(self, name: str) -> list[str]:
        """Return the distinct words of a column; `codes` are indices into them."""
        from lama_core.runs.facts_table import whole

        found = whole(self.table([name])[name]).dictionary_encode()
        words: list[str] = found.dictionary.to_pylist()
        return words

    @property
    def counted(self) -> NDArray[np.bool_]:
        """Whether a row counts, bool [row]."""
        return np.asarray(self.table(["excluded"])["excluded"].is_null())

    @cached_property
    def known_to(self) -> NDArray[np.int64]:
        """The largest k for which each row knows whether its rank is at most k, int64 [row].

        `RANKED` in rows with a rank; 1 in rows with a verdict.
        """
        from lama_core.runs.facts_table import KNOWN_TO, RANKED, UNRANKED

        if self.has_column(KNOWN_TO):
            return self.column(KNOWN_TO).fillna(RANKED).to_numpy(dtype=np.int64)
        # Runs of generated answers, and imported ones of earlier versions.
        verdicts = (self.column("rank_raw").to_numpy() == UNRANKED) | (not self.info.has_ranks)
        return np.where(verdicts, 1, RANKED)

    @cached_property
    def top(self) -> TopPredictions:
        """The ten best predictions, in the same row order as `facts`."""
        from lama_core.runs.facts_table import known_words, read_top_log_probs

        codes, words = self.stored_top_words
        log_probs = read_top_log_probs(self.info.path(FACTS_FILE))
        top = TopPredictions(codes, known_words(words), log_probs)
        return top if self.top_kept is None else top.only(self.top_kept)

    @cached_property
    def stored_top_words(self) -> "tuple[NDArray[np.int32], pa.Array]":
        """The ten best words in the file as codes and words; see `facts_table.encode_top`."""
        from lama_core.runs.facts_table import read_top_words

        return read_top_words(self.info.path(FACTS_FILE))

    @cached_property
    def words(self) -> "Mapping[str, pa.Array] | None":
        """The ranked words, by relation, or under "" for one common list; None if not stored."""
        from lama_core.runs.facts_table import read_word_lists

        if self.changed_words is not None:
            return self.changed_words
        if not self.info.has(CANDIDATES_FILE):
            return None
        return read_word_lists(self.info.path(CANDIDATES_FILE))

    @cached_property
    def n_words(self) -> Mapping[str, int]:
        """Relation -> number of words ranked for it, if this number is known."""
        names = [one.name for one in self.info.relations]
        if self.info.candidates != OWN_WORDS:
            return dict.fromkeys(names, self.info.n_candidates) if self.info.n_candidates else {}
        words = self.words or {}
        return {name: len(words[name]) for name in names if name in words}

    def scores_of(self, row: int) -> AnswerScores | None:
        """Return the scores of all answers to the fact of one row of `facts`.

        None if the run doesn't store them.

        Raises:
            UserError: If the files are damaged.
        """
        from lama_core.runs.facts_table import read_candidates, read_scores

        scores = read_scores(self.info.path(FACTS_FILE), row)
        if scores is None:
            return None
        known = read_candidates(self.info.path(CANDIDATES_FILE))
        relation = self.table(["relation"])["relation"][row].as_py()
        words = known.get(relation) or known.get("", ())
        if len(words) != len(scores):
            raise UserError(
                f"{self.info.folder}: the run is damaged ({len(scores):,} scores for "
                f"{len(words):,} answers). {REMEDY}"
            )
        return AnswerScores(words, scores)

    @cached_property
    def details(self) -> dict[str, Any]:
        """Fields that only this kind of run has; {} if it has none."""
        return _read_json(self.info.path(DETAILS_FILE)) if self.info.has(DETAILS_FILE) else {}

    def check(self) -> None:
        """Verify the digests of all files; runs of earlier versions have none.

        Raises:
            UserError: If a file is missing or damaged.
        """
        for name, _digest in self.info.files:
            self.info.path(name)


def prompts_in_words(prompts: str) -> str:
    """Return a run's prompts in words, such as `whole answers, first template`; `manual` stays."""

    def in_words(found: re.Match[str]) -> str:
        which = ORDINALS.get(int(found[1]), f"{int(found[1]) + 1}th")
        return f"whole answers, {which} template"

    words = re.sub(r"^statements template (\d+)", in_words, prompts)
    words = re.sub("^trace ", "causal traces, ", words)
    if shots := re.match(r"questions, (\d+)-shot", words):
        words = words.replace(shots[0], f"questions, {counted(int(shots[1]), 'example')}")
    return words


def read_info(folder: Path) -> RunInfo:
    """Return the description of the run in a folder, or raise UserError if it can't be read."""
    path, size, changed = folder / RUN_FILE, 0, 0
    with suppress(OSError):  # reading the file raises the error
        status = path.stat()
        size, changed = status.st_size, status.st_mtime_ns
    return replace(_stored_info(path, size, changed), title=_read_title(folder))


@lru_cache(maxsize=4096)
def _stored_info(path: Path, _size: int, _changed: int) -> RunInfo:
    """Return the description in a file, read once until its size or time of change is different."""
    raw, folder = _read_json(path), path.parent
    try:
        if CHECKSUM in raw and raw.pop(CHECKSUM) != checksum(raw):
            raise ValueError("its checksum differs")
        raw.pop("form", FORM)
        if unknown := raw.keys() - STORED:
            raise ValueError(f"unknown field {min(unknown)!r}")
        raw |= {"id": folder.name, "folder": folder, "title": ""}
        raw["bundled"] = folder.resolve().is_relative_to(ASSETS)
        if raw["bundled"]:
            raw["request"] = _bundled_requests().get(folder.name)
        return msgspec.convert(raw, RunInfo)
    except (msgspec.MsgspecError, ValueError, TypeError) as error:
        raise _damaged(path, error) from error


@cache
def _bundled_requests() -> dict[str, StoredRequest]:
    """Return run -> request; the bundled runs are of versions that didn't store it."""
    rows = msgspec.json.decode(read_file(ASSETS / "results" / REQUESTS_FILE))
    return {
        run: StoredRequest(row["function"], row["fields"]) for row in rows for run in row["runs"]
    }


def write_info(info: RunInfo, folder: Path) -> None:
    """Write `run.json` atomically, with the digests of the files that are in the folder by now."""
    optional = ("checkpoint", "imported", "request")  # earlier versions don't know these fields
    stored = {k: v for k, v in asdict(info).items() if k in STORED}
    content = {"form": FORM} | {
        k: v for k, v in stored.items() if v is not None or k not in optional
    }
    if info.request and not info.request.package:
        del content["request"]["package"]
    content["files"] = [
        (name, file_digest(folder / name)) for name in DIGESTED if (folder / name).is_file()
    ]
    content[CHECKSUM] = checksum(content)
    write_text_atomically(
        folder / RUN_FILE, json.dumps(content, ensure_ascii=False, indent=1) + "\n"
    )


def file_digest(path: Path) -> str:
    """Return a file's SHA-256, or raise UserError if it can't be read or is too large."""
    try:
        digest = hashlib.sha256()
        with open_file(path, MAX_TABLE) as file:
            # Not `hashlib.file_digest`, which never ends on a file that can't be read at once.
            while chunk := file.read(1 << 20):
                digest.update(chunk)
        return digest.hexdigest()
    except OSError as error:
        raise read_error(path, error) from error
    except UserError as error:
        raise UserError(f"{error} {REMEDY}") from error


@lru_cache(maxsize=4096)
def _digest_of(path: Path, _size: int, _changed: int) -> str:
    """Return `file_digest`, computed once until the file's size or time of change is different."""
    return file_digest(path)


def checksum(content: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the fields of a JSON object other than its checksum."""
    others = {name: value for name, value in content.items() if name != CHECKSUM}
    return text_digest(json.dumps(others, sort_keys=True))


def text_digest(text: str) -> str:
    """Return the SHA-256 of a text in UTF-8."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def write_details(details: Mapping[str, Any], folder: Path) -> None:
    """Write `details.json` atomically, if there are details."""
    if details:
        text = json.dumps(details, ensure_ascii=False, allow_nan=False)
        write_text_atomically(folder / DETAILS_FILE, text + "\n")


def _read_title(folder: Path) -> str:
    path = folder / TITLE_FILE
    if not path.is_file():
        return ""
    text = read_file(path).decode("utf-8", "replace")
    first = text.partition("\n")[0]
    if text != title_text(first):
        raise UserError(f"{path} is damaged. Rename the run, or delete this file.")
    return first[:MAX_TITLE]


def title_text(title: str) -> str:
    """Return the content of the file of a title: the title and its SHA-256, a line each."""
    return f"{title}\n{text_digest(title)}\n"


def _read_json(path: Path) -> dict[str, Any]:
    try:
        return msgspec.json.decode(read_file(path), type=dict[str, Any])
    except UserError as error:
        raise UserError(f"{error} {REMEDY}") from error
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> UserError:
    return UserError(f"{path}: the run's description is damaged ({error}). {REMEDY}")
