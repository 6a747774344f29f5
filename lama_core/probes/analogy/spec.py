"""Runs of analogy probes: one judge, one setting and one probe over all chosen relations.

The rows are those of any run, one a decision: `subject` is the query pair, `object` the pair that
is judged (unsupervised: the positive), `source` the kind of relation, and `rank_raw` 1 for a right
decision and 2 for a wrong one, so P@1 is the accuracy. Further columns:

    negative                the wrong pair (unsupervised)
    score, negative_score   what was compared, higher is better (unsupervised)
    label, seed             whether the pair is a true analogy, the classifier's seed (supervised)

`details.json` holds the probe's settings and its accuracies by relation (`ProbeDetails`).
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lama_core.datasets import AnalogyDataset, load_analogies
from lama_core.datasets.dataset import AnalogyKind
from lama_core.errors import UserError
from lama_core.probes.analogy.decisions import Plan, make_plan, split
from lama_core.probes.analogy.frequency import FrequencyTest, compare_frequency
from lama_core.probes.analogy.instances import (
    ProbeImpossible,
    ProbeOptions,
    Setting,
    words_of,
)
from lama_core.probes.analogy.scorers import JUDGES, Judge, Method
from lama_core.progress import Unit
from lama_core.runs.facts_table import read_columns
from lama_core.runs.find import list_runs
from lama_core.runs.info import DETAILS_FILE, FACTS_FILE, RelationInfo, Run, RunInfo
from lama_core.runs.spec import Finished, Load, RunSpec, Sitting
from lama_core.scoring.executors import Part, Tick

# Raised by one whenever the same specification would give other numbers; never for anything else.
VERSION = 4
# What older runs, which don't name these options, were made with.
BEFORE_VERSION_3 = {"tails": "first", "pairing": "all", "reverse": "positive"}


@dataclass(frozen=True, slots=True)
class RelationResult:
    """One relation's accuracy.

    one_to_many, bidirectional: the paper's marks * (random probe) and † (reverse probe).
    n: decisions that count, over all seeds. seeds: accuracy by seed; one value unsupervised.
    """

    name: str
    kind: AnalogyKind
    one_to_many: bool
    bidirectional: bool
    n_pairs: int
    n: int
    n_excluded: int
    accuracy: float | None
    seeds: tuple[float, ...]
    frequency: FrequencyTest


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A relation that could not be probed, and why."""

    relation: str
    reason: str


@dataclass(frozen=True, slots=True)
class ProbeDetails:
    """What `details.json` says. missing: words that the vectors don't have."""

    setting: Setting
    probe: str
    method: Method
    options: ProbeOptions
    relations: tuple[RelationResult, ...]
    left_out: tuple[LeftOut, ...] = ()
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class ProbeRun:
    """A finished probe run: what every run says of itself, and the probe's own."""

    run: Run

    @property
    def info(self) -> RunInfo:
        """What every run says of itself."""
        return self.run.info

    @cached_property
    def details(self) -> ProbeDetails:
        """The probe's own. Raises UserError if it is damaged."""
        return _read_details(self.run)

    def rows(self) -> pa.Table:
        """One row a decision, all columns. Raises UserError if they are missing or damaged."""
        return read_columns(self.info.folder / FACTS_FILE)


@dataclass(frozen=True, slots=True)
class ProbeListing:
    """Finished probe runs, bundled ones first, then by date; and what could not be read."""

    runs: tuple[ProbeRun, ...]
    problems: tuple[str, ...] = ()


def list_probe_runs(folders: Sequence[Path] | None = None) -> ProbeListing:
    """All finished probe runs under `folders`; by default the bundled ones and the user's own."""
    listing = list_runs(folders, kinds=(AnalogySpec.kind,))
    runs: list[ProbeRun] = []
    problems = list(listing.problems)
    for run in (ProbeRun(Run(info)) for info in listing):
        try:
            _ = run.details
        except UserError as error:
            problems.append(str(error))
        else:
            runs.append(run)
    return ProbeListing(tuple(runs), tuple(problems))


def _read_details(run: Run) -> ProbeDetails:
    raw = dict(run.details)
    try:
        relations = [
            record
            | {"frequency": FrequencyTest(**record["frequency"]), "seeds": tuple(record["seeds"])}
            for record in raw["relations"]
        ]
        return ProbeDetails(
            **raw
            | {
                "options": ProbeOptions(**BEFORE_VERSION_3 | raw["options"]),
                "relations": tuple(RelationResult(**record) for record in relations),
                "left_out": tuple(LeftOut(**record) for record in raw["left_out"]),
                "missing": tuple(raw["missing"]),
            }
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        path = run.info.folder / DETAILS_FILE
        raise UserError(f"{path}: the probe run is damaged ({error}): make it again.") from error


@dataclass(frozen=True, kw_only=True)
class AnalogySpec(RunSpec):
    """A run of one probe. model: of the judge, by its method: a model, or a file of vectors."""

    kind: ClassVar[str] = "analogy"
    version: ClassVar[int] = VERSION

    setting: Setting
    probe: str
    method: Method
    probe_options: ProbeOptions = field(default_factory=ProbeOptions)

    def options(self) -> dict[str, Any]:
        """The probe and its options, less those that don't touch it."""
        used = asdict(self.probe_options)
        supervised = ("layer", "pooling", "hidden", "n_seeds")
        unsupervised = ("normalise", "pairing")
        of_models = ("template", "normalise", "layer", "pooling")
        unused = {"limit", *(supervised if self.setting == "unsupervised" else unsupervised)}
        unused |= set(of_models if self.method != "model" else ())
        unused |= set() if self.probe == "reverse" else {"reverse"}
        kept = {name: value for name, value in used.items() if name not in unused}
        return {"what": [self.setting, self.probe, self.method], **kept}

    def prompt_name(self) -> str:
        """The probe and the setting."""
        return f"{self.probe}, {self.setting}"

    def candidate_list(self) -> tuple[str, str, bool]:
        """What is chosen between."""
        return "two pairs" if self.setting == "unsupervised" else "true or false", "", False

    def title(self) -> str:
        """The setting and the judge."""
        return f"{self.setting}: {self.model_name}"

    def scorer_key(self) -> tuple[Any, ...]:
        """Probes with the same judge share it, and what it remembers."""
        options = self.probe_options
        how = (options.template, options.normalise, options.layer, options.pooling, options.tails)
        return (self.method, self.model, self.precision, self.data_digest, self.relations, *how)

    def open(self, load: Load) -> Judge:
        """The judge. Raises UserError if it is no longer the specification's."""
        relations = map(self.load_data().relation, self.relations)
        words = words_of(relations, self.probe_options.tails)
        model = partial(load, precision=self.precision)
        judge = JUDGES[self.method].open(self.model, words, self.probe_options, model)
        found: Judge = self.unchanged(judge)
        return found

    def load_data(self) -> AnalogyDataset:
        """The analogies. Raises UserError if they are no longer the specification's."""
        found: AnalogyDataset = self.same_data(load_analogies(self.dataset))
        return found

    def prepare(self, scorer: Judge, on_note: Callable[[str], None]) -> Sitting:
        """The decisions, a part a relation. Raises UserError if no relation can be probed."""
        dataset, options = self.load_data(), self.probe_options
        is_model = self.method == "model"
        plans: list[Plan] = []
        left_out: list[LeftOut] = []
        for relation in map(dataset.relation, self.relations):
            how = (relation, self.setting, self.probe, options)
            try:
                plans.append(make_plan(*how, reads_sentences=is_model))
            except ProbeImpossible as error:
                left_out.append(LeftOut(relation.name, str(error)))
        if not plans:
            reasons = " ".join(one.reason for one in left_out[:3])
            raise UserError(f"No relation can be probed. {reasons}")
        missing = scorer.missing(words_of(map(dataset.relation, self.relations), options.tails))

        def finish(tables: Sequence[pa.Table]) -> Finished:
            results = tuple(map(make_result, plans, tables))
            about = (self.setting, self.probe, self.method, options)
            details = ProbeDetails(*about, results, tuple(left_out), missing)
            templates = (options.template if is_model else "",)
            relations = tuple(
                RelationInfo(one.name, one.kind, "", None, templates, one.n, one.n_excluded)
                for one in results
            )
            rows = pa.concat_tables(tables, promote_options="default").unify_dictionaries()
            return Finished(rows, relations, 2, asdict(details))

        return Sitting(AnalogyWork(tuple(plans)), finish)


@dataclass(frozen=True)
class AnalogyWork:
    """The decisions of a run, a part a relation."""

    plans: tuple[Plan, ...]
    unit: Unit = field(default="decisions", init=False)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The relations, in order."""
        return tuple(
            Part(f"{number:03}", plan.n_decisions, plan.n_decisions)
            for number, plan in enumerate(self.plans)
        )

    def score(self, judge: Judge, number: int, tick: Tick) -> pa.Table:
        """The decisions of one relation."""
        return self.plans[number].decide(judge, tick)


def make_result(plan: Plan, table: pa.Table) -> RelationResult:
    """A relation's accuracy from its rows."""
    ranks, seeds = _floats(table, "rank_raw"), _floats(table, "seed")
    counted = ~np.isnan(ranks)
    right = ranks == 1
    groups = [counted & (seeds == seed) for seed in np.unique(seeds[~np.isnan(seeds)])] or [counted]
    accuracies = tuple(float(right[group].mean()) for group in groups if group.any())
    names = ("name", "kind", "one_to_many", "bidirectional")
    return RelationResult(
        **{name: getattr(plan.relation, name) for name in names},
        n_pairs=plan.n_pairs,
        n=int(counted.sum()),
        n_excluded=int((~counted).sum()),
        accuracy=float(np.mean(accuracies)) if accuracies else None,
        seeds=accuracies,
        frequency=frequency_test(table),
    )


def frequency_test(table: pa.Table) -> FrequencyTest:
    """Test the frequency of the decisions in `ROWS`, each instance once.

    Of several seeds an instance is right if more than half of the classifiers are right about it;
    if exactly half are, the first one decides.
    Departure: Decisions of several seeds
    """
    ranks, seeds = _floats(table, "rank_raw"), _floats(table, "seed")
    counted = ~np.isnan(ranks)
    known = np.unique(seeds[counted & ~np.isnan(seeds)])
    # All seeds decide the same instances in the same order.
    groups = [counted & (seeds == seed) for seed in known] or [counted]
    right = np.array([ranks[group] == 1 for group in groups])
    share = right.mean(axis=0)
    pairs = [split(text) for text in table.filter(groups[0])["object"].to_pylist()]
    return compare_frequency(pairs, np.where(share == 0.5, right[0], share > 0.5))


def _floats(table: pa.Table, name: str) -> NDArray[np.float64]:
    """A column of numbers, NaN for null."""
    return table[name].to_numpy(zero_copy_only=False).astype(float)
