"""The one path from a dataset and a model to a saved run, for pages and the command line alike.

    ProbeRequest --plan--> RunSpec, one a model --execute--> Run

`execute` writes each scored batch down as it comes (see `block_log`), so that stopping it, in
whatever way, loses at most one batch; the same spec takes up where it stopped and ends with the
same bytes as an unbroken run.
"""

import datetime
import importlib.metadata
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from filelock import FileLock, Timeout

from lama_core.asking.executors import Executor, Job, Span, make_executor
from lama_core.asking.preparation import Prepared, prepare
from lama_core.asking.prompts import make_prompt_set
from lama_core.asking.questions import gather_knowledge, make_questions
from lama_core.asking.ranking import RANKINGS, Ranking
from lama_core.candidates.lists import named_candidates
from lama_core.datasets import Dataset, load_dataset
from lama_core.datasets.library.installed import dataset_names
from lama_core.errors import UserError, did_you_mean
from lama_core.models.base import BlankFiller, Context
from lama_core.runs.block_log import Block, BlockLog
from lama_core.runs.records import (
    FACTS_FILE,
    PART,
    RUN_FILE,
    RelationInfo,
    Run,
    RunInfo,
    RunSpec,
    bundled_dir,
    read_info,
    runs_dir,
    write_info,
)
from lama_core.runs.rows import make_rows
from lama_core.runs.table import write_facts

LOG_FILE = "blocks.log"
PACKAGES = ("torch", "transformers", "tokenizers", "numpy", "pyarrow")
LoadModel = Callable[..., BlankFiller]


@dataclass(frozen=True, slots=True)
class ProbeRequest:
    """What a user asks for: the choices of the `probe` command and of the page.

    dataset: a name or a folder. relations: () is all that have facts. prompts: see
    `questions.PROMPT_SETS`. candidates: see `candidates.lists`. context: None is the paper's
    choice, `left` for causal models and `both` for masked ones. limit: the first so many facts of
    each relation.
    """

    dataset: str
    models: tuple[str, ...]
    relations: tuple[str, ...] = ()
    prompts: str = "manual"
    candidates: str = "common"
    ranking: Ranking = "filtered"
    context: Context | None = None
    precision: str = "fp32"
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is.

    done, total: queries. per_second: over this sitting, 0 before the first batch. seconds_left:
    None before the first batch. resumed: queries that an earlier sitting had scored.
    """

    run_id: str
    done: int
    total: int
    per_second: float
    seconds_left: float | None
    resumed: int


class RunStopped(UserError):
    """The user stopped a run; what was scored is kept."""


@dataclass(frozen=True, slots=True)
class Planned:
    """The runs that a request asks for, and what its user should know before they start."""

    specs: tuple[RunSpec, ...]
    notes: tuple[str, ...] = ()


def plan(request: ProbeRequest, *, load: LoadModel | None = None) -> Planned:
    """One spec for each model. Loads the models: their vocabularies decide the candidates.

    load: how to get a model, by default `models.loader.load_model`.
    Raises UserError for anything in the request that doesn't exist.
    """
    load = load or _load_model
    if not request.models:
        raise UserError("Name at least one model: `models list` shows what there is.")
    if request.limit is not None and request.limit < 1:
        raise UserError(f"The limit is {request.limit}: give at least 1, or none at all.")
    if request.ranking not in RANKINGS:
        hint = did_you_mean(request.ranking, RANKINGS)
        raise UserError(f"Unknown ranking {request.ranking!r}: choose filtered or raw{hint}.")
    dataset = load_dataset(request.dataset)
    with_facts = [relation for relation in dataset.relations if dataset.facts_of(relation.name)]
    chosen = [dataset.relation(name) for name in dict.fromkeys(request.relations)] or with_facts
    empty = [relation.name for relation in chosen if relation not in with_facts]
    if empty:
        raise UserError(f"{dataset.name} has no facts of {', '.join(empty)}: leave it out.")
    prompts = make_prompt_set(request.prompts, chosen)
    models = [load(name, precision=request.precision) for name in dict.fromkeys(request.models)]
    vocabularies = [model.vocabulary for model in models]
    candidates = named_candidates(request.candidates, vocabularies, of_relations=True)
    specs = []
    for reference, model in zip(dict.fromkeys(request.models), models, strict=True):
        spec = RunSpec(
            dataset=_absolute(request.dataset),
            dataset_name=dataset.name,
            data_digest=dataset.digest,
            relations=tuple(relation.name for relation in chosen),
            prompts=prompts,
            model=reference,
            model_name=model.name,
            model_identity=model.identity,
            model_kind=model.kind,
            candidates=candidates,
            context=_context(request.context, model),
            ranking=request.ranking,
            precision=request.precision,
            limit=request.limit,
        )
        specs.append(spec)
    return Planned(tuple(specs), tuple(dataset.report.notes))


def execute(
    spec: RunSpec,
    *,
    folder: Path | None = None,
    executor: Executor | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    on_note: Callable[[str], None] | None = None,
    stopped: Callable[[], bool] | None = None,
    load: LoadModel | None = None,
) -> Run:
    """The run of this spec: loaded if it is whole, taken up if it was begun, else made.

    folder: where runs are kept, by default the user's own. executor: by default this process.
    on_progress: called after each batch. on_note: told in a sentence what a user should know.
    stopped: asked after each batch; when true, RunStopped is raised and the part is kept.
    Raises UserError when the data or the model is no longer what the spec names, another process
    writes the same run, the disk is full, or the model gives values that are not numbers.
    """
    folder = runs_dir() if folder is None else folder
    note = on_note or (lambda _: None)
    whole = folder / spec.run_id
    finished = find_finished(spec, folder)
    if finished is not None:
        return finished
    part = folder / (spec.run_id + PART)
    lock = FileLock(folder / f".{spec.run_id}.lock")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout as error:
        raise UserError(
            f"Another process is writing the run {spec.run_id}: wait for it, or stop it."
        ) from error
    except OSError as error:
        raise UserError(f"{folder}: runs can't be written here: {error.strerror}.") from error
    with lock:
        if (whole / RUN_FILE).is_file():
            return Run(read_info(whole))
        part.mkdir(exist_ok=True)
        _note_stale_parts(spec, folder, note)
        sitting = _Sitting(spec, part, load or _load_model, on_progress, stopped)
        sitting.score(executor or make_executor("local"))
        sitting.save()
        part.replace(whole)
        (whole / LOG_FILE).unlink(missing_ok=True)
    Path(lock.lock_file).unlink(missing_ok=True)
    return Run(read_info(whole))


def find_finished(spec: RunSpec, folder: Path | None = None) -> Run | None:
    """The whole run of this spec, in `folder` or among the bundled ones; None if there is none."""
    for place in (runs_dir() if folder is None else folder, bundled_dir()):
        if (place / spec.run_id / RUN_FILE).is_file():
            return Run(read_info(place / spec.run_id))
    return None


@dataclass
class _Sitting:
    """One process's work on one run, from where the last one stopped."""

    spec: RunSpec
    part: Path
    load: LoadModel
    on_progress: Callable[[Progress], None] | None
    stopped: Callable[[], bool] | None
    blocks: list[Block] = field(default_factory=list)
    seconds: float = 0.0

    def __post_init__(self) -> None:
        """Load what the spec names, and check that it still is what the spec names."""
        spec = self.spec
        self.dataset = self._load_data()
        self.model = self.load(spec.model, precision=spec.precision)
        if self.model.identity != spec.model_identity:
            raise UserError(
                f"{spec.model_name} has other weights than when this run was planned: plan it "
                "again. What was scored before is kept."
            )
        self.knowledge = gather_knowledge(self.dataset, spec.relations)
        questions = make_questions(self.dataset, spec.relations, spec.prompts, spec.limit)
        self.prepared: Prepared = prepare(
            questions, self.knowledge, spec.candidates, self.model, spec.context
        )

    def _load_data(self) -> Dataset:
        dataset = load_dataset(self.spec.dataset)
        if dataset.digest != self.spec.data_digest:
            raise UserError(
                f"The dataset {self.spec.dataset_name!r} has changed since this run was planned: "
                "plan it again, which begins a new run. What was scored before is kept."
            )
        return dataset

    def score(self, executor: Executor) -> None:
        """Score what the log doesn't hold yet."""
        spec, segments = self.spec, self.prepared.segments
        job = Job(
            self.model,
            spec.model,
            spec.precision,
            spec.batch_rows,
            spec.batch_tokens,
        )
        with BlockLog(self.part / LOG_FILE, spec.digest) as log:
            self.blocks = list(log.done)
            resumed = sum(len(block.rows) for block in self.blocks)
            spans = missing_spans(self.blocks, [len(segment.queries) for segment in segments])
            began = time.perf_counter()
            done = resumed
            self._report(done, resumed, 0.0)
            if not spans:
                return
            for block in executor.blocks(job, segments, spans):
                log.append(block)
                self.blocks.append(block)
                done += len(block.rows)
                self.seconds = time.perf_counter() - began
                self._report(done, resumed, self.seconds)
                if self.stopped is not None and self.stopped() and done < self._total:
                    raise RunStopped(
                        f"Stopped after {done:,} of {self._total:,} queries; they are kept, and "
                        "the same request goes on from there."
                    )

    @property
    def _total(self) -> int:
        return self.prepared.n_queries

    def _report(self, done: int, resumed: int, seconds: float) -> None:
        if self.on_progress is None:
            return
        rate = (done - resumed) / seconds if seconds else 0.0
        left = (self._total - done) / rate if rate else None
        self.on_progress(Progress(self.spec.run_id, done, self._total, rate, left, resumed))

    def save(self) -> None:
        """Write the rows and the description into the part's folder."""
        rows = make_rows(self.prepared, self.blocks, self.knowledge, self.model.vocabulary)
        try:
            write_facts(rows, self.part / (FACTS_FILE + PART))
            (self.part / (FACTS_FILE + PART)).replace(self.part / FACTS_FILE)
            write_info(self._info(), self.part / RUN_FILE)
        except OSError as error:
            raise UserError(
                f"{self.part}: the run can't be saved: {error.strerror}. What was scored is kept; "
                "make room and give the same command again."
            ) from error

    def _info(self) -> RunInfo:
        spec = self.spec
        counts = Counter(
            (question.relation.name, question.excluded is None)
            for question in self.prepared.questions
        )
        relations = []
        for name in spec.relations:
            relation = self.dataset.relation(name)
            relations.append(
                RelationInfo(
                    name,
                    relation.source,
                    relation.label,
                    relation.type,
                    spec.prompts.of(name),
                    counts[name, True],
                    counts[name, False],
                )
            )
        return RunInfo(
            id=spec.run_id,
            folder=self.part,
            bundled=False,
            digest=spec.digest,
            dataset=spec.dataset_name,
            data_digest=spec.data_digest,
            model=spec.model_name,
            model_identity=spec.model_identity,
            model_kind=spec.model_kind,
            prompts=spec.prompts.name,
            prompt_kind=spec.prompts.kind,
            candidates=spec.candidates.name,
            candidates_digest=spec.candidates.digest,
            n_candidates=max(len(segment.columns.words) for segment in self.prepared.segments),
            fold_case=spec.candidates.fold_case,
            context=spec.context,
            ranking=spec.ranking,
            precision=spec.precision,
            limit=spec.limit,
            n=sum(relation.n for relation in relations),
            n_excluded=sum(relation.n_excluded for relation in relations),
            relations=tuple(relations),
            seconds=round(self.seconds, 3),
            made=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            versions=tuple((name, _version(name)) for name in PACKAGES),
        )


def missing_spans(done: Sequence[Block], n_queries: Sequence[int]) -> list[Span]:
    """The stretches of batches that aren't done, of segments with so many queries each.

    A segment whose queries are all done has none. The last stretch of a segment is open.
    """
    spans = []
    for segment, total in enumerate(n_queries):
        blocks = [block for block in done if block.segment == segment]
        if sum(len(block.rows) for block in blocks) == total:
            continue
        first = 0
        for number in sorted(block.number for block in blocks):
            if number > first:
                spans.append(Span(segment, first, number))
            first = number + 1
        spans.append(Span(segment, first, None))
    return spans


def _context(wanted: Context | None, model: BlankFiller) -> Context:
    """The paper's choice where the user made none. A masked model always sees both sides."""
    if model.kind == "masked":
        return "both"
    return wanted or "left"


def _absolute(reference: str) -> str:
    if reference in dataset_names():
        return reference
    return str(Path(reference).expanduser().resolve())


def _load_model(reference: str, *, precision: str) -> BlankFiller:
    from lama_core.models.loader import load_model

    return load_model(reference, precision=precision)  # type: ignore[arg-type]


def _note_stale_parts(spec: RunSpec, folder: Path, note: Callable[[str], None]) -> None:
    """Say that a part of the same name was begun on other data or options, and is kept."""
    stem = spec.run_id.rsplit("-", 1)[0]
    for other in sorted(folder.glob(f"{stem}-*{PART}")):
        if other.name != spec.run_id + PART:
            note(
                f"{other} was begun with other data, model or options and is kept; "
                "delete it if you don't want to go on with it."
            )


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
