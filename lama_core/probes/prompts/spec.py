"""Studies of prompts as runs, and ensembles of a study as runs of facts.

A study's rows are in `tables`; `details.json` holds, for each relation, what is not of a fact, and
for the whole the candidates and how prompts were chosen. A part is one relation; within it the
scored distributions are kept in the cache (see `store`), so that stopping loses at most one block.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lama_core.candidates.columns import Candidates
from lama_core.datasets import Dataset
from lama_core.datasets.library.installed import pairs_dir
from lama_core.datasets.lpaqa import read_pairs
from lama_core.datasets.prompt_sets import PromptPool
from lama_core.errors import UserError
from lama_core.models.protocols import BlankFiller
from lama_core.paths import cache_dir
from lama_core.probes.prompts.ensemble import RECIPES
from lama_core.probes.prompts.fact_queries import AskedFacts, make_asked
from lama_core.probes.prompts.study import RelationStudy, StudyOptions, study_relation
from lama_core.probes.prompts.study_rows import ROWS, read_study, write_details, write_study
from lama_core.probes.prompts.training_pairs import (
    Split,
    draw,
    halve,
    make_split,
    pairs_digest,
    take_share,
)
from lama_core.progress import Unit
from lama_core.runs.execute import save
from lama_core.runs.facts_table import SCHEMA, check_size
from lama_core.runs.find import list_runs, load_run
from lama_core.runs.info import DETAILS_FILE, FACTS_FILE, RelationInfo, Run, RunInfo
from lama_core.runs.spec import Finished, RunSpec, Sitting
from lama_core.scoring.executors import Part, Tick
from lama_core.scoring.preparation import NothingCounts
from lama_core.scoring.queries import Knowledge, gather_knowledge

# Raised by one whenever the same specification would give other numbers; never for anything else.
VERSION = 5
ENSEMBLE_VERSION = 1
METHODS = ("top1", "optimised")
# What `details.json` has.
OPTIONS = ("combinations", "recipes", "train_limit", "seed")
DETAILS = {
    *OPTIONS,
    "prompts",
    "own",
    "training",
    "drop_overlap",
    "candidates",
    "relations",
    "left_out",
}
_DETAILS = b"lama_details"


@dataclass(frozen=True, kw_only=True)
class StudySpec(RunSpec):
    """A study of the prompts of some relations.

    pools: of each relation, from `prompts` and `own`. training: a folder of pairs, None for half of
    the facts; these are as the user gave them, and not part of the identity. training_share: of
    the training pairs; the pairs that count are in `training_digest`. drop_overlap: leave out
    training pairs that are test facts, instead of refusing. keep: leave the distributions.
    """

    kind: ClassVar[str] = "study"
    version: ClassVar[int] = VERSION

    pools: tuple[PromptPool, ...]
    prompts: Path | None = None
    own: tuple[str, ...] = ()
    training: Path | None = None
    training_share: float = 1.0
    training_digest: str
    candidates: Candidates
    study_options: StudyOptions
    drop_overlap: bool = False
    keep: bool = False

    def options(self) -> dict[str, Any]:
        """Prompts, training pairs, candidates, recipes and how prompts are combined."""
        used = asdict(self.study_options)
        aside = [
            [entry.prompt.template for entry in pool.entries if entry.aside] for pool in self.pools
        ]
        if any(aside):  # where none is, a study is the one that it was before any could be
            used["aside"] = aside
        return used | {
            "pools": [
                [[entry.prompt.template, sorted(entry.origins)] for entry in pool.entries]
                for pool in self.pools
            ],
            "training": self.training_digest,
            "candidates": self.candidates.digest,
            "recipes": [asdict(RECIPES[name]) for name in self.study_options.recipes],
            "drop overlap": self.drop_overlap,
        }

    def prompt_name(self) -> str:
        """What the rows are of."""
        return "study"

    def load_data(self) -> Dataset:
        """The test facts. Raises UserError if they are no longer those of the specification."""
        dataset: Dataset = super().load_data()
        splits = [
            split_of(self.training, dataset, name, share=self.training_share)
            for name in self.relations
        ]
        if pairs_digest(splits) != self.training_digest:
            raise UserError(
                f"The training pairs of {self.dataset_name!r} have changed since this study was "
                "planned: plan it again, which begins a new one. What was scored before is kept."
            )
        return dataset

    def prepare(self, scorer: BlankFiller, on_note: Callable[[str], None]) -> Sitting:
        """The facts that count, a part a relation; those that can't be studied are named."""
        dataset = self.load_data()
        pending = []
        for name, pool in zip(self.relations, self.pools, strict=True):
            pending.append(self._pending(name, pool, dataset, scorer))
            for note in filter(None, (*pending[-1].notes, pending[-1].left_out)):
                on_note(note)
        if all(one.left_out for one in pending):
            raise UserError(pending[-1].left_out if pending else "There is no relation to study.")
        folder = cache_dir() / "prompt-distributions"
        work = StudyWork(tuple(pending), self.study_options, folder, self.keep)
        return Sitting(work, lambda tables: self._finish(work, tables))

    def _pending(
        self, name: str, pool: PromptPool, dataset: Dataset, model: BlankFiller
    ) -> "Pending":
        """One relation's facts that count. Raises UserError for pairs that are test facts."""
        relation, known = dataset.relation(name), dataset.facts_of(name)
        options = self.study_options
        found = split_of(self.training, dataset, name, share=self.training_share)
        how: dict[str, Any] = {"limit": self.limit, "seed": options.seed}
        split = make_split(name, found.train, found.test, drop_overlap=self.drop_overlap, **how)
        notes = (*found.notes, *split.notes, *pool.notes)
        if n_aside := sum(entry.aside for entry in pool.entries):
            notes += (
                f"{name}: {n_aside} of {len(pool.entries)} prompts have the blank before the "
                "subject and show a left-to-right model nothing of it; they are asked, and left "
                "out of ensembles (--include-subject-blind takes them in).",
            )
        knowledge = gather_knowledge(dataset, [name])
        template = (relation.prompts[0] if relation.prompts else pool.prompts[0]).template
        try:
            train, test = (
                make_asked(
                    relation,
                    facts,
                    self.candidates,
                    model,
                    options.context,
                    template=template,
                    known=everything,
                )
                for facts, everything in ((split.train, split.train), (split.test, known))
            )
        except NothingCounts as error:
            return Pending(pool, knowledge, notes, left_out=f"{name} is left out: {error}")
        train = train.take(draw(train.facts, options.train_limit, options.seed))
        return Pending(pool, knowledge, notes, train, test)

    def _finish(self, work: "StudyWork", tables: Sequence[pa.Table]) -> Finished:
        """The study from its relations' rows."""
        found = {
            name: json.loads(table.schema.metadata[_DETAILS])
            for name, table in zip(self.relations, tables, strict=True)
        }
        relations, n_candidates = [], 0
        for pool, test in ((one.pool, one.test) for one in work.pending):
            if test is not None:
                one, n, n_excluded = test.relation, len(test.facts), len(test.excluded)
                about = (one.name, one.source, one.label, one.type, pool.templates)
                relations.append(RelationInfo(*about, n, n_excluded))
                n_candidates = max(n_candidates, len(test.columns.words))
        details = {
            "prompts": str(self.prompts) if self.prompts else None,
            "own": self.own,
            "training": str(self.training) if self.training else None,
            "training_share": self.training_share,
            **{name: getattr(self.study_options, name) for name in OPTIONS},
            "drop_overlap": self.drop_overlap,
            "candidates": {
                name: getattr(self.candidates, name) for name in ("name", "fold_case", "words")
            },
            "relations": {name: one for name, one in found.items() if "left_out" not in one},
            "left_out": [one["left_out"] for one in found.values() if "left_out" in one],
        }
        plain = [table.replace_schema_metadata(None) for table in tables]
        rows = pa.concat_tables(plain, promote_options="default").unify_dictionaries()
        return Finished(rows, tuple(relations), n_candidates, details)


def split_of(
    training: Path | None, dataset: Dataset, relation: str, *, share: float = 1.0
) -> Split:
    """Return a relation's training pairs (None: half of its facts) and its test facts.

    share: of the training pairs, see `take_share`; the others are neither trained nor tested on.
    """
    facts = dataset.facts_of(relation)
    if training is None:
        train, test = halve(facts)
        return Split(take_share(train, share)[0], test)
    pairs, report = read_pairs(pairs_dir(training), relation)
    notes = (*(str(dropped) for dropped in report.dropped), *report.notes)
    return Split(take_share(pairs, share)[0], facts, notes)


@dataclass(frozen=True)
class Pending:
    """A relation to study. left_out: why it can't be; train and test are then None."""

    pool: PromptPool
    knowledge: Knowledge
    notes: tuple[str, ...]
    train: AskedFacts | None = None
    test: AskedFacts | None = None
    left_out: str = ""

    @property
    def size(self) -> tuple[int, int]:
        """How many queries are scored, and about how many words they have."""
        n_facts = sum(len(asked.facts) for asked in (self.train, self.test) if asked)
        n_words = sum(len(text.split()) for text in self.pool.templates)
        return len(self.pool.entries) * n_facts, n_facts * n_words


@dataclass(frozen=True)
class StudyWork:
    """The relations of a study. folder: for the distributions."""

    pending: tuple[Pending, ...]
    study_options: StudyOptions
    folder: Path
    keep: bool
    unit: Unit = field(default="queries", init=False)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The relations, in order."""
        return tuple(Part(f"{number:03}", *one.size) for number, one in enumerate(self.pending))

    def score(self, model: BlankFiller, number: int, tick: Tick) -> pa.Table:
        """One relation studied; its details stand in the table's metadata."""
        one = self.pending[number]
        table, details = ROWS.empty_table(), {"left_out": one.left_out}
        if one.train is not None and one.test is not None:
            study = study_relation(
                model,
                one.pool,
                one.train,
                one.test,
                self.study_options,
                folder=self.folder,
                keep=self.keep,
                notes=one.notes,
                tick=tick,
            )
            table = write_study(study, one.test, one.knowledge, model.vocabulary)
            details = write_details(study)
        text = json.dumps(details, ensure_ascii=False, allow_nan=False)
        return table.replace_schema_metadata({_DETAILS: text.encode()})


@dataclass(frozen=True)
class Study:
    """A finished study."""

    run: Run

    @property
    def info(self) -> RunInfo:
        """What every run says of itself."""
        return self.run.info

    @property
    def relations(self) -> tuple[str, ...]:
        """The relations that were studied, in natural order."""
        names = [relation.name for relation in self.info.relations]
        return tuple(sorted(names, key=lambda name: (len(name), name)))

    @property
    def label(self) -> str:
        """A short name for people."""
        some = "" if self.info.limit is None else f", {self.info.limit} facts a relation"
        return f"{self.info.model} on {self.info.dataset}{some}"

    @property
    def candidates(self) -> Candidates:
        """The words that were ranked."""
        raw = self.details["candidates"]
        words = None if raw["words"] is None else tuple(raw["words"])
        return Candidates(raw["name"], words, raw["fold_case"])

    @property
    def details(self) -> dict[str, Any]:
        """How prompts were chosen, and what is not of a fact. Raises UserError if it is damaged."""
        found = self.run.details
        if not set(found) >= DETAILS:
            raise UserError(f"{self.info.folder / DETAILS_FILE} is damaged: make the study again.")
        return found

    def relation(self, name: str) -> RelationStudy:
        """One relation's results. Raises UserError if they are not there or damaged."""
        path = self.info.folder / FACTS_FILE
        self.info.relation(name)
        try:
            check_size(path)
            table = pq.read_table(path, filters=[("relation", "==", name)])
            about = {one: getattr(self.info, one) for one in ("model", "model_kind", "ranking")}
            return read_study(table, self.details["relations"][name], **about)
        except (OSError, pa.ArrowException, ValueError, KeyError, TypeError) as error:
            raise UserError(f"{path} is damaged ({error}): make the study again.") from error


def list_studies(
    folders: Sequence[Path] | None = None, *, on_problem: Callable[[str], None] | None = None
) -> tuple[Study, ...]:
    """Return the user's studies, newest first, then bundled ones. Raises without `on_problem`."""
    listing = list_runs(folders, kinds=(StudySpec.kind,))
    for problem in listing.problems:
        if on_problem is None:
            raise UserError(problem)
        on_problem(problem)
    infos = sorted(listing, key=lambda info: info.made, reverse=True)
    return tuple(Study(Run(info)) for info in sorted(infos, key=lambda info: info.bundled))


def find_study(name: str) -> Study:
    """Return the study of that name or beginning, or in that folder."""
    remedy = "`prompts fit` makes one"
    return Study(load_run(name, kinds=(StudySpec.kind,), what="study", remedy=remedy))


@dataclass(frozen=True, kw_only=True)
class EnsembleSpec(RunSpec):
    """An ensemble of a study as a run of its own. study: the study's digest."""

    kind: ClassVar[str] = "ensemble"
    version: ClassVar[int] = ENSEMBLE_VERSION

    study: str
    name: str
    weights: tuple[tuple[str, tuple[float, ...]], ...]
    candidates: tuple[str, str, bool]

    def options(self) -> dict[str, Any]:
        """The study, the ensemble and its weights."""
        return {"study": self.study, "name": self.name, "weights": self.weights}

    def prompt_name(self) -> str:
        """The ensemble's name."""
        return self.name

    def candidate_list(self) -> tuple[str, str, bool]:
        """The study's candidates."""
        return self.candidates

    def prepare(self, scorer: BlankFiller, on_note: Callable[[str], None]) -> Sitting:
        """Nothing is asked: the study has the rows."""
        raise NotImplementedError("an ensemble is saved from its study")


def save_ensembles(
    study: Study, methods: Sequence[str] = METHODS, folder: Path | None = None
) -> tuple[Run, ...]:
    """Save a study's ensembles as runs, which Results, Facts and `compare` show.

    methods: such as `optimised`, of every combination. A row's query is that of the relation's
    prompt with the most weight; its ranks and answers are the ensemble's.
    """
    studies = [study.relation(name) for name in study.relations]
    rows = pq.read_table(study.info.folder / FACTS_FILE)  # read by `relation` before
    saved = []
    for combination in study.details["combinations"]:
        for method in methods:
            found = [one for one in studies if one.ensemble(combination, method)]
            if found:
                spec, finished = _ensemble(study, found, combination, method, rows)
                saved.append(save(spec, finished, study.info.device, folder))
    return tuple(saved)


def _ensemble(
    study: Study, studies: Sequence[RelationStudy], combination: str, method: str, rows: pa.Table
) -> tuple[EnsembleSpec, Finished]:
    info, made = study.info, study.details
    weights, relations, tables = [], [], []
    for one in studies:
        numbers = [(own.combination, own.method) for own in one.ensembles]
        number = numbers.index((combination, method))
        ensemble = one.ensembles[number]
        weights.append((one.relation.name, tuple(ensemble.weights.tolist())))
        order = np.argsort(-ensemble.weights, kind="stable")
        used = order[: np.count_nonzero(ensemble.weights)]
        templates = tuple(one.pool.templates[prompt] for prompt in used)
        relations.append(replace(info.relation(one.relation.name), templates=templates))
        here = rows.filter(pc.equal(rows["relation"].cast(pa.string()), one.relation.name))
        left_out = pc.and_(pc.is_valid(here["excluded"]), pc.is_null(here["train_ranks"]))
        tables.append(here.filter(pc.fill_null(pc.equal(here["ensemble"], number), False)))
        tables.append(here.filter(left_out))
    table = pa.concat_tables(tables)
    table = table.select([name for name in SCHEMA.names if name in table.column_names])
    # Prompt 0 in every ensemble, so that `compare` pairs the rows of two of them.
    zeros = pa.array(np.zeros(table.num_rows, np.int16))
    table = table.set_column(table.column_names.index("prompt"), "prompt", zeros)
    drawn = info.limit is not None and made["seed"] is not None
    name = f"{combination} {method}" + (f", {info.limit} drawn facts a relation" if drawn else "")
    same = ("data_digest", "model_identity", "model_kind", "precision", "context", "ranking")
    spec = EnsembleSpec(
        **{one: getattr(info, one) for one in same},
        dataset=info.dataset,
        dataset_name=info.dataset,
        relations=tuple(relation.name for relation in relations),
        model=info.model,
        model_name=info.model,
        limit=None if drawn else info.limit,
        study=info.digest,
        name=name,
        weights=tuple(weights),
        candidates=(info.candidates, info.candidates_digest, info.fold_case),
    )
    return spec, Finished(table, tuple(relations), info.n_candidates)
