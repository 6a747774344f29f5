"""Specifications and results of analogy probe runs.

A run has one scorer, one setting and one probe, over all chosen relations. It has one row per
decision: `subject` is the query pair, `object` the candidate pair (unsupervised: the positive),
`source` the kind of relation, and `rank_raw` is 1 for a right decision and 2 for a wrong one, so
that P@1 is the accuracy. Columns in addition to those of every run:

    negative                the wrong pair (unsupervised)
    score, negative_score   scores of the two pairs, higher is better (unsupervised)
    label, seed             whether the pair is a true analogy; seed of the classifier (supervised)

`details.json` holds the probe's options and its accuracies by relation (`ProbeDetails`).
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lama_core.datasets import AnalogyDataset, load_analogies
from lama_core.datasets.dataset import AnalogyRelationKind
from lama_core.errors import UserError
from lama_core.probes.analogy.decisions import RelationPlan, make_plan, pair_from_text
from lama_core.probes.analogy.frequency import FrequencyTest, compare_frequency
from lama_core.probes.analogy.instances import ProbeImpossible, ProbeOptions, Setting, words_of
from lama_core.probes.analogy.request import AnalogyRequest
from lama_core.probes.analogy.scorers import PAIR_SCORERS, PairScorer, PairScorerKind
from lama_core.progress import Unit, ignore
from lama_core.queries.analogy_templates import begins_with_candidate
from lama_core.runs.facts_table import read_columns
from lama_core.runs.find import list_runs
from lama_core.runs.info import DETAILS_FILE, FACTS_FILE, RelationInfo, Run, RunInfo
from lama_core.runs.spec import Finished, Load, RunSpec, ScoringJob
from lama_core.scoring.executors import Part, Tick
from lama_core.scoring.preparation import NoFactCounts, named_reasons
from lama_core.scoring.ranking import Ranking

# Recorded with the options; runs of earlier versions could have other values.
FIXED = {"tails": "several", "pairing": "halves", "reverse": "random"}


@dataclass(frozen=True, slots=True)
class RelationResult:
    """One relation's accuracy.

    Attributes:
        one_to_many: Marked * in the paper (random probe).
        bidirectional: Marked † in the paper (reverse probe).
        n: Number of decisions over all seeds, without excluded ones.
        accuracy: Mean over seeds; None without decisions.
        seeds: Accuracy per seed; a single value in the unsupervised setting.
    """

    name: str
    kind: AnalogyRelationKind
    one_to_many: bool
    bidirectional: bool
    n_pairs: int
    n: int
    n_excluded: int
    accuracy: float | None
    seeds: tuple[float, ...]
    frequency: FrequencyTest


@dataclass(frozen=True, slots=True)
class ExcludedRelation:
    """A relation that could not be probed, with the reason."""

    relation: str
    reason: str


@dataclass(frozen=True, slots=True)
class ProbeDetails:
    """The contents of `details.json`. missing: The words without a vector."""

    setting: Setting
    probe: str
    method: PairScorerKind
    options: ProbeOptions
    relations: tuple[RelationResult, ...]
    left_out: tuple[ExcludedRelation, ...] = ()
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class ProbeRun:
    """A finished probe run."""

    run: Run

    @property
    def info(self) -> RunInfo:
        """The contents of `run.json`."""
        return self.run.info

    @cached_property
    def details(self) -> ProbeDetails:
        """The contents of `details.json`. Raises UserError if it is damaged."""
        raw = dict(self.run.details)
        try:
            if FIXED.items() <= dict(raw["options"]).items():
                return msgspec.convert(raw, ProbeDetails)
        except (ValueError, TypeError, KeyError) as error:
            path = self.run.info.folder / DETAILS_FILE
            raise UserError(f"Damaged file {path} ({error}). Run the probe again.") from error
        raise UserError(
            f"{self.info.id} was made with an option that this version lacks. Run the probe again."
        )

    def rows(self) -> pa.Table:
        """Return one row per decision. Raises UserError if the file is missing or damaged."""
        return read_columns(self.info.path(FACTS_FILE))


def list_probe_runs(
    folders: Sequence[Path] | None = None, *, on_problem: Callable[[str], None] = ignore
) -> tuple[ProbeRun, ...]:
    """Return all finished probe runs under `folders`, the bundled ones first, then by date.

    folders: None is the bundled and the user's runs. on_problem: called with a message for each
    unreadable run.
    """
    listing = list_runs(folders, kinds=(AnalogySpec.kind,)).intact()
    runs: list[ProbeRun] = []
    problems = list(listing.problems)
    for run in (ProbeRun(Run(info)) for info in listing):
        try:
            runs += [run] if run.details else []
        except UserError as error:
            problems.append(str(error))
    for problem in problems:
        on_problem(problem)
    return tuple(runs)


@dataclass(frozen=True, kw_only=True)
class AnalogySpec(RunSpec, kind="analogy", version=4):
    """A run of one probe. model: The name of the scorer, whose kind is `method`."""

    request: AnalogyRequest
    setting: Setting
    probe: str
    method: PairScorerKind

    @property
    def ranking(self) -> Ranking:
        """Raw: the pairs of a decision are only two."""
        return "raw"

    @property
    def probe_options(self) -> ProbeOptions:
        """The options of the probe."""
        return self.request.options

    def options(self) -> dict[str, Any]:
        """Return the probe and the options that its numbers depend on."""
        options = asdict(self.probe_options) | FIXED
        supervised = ("layer", "pooling", "hidden", "n_seeds")
        unsupervised = ("normalise", "pairing")
        of_models = ("template", "normalise", "layer", "pooling")
        unused = {"limit", *(supervised if self.setting == "unsupervised" else unsupervised)}
        unused |= set(of_models if self.method != "model" else ())
        unused |= set() if self.probe == "reverse" else {"reverse"}
        used = {name: value for name, value in options.items() if name not in unused}
        if self.model_kind == "causal" and self.setting == "unsupervised":
            # Earlier runs had no start token where a sentence begins with the candidate pair.
            used |= {"start_token": "needed"} if begins_with_candidate(options["template"]) else {}
        return {"what": [self.setting, self.probe, self.method], **used}

    def prompt_name(self) -> str:
        return f"{self.probe}, {self.setting}"

    def candidate_list(self) -> tuple[str, str, bool]:
        """Return the two alternatives of a decision in place of a candidate list."""
        return "two pairs" if self.setting == "unsupervised" else "true or false", "", False

    def title(self) -> str:
        return f"{self.setting}: {self.model_name}"

    def scorer_key(self) -> tuple[Any, ...]:
        """Return a key; probes with the same key share a scorer and its cached numbers."""
        options = self.probe_options
        return (
            *(self.method, self.model, self.precision, self.data_digest, self.relations),
            *(options.template, options.normalise, options.layer, options.pooling),
        )

    def open(self, load: Load) -> PairScorer:
        """Load the scorer. Raises UserError if it has changed since the run was planned."""
        words = words_of(map(self.load_data().relation, self.relations))
        scorer = PAIR_SCORERS[self.method](
            self.model, words, self.probe_options, partial(load, precision=self.precision)
        )
        unchanged: PairScorer = self.unchanged(scorer)
        return unchanged

    def load_data(self) -> AnalogyDataset:
        dataset: AnalogyDataset = self.same_data(load_analogies(self.request.dataset))
        return dataset

    def prepare(self, scorer: PairScorer, on_note: Callable[[str], None]) -> ScoringJob:
        """Prepare the decisions, one part per relation.

        Raises UserError if no relation can be probed.
        """
        dataset, options = self.load_data(), self.probe_options
        is_model = self.method == "model"
        plans: list[RelationPlan] = []
        excluded: list[ExcludedRelation] = []
        for relation in map(dataset.relation, self.relations):
            try:
                plans.append(
                    make_plan(relation, self.setting, self.probe, options, reads_sentences=is_model)
                )
            except ProbeImpossible as error:
                excluded.append(ExcludedRelation(relation.name, str(error)))
        if not plans:
            reasons = " ".join(one.reason for one in excluded[:3])
            raise UserError(f"No relation can be probed. {reasons}")
        name = scorer.name
        missing = scorer.missing(words_of(map(dataset.relation, self.relations)))

        def finish(tables: Sequence[pa.Table]) -> Finished:
            results = tuple(map(make_result, plans, tables))
            if is_model and not any(one.n for one in results):
                reasons = named_reasons(
                    pa.concat_tables(tables, promote_options="default")["excluded"].to_pylist()
                )
                raise NoFactCounts(f"No instance can be decided with {name}: {reasons}.")
            details = ProbeDetails(
                self.setting, self.probe, self.method, options, results, tuple(excluded), missing
            )
            templates = (options.template if is_model else "",)
            relations = tuple(
                RelationInfo(one.name, one.kind, "", None, templates, one.n, one.n_excluded)
                for one in results
            )
            rows = pa.concat_tables(tables, promote_options="default").unify_dictionaries()
            return Finished(
                rows, relations, 2, asdict(details) | {"options": asdict(options) | FIXED}
            )

        return ScoringJob(AnalogyWork(tuple(plans)), finish)


@dataclass(frozen=True)
class AnalogyWork:
    """The decisions of a run, one part per relation."""

    plans: tuple[RelationPlan, ...]
    unit: Unit = field(default="decisions", init=False)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        return tuple(
            Part(f"{number:03}", plan.n_decisions) for number, plan in enumerate(self.plans)
        )

    def score(self, scorer: PairScorer, number: int, tick: Tick) -> pa.Table:
        """Decide the instances of one relation."""
        return self.plans[number].decide(scorer, tick)


def make_result(plan: RelationPlan, table: pa.Table) -> RelationResult:
    """Compute a relation's accuracy from its rows."""
    ranks, groups = _groups_by_seed(table)
    right, decided = ranks == 1, ~np.isnan(ranks)
    accuracies = tuple(float(right[group].mean()) for group in groups if group.any())
    names = ("name", "kind", "one_to_many", "bidirectional")
    return RelationResult(
        **{name: getattr(plan.relation, name) for name in names},
        n_pairs=plan.n_pairs,
        n=int(decided.sum()),
        n_excluded=int((~decided).sum()),
        accuracy=float(np.mean(accuracies)) if accuracies else None,
        seeds=accuracies,
        frequency=frequency_test(table),
    )


def frequency_test(table: pa.Table) -> FrequencyTest:
    """Test whether right and wrong instances differ in the frequency of their pairs.

    With several seeds an instance is right if more than half of the classifiers are right on it; if
    exactly half are, the first classifier decides.
    Departure: Decisions of several seeds
    """
    ranks, groups = _groups_by_seed(table)
    # All seeds decide the same instances in the same order.
    right = np.array([ranks[group] == 1 for group in groups])
    share = right.mean(axis=0)
    pairs = [pair_from_text(text) for text in table.filter(groups[0])["object"].to_pylist()]
    return compare_frequency(pairs, np.where(share == 0.5, right[0], share > 0.5))


def _groups_by_seed(table: pa.Table) -> tuple[NDArray[np.float64], list[NDArray[np.bool_]]]:
    """Return each row's rank (NaN if excluded), and for each seed a mask of its decided rows.

    Unsupervised rows have no seed and form a single group.
    """
    ranks, seeds = (
        table[name].to_numpy(zero_copy_only=False).astype(float) for name in ("rank_raw", "seed")
    )
    decided = ~np.isnan(ranks)
    present = np.unique(seeds[decided & ~np.isnan(seeds)])
    return ranks, [decided & (seeds == seed) for seed in present] or [decided]
