"""Specifications of prompt studies, and of runs made from a study's ensembles.

A study's rows are described in `study_rows`. Its `details.json` holds the candidates, the options
and, for each relation, all values that do not belong to a single fact. A part of the run is one
relation. The cache keeps the distributions of a part (see `distributions`), so that an interruption
loses at most one block.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

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
from lama_core.models.protocols import BlankFiller, Context
from lama_core.paths import cache_dir
from lama_core.probes.prompts.ensemble import RECIPES
from lama_core.probes.prompts.fact_queries import PreparedFacts, make_prepared_facts
from lama_core.probes.prompts.request import SelectRequest, StudyRequest
from lama_core.probes.prompts.selection import TOP_KS
from lama_core.probes.prompts.study import RelationStudy, study_relation
from lama_core.probes.prompts.study_rows import ROWS, read_study, write_details, write_study
from lama_core.probes.prompts.training_pairs import (
    Split,
    halve,
    limited_positions,
    make_split,
    pairs_digest,
    share_of,
)
from lama_core.progress import Unit, ignore
from lama_core.runs.execute import save
from lama_core.runs.facts_table import SCHEMA, check_size
from lama_core.runs.find import list_runs, load_run
from lama_core.runs.info import DETAILS_FILE, ENSEMBLE, FACTS_FILE, RelationInfo, Run, RunInfo
from lama_core.runs.spec import Finished, RunSpec, ScoringJob
from lama_core.scoring.executors import Part, Tick
from lama_core.scoring.preparation import NoFactCounts
from lama_core.scoring.queries import Knowledge, gather_knowledge

# Keys of `details.json`.
OPTIONS = ("combinations", "recipes", "train_limit", "seed")
DETAILS = {*OPTIONS, "candidates", "relations", "left_out"}
_DETAILS_METADATA = b"lama_details"


@dataclass(frozen=True, kw_only=True)
class StudySpec(RunSpec, kind="study", version=6):
    """A study of the prompts of some relations.

    The run's identity depends on `pools` and `training_digest`, not on the fields of the request
    that they are made from: `prompts`, `own` and `training`.

    Attributes:
        pools: The prompts of each relation.
        training_digest: Digest of the training pairs that are used.
    """

    request: SelectRequest
    pools: tuple[PromptPool, ...]
    training_digest: str
    candidates: Candidates

    @property
    def asked(self) -> StudyRequest:
        """The request, without ensembles if it evaluates prompts one by one."""
        return self.request.study

    def options(self) -> dict[str, Any]:
        """Return the prompts, training pairs, candidates, recipes and other options."""
        names = ("ranking", "combinations", "curves", "train_limit", "seed")
        options = {name: getattr(self.asked, name) for name in names}
        aside = [
            [entry.prompt.template for entry in pool.entries if entry.aside] for pool in self.pools
        ]
        if any(aside):  # otherwise no key, so that older studies keep their identity
            options["aside"] = aside
        return options | {
            "context": self.context,
            "pools": [
                [[entry.prompt.template, sorted(entry.origins)] for entry in pool.entries]
                for pool in self.pools
            ],
            "training": self.training_digest,
            "candidates": self.candidates.digest,
            "recipes": [{"method": "adam"} | asdict(RECIPES[name]) for name in self.asked.recipes],
            "top_ks": TOP_KS,
            "drop overlap": self.request.drop_overlap,
        }

    def prompt_name(self) -> str:
        return "study"

    def load_data(self) -> Dataset:
        """Return the test facts; raise UserError if facts or training pairs have changed."""
        dataset: Dataset = super().load_data()
        splits = [self._split(dataset, name) for name in self.relations]
        if pairs_digest(splits) != self.training_digest:
            raise UserError(
                f"The training pairs of {self.dataset_name!r} have changed since this study was "
                "planned, so it can't be resumed. Start a new study."
            )
        return dataset

    def _split(self, dataset: Dataset, relation: str) -> Split:
        asked = self.request
        return load_split(asked.training, dataset, relation, share=asked.used_share)

    def prepare(self, scorer: BlankFiller, on_note: Callable[[str], None]) -> ScoringJob:
        """Prepare the facts of each relation, one part per relation.

        on_note: Called with messages, such as why a relation is excluded. Raises UserError if no
        relation can be studied.
        """
        dataset = self.load_data()
        pending = []
        for name, pool in zip(self.relations, self.pools, strict=True):
            relation = self._prepare_relation(name, pool, dataset, scorer)
            pending.append(relation)
            for note in filter(None, (*relation.notes, relation.excluded)):
                on_note(note)
        if all(relation.excluded for relation in pending):
            raise UserError(pending[-1].excluded if pending else "Choose a relation to study.")
        work = StudyWork(tuple(pending), self.asked, self.context)
        return ScoringJob(work, lambda tables: self._finish(work, tables))

    def _prepare_relation(
        self, name: str, pool: PromptPool, dataset: Dataset, model: BlankFiller
    ) -> "PendingRelation":
        """Split one relation's facts and prepare them. Raises UserError if the split fails."""
        relation, all_facts = dataset.relation(name), dataset.facts_of(name)
        given = self._split(dataset, name)
        split = make_split(
            name,
            given.train,
            given.test,
            drop_overlap=self.request.drop_overlap,
            limit=self.limit,
            seed=self.request.seed,
        )
        notes = (*given.notes, *split.notes, *pool.notes)
        if n_aside := sum(entry.aside for entry in pool.entries):
            notes += (
                f"{name}: {n_aside} of {len(pool.entries)} prompts are subject-blind: their blank "
                "comes before the subject, so a causal model can't see the subject. They are "
                "scored, but excluded from ensembles (--include-subject-blind includes them).",
            )
        knowledge = gather_knowledge(dataset, [name])
        template = (relation.prompts[0] if relation.prompts else pool.prompts[0]).template
        try:
            train, test = (
                make_prepared_facts(
                    relation,
                    facts,
                    self.candidates,
                    model,
                    self.context,
                    template=template,
                    known=known,
                )
                for facts, known in ((split.train, split.train), (split.test, all_facts))
            )
        except NoFactCounts as error:
            return PendingRelation(pool, knowledge, notes, excluded=f"{name} is excluded: {error}")
        most, seed = self.request.train_limit, self.request.seed
        train = train.take(limited_positions(train.facts, most, seed))
        return PendingRelation(pool, knowledge, notes, train, test)

    def _finish(self, work: "StudyWork", tables: Sequence[pa.Table]) -> Finished:
        """Combine the relations' rows into the finished study."""
        by_relation = {
            name: json.loads(table.schema.metadata[_DETAILS_METADATA])
            for name, table in zip(self.relations, tables, strict=True)
        }
        tested = [
            (one.test.relation, one.pool, one.test) for one in work.pending if one.test is not None
        ]
        relations = tuple(
            RelationInfo(
                of.name,
                of.source,
                of.label,
                of.type,
                pool.templates,
                len(test.facts),
                len(test.excluded),
            )
            for of, pool, test in tested
        )
        details = {
            **{name: getattr(self.asked, name) for name in OPTIONS},
            "candidates": {
                name: getattr(self.candidates, name) for name in ("name", "fold_case", "words")
            },
            "relations": {
                name: record for name, record in by_relation.items() if "left_out" not in record
            },
            "left_out": [
                record["left_out"] for record in by_relation.values() if "left_out" in record
            ],
        }
        rows = pa.concat_tables(
            [table.replace_schema_metadata(None) for table in tables], promote_options="default"
        ).unify_dictionaries()
        return Finished(
            rows, relations, max(len(test.columns.words) for *_, test in tested), details
        )


def load_split(
    training: Path | None, dataset: Dataset, relation: str, *, share: float = 1.0
) -> Split:
    """Return a relation's training pairs (None: half of its facts) and its test facts.

    share: Share of the training pairs to use (see `share_of`); the other pairs are not used
    as test facts, either.
    """
    facts = dataset.facts_of(relation)
    if training is None:
        train, test = halve(facts)
        return Split(share_of(train, share), test)
    pairs, report = read_pairs(pairs_dir(training), relation)
    notes = (*(str(dropped) for dropped in report.dropped), *report.notes)
    return Split(share_of(pairs, share), facts, notes)


@dataclass(frozen=True)
class PendingRelation:
    """A relation to study. excluded: Why it can't be studied; train and test are then None."""

    pool: PromptPool
    knowledge: Knowledge
    notes: tuple[str, ...]
    train: PreparedFacts | None = None
    test: PreparedFacts | None = None
    excluded: str = ""

    @property
    def size(self) -> int:
        """Number of queries."""
        return len(self.pool.entries) * sum(
            len(asked.facts) for asked in (self.train, self.test) if asked
        )


@dataclass(frozen=True)
class StudyWork:
    """The relations of a study, as parts of a run."""

    pending: tuple[PendingRelation, ...]
    request: StudyRequest
    context: Context
    unit: Unit = field(default="queries", init=False)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        return tuple(Part(f"{number:03}", one.size) for number, one in enumerate(self.pending))

    def score(self, model: BlankFiller, number: int, tick: Tick) -> pa.Table:
        """Study one relation; the table's metadata holds the relation's details as JSON."""
        relation = self.pending[number]
        table, details = ROWS.empty_table(), {"left_out": relation.excluded}
        if relation.train is not None and relation.test is not None:
            study = study_relation(
                model,
                relation.pool,
                relation.train,
                relation.test,
                self.request,
                self.context,
                folder=cache_dir() / "prompt-distributions",
                notes=relation.notes,
                tick=tick,
            )
            table = write_study(study, relation.test, relation.knowledge, model.vocabulary)
            details = write_details(study)
        return table.replace_schema_metadata(
            {_DETAILS_METADATA: json.dumps(details, ensure_ascii=False, allow_nan=False).encode()}
        )


@dataclass(frozen=True)
class Study:
    """A finished study."""

    run: Run

    @property
    def info(self) -> RunInfo:
        """The contents of `run.json`."""
        return self.run.info

    @property
    def relations(self) -> tuple[str, ...]:
        """The studied relations, in natural order (P9 before P10)."""
        names = (relation.name for relation in self.info.relations)
        return tuple(sorted(names, key=lambda name: (len(name), name)))

    @property
    def label(self) -> str:
        """A short name to show to users."""
        limit = "" if self.info.limit is None else f", {self.info.limit} facts per relation"
        return f"{self.info.model} on {self.info.dataset}{limit}"

    @property
    def n_queries(self) -> int:
        """The number of scored queries: each prompt with each training and test fact."""
        ranks = self.run.table(["train_ranks"])["train_ranks"]
        trained = int(pc.sum(pc.list_value_length(ranks)).as_py() or 0)
        return trained + sum(one.n * len(one.templates) for one in self.info.relations)

    @property
    def candidates(self) -> Candidates:
        """The ranked words."""
        raw = self.details["candidates"]
        return Candidates(
            raw["name"], None if raw["words"] is None else tuple(raw["words"]), raw["fold_case"]
        )

    @property
    def details(self) -> dict[str, Any]:
        """The contents of `details.json`. Raises UserError if it is damaged."""
        details = self.run.details
        if not set(details) >= DETAILS:
            raise UserError(f"Damaged file {self.info.folder / DETAILS_FILE}. Run the study again.")
        return details

    def relation(self, name: str) -> RelationStudy:
        """Return one relation's results. Raises UserError if they are missing or damaged."""
        path = self.info.path(FACTS_FILE)
        self.info.relation(name)
        try:
            check_size(path)
            table = pq.read_table(
                path, filters=[("relation", "==", name)], page_checksum_verification=True
            )
            about = {key: getattr(self.info, key) for key in ("model", "ranking")}
            return read_study(table, self.details["relations"][name], **about)
        except (OSError, pa.ArrowException, ValueError, KeyError, TypeError) as error:
            raise UserError(f"Damaged file {path} ({error}). Run the study again.") from error


def list_studies(
    folders: Sequence[Path] | None = None, *, on_problem: Callable[[str], None] = ignore
) -> tuple[Study, ...]:
    """Return the user's studies, newest first, then the bundled ones.

    on_problem: called with a message for each unreadable run.
    """
    listing = list_runs(folders, kinds=(StudySpec.kind,)).intact()
    for problem in listing.problems:
        on_problem(problem)
    infos = sorted(listing, key=lambda info: info.made, reverse=True)
    return tuple(Study(Run(info)) for info in sorted(infos, key=lambda info: info.bundled))


def find_study(name: str) -> Study:
    """Return the study with this name, start of a name, or folder."""
    return Study(
        load_run(name, kinds=(StudySpec.kind,), what="study", remedy="`prompts fit` makes one")
    )


@dataclass(frozen=True, kw_only=True)
class EnsembleSpec(RunSpec, kind=ENSEMBLE, version=1):
    """A run made from an ensemble of a study. request, study: The study's request and digest."""

    request: StudyRequest
    study: str
    name: str
    weights: tuple[tuple[str, tuple[float, ...]], ...]
    candidates: tuple[str, str, bool]

    @property
    def limit(self) -> int | None:
        """None if the facts are drawn at random, because they aren't the first ones."""
        return None if self.request.seed is not None else self.request.limit

    def options(self) -> dict[str, Any]:
        return {"study": self.study, "name": self.name, "weights": self.weights}

    def prompt_name(self) -> str:
        return self.name

    def candidate_list(self) -> tuple[str, str, bool]:
        return self.candidates

    def prepare(self, scorer: BlankFiller, on_note: Callable[[str], None]) -> ScoringJob:
        """Always raise NotImplementedError: an ensemble's rows come from its study."""
        raise NotImplementedError("use save_ensembles; ensembles are saved from their study")


def save_ensembles(
    study: Study,
    request: StudyRequest,
    methods: Sequence[str] = ("top1", "optimised"),
    folder: Path | None = None,
) -> tuple[Run, ...]:
    """Save a study's ensembles as runs, which Results, Facts and `compare` can show.

    Saves one run for each combination of prompt sets in the study and each method, such as
    `optimised`. A row has the query of the prompt with the highest weight, and the ranks and
    answers of the ensemble.
    """
    studies = [study.relation(name) for name in study.relations]
    rows = pq.read_table(study.info.path(FACTS_FILE))  # its size is checked by `study.relation`
    saved = []
    for combination in study.details["combinations"]:
        for method in methods:
            fitted = [one for one in studies if one.ensemble(combination, method)]
            if fitted:
                spec, finished = _ensemble_run(study, request, fitted, (combination, method), rows)
                saved.append(save(spec, finished, study.info.device, folder))
    return tuple(saved)


def _ensemble_run(
    study: Study,
    request: StudyRequest,
    studies: Sequence[RelationStudy],
    ensemble_name: tuple[str, str],
    rows: pa.Table,
) -> tuple[EnsembleSpec, Finished]:
    info = study.info
    weights, relations, tables = [], [], []
    for one in studies:
        number, ensemble = next(
            (number, ensemble)
            for number, ensemble in enumerate(one.ensembles)
            if (ensemble.combination, ensemble.method) == ensemble_name
        )
        weights.append((one.relation.name, tuple(ensemble.weights.tolist())))
        used = np.argsort(-ensemble.weights, kind="stable")[: np.count_nonzero(ensemble.weights)]
        templates = tuple(one.pool.templates[prompt] for prompt in used)
        relations.append(replace(info.relation(one.relation.name), templates=templates))
        own_rows = rows.filter(pc.equal(rows["relation"].cast(pa.string()), one.relation.name))
        excluded = pc.and_(pc.is_valid(own_rows["excluded"]), pc.is_null(own_rows["train_ranks"]))
        tables.append(own_rows.filter(pc.fill_null(pc.equal(own_rows["ensemble"], number), False)))
        tables.append(own_rows.filter(excluded))
    table = pa.concat_tables(tables)
    table = table.select([name for name in SCHEMA.names if name in table.column_names])
    # All ensembles get prompt 0, so that `compare` can pair the rows of two ensembles.
    table = table.set_column(
        table.column_names.index("prompt"), "prompt", pa.array(np.zeros(table.num_rows, np.int16))
    )
    drawn = info.limit is not None and study.details["seed"] is not None
    name = " ".join(ensemble_name) + (f", {info.limit} drawn facts a relation" if drawn else "")
    same = ("data_digest", "model_identity", "model_kind", "precision", "context")
    spec = EnsembleSpec(
        **{field: getattr(info, field) for field in same},
        request=request,
        dataset_name=info.dataset,
        relations=tuple(relation.name for relation in relations),
        model=info.model,
        model_name=info.model,
        study=info.digest,
        name=name,
        weights=tuple(weights),
        candidates=(info.candidates, info.candidates_digest, info.fold_case),
    )
    return spec, Finished(table, tuple(relations), info.n_candidates)
