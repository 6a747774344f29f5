"""One relation's instances, decided: from judged pairs to rows and accuracies."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lama_core.datasets.base import AnalogyRelation
from lama_core.probes.analogy.frequency import compare_frequency
from lama_core.probes.analogy.judges import Judge
from lama_core.probes.analogy.probes import (
    Instance,
    Probe,
    ProbeImpossible,
    distinct_pairs,
    make_probe,
    split_pairs,
)
from lama_core.probes.analogy.records import ProbeOptions, RelationResult, make_table
from lama_core.probes.analogy.score import Pair
from lama_core.probes.analogy.supervised import Labelled, classify
from lama_core.probes.analogy.templates import fill, resolve_template

UNKNOWN = "a word has no vector"


@dataclass(frozen=True)
class Plan:
    """One relation's instances by probe; `number` is its place among the chosen relations.

    reads_sentences: whether the judge is a model; baselines see the pairs alone.
    train, test: the halves (supervised); unsupervised only `test` is used.
    """

    number: int
    relation: AnalogyRelation
    options: ProbeOptions
    reads_sentences: bool
    test: dict[Probe, list[Instance]]
    train: dict[Probe, list[Instance]] | None = None

    @property
    def n_decisions(self) -> int:
        """How many instances are decided, over all probes; supervised: embedded rows."""
        if self.train is None:
            return sum(len(instances) for instances in self.test.values())
        return len(self._rows(list(self.test)))

    def decide(
        self, judge: Judge, probes: Sequence[Probe], report: Callable[[int], None]
    ) -> dict[Probe, pa.Table]:
        """The rows of the given probes."""
        if self.train is None:
            return self._decide_unsupervised(judge, probes, report)
        return self._decide_supervised(judge, probes, report)

    def _decide_unsupervised(
        self, judge: Judge, probes: Sequence[Probe], report: Callable[[int], None]
    ) -> dict[Probe, pa.Table]:
        usable = [one for probe in probes for one in self.test[probe] if one.negative]
        scores = judge.prefer(usable, report) if usable else np.zeros((0, 2))
        found = {}
        start = 0
        for probe in probes:
            instances = self.test[probe]
            n_usable = sum(one.negative is not None for one in instances)
            found[probe] = self._unsupervised_table(instances, scores[start : start + n_usable])
            start += n_usable
            report(len(instances) - n_usable)
        return found

    def _unsupervised_table(
        self, instances: Sequence[Instance], scores: NDArray[np.float64]
    ) -> pa.Table:
        values = np.full((len(instances), 2), np.nan)
        values[[one.negative is not None for one in instances]] = scores
        excluded = [
            one.excluded or (UNKNOWN if np.isnan(value).any() else None)
            for one, value in zip(instances, values, strict=True)
        ]
        # A tie is no preference: it counts as wrong.
        right = values[:, 0] > values[:, 1]
        ranks = [
            None if reason else 1 if is_right else 2
            for reason, is_right in zip(excluded, right.tolist(), strict=True)
        ]
        positives = [join(one.positive) for one in instances]
        negatives = [join(one.negative) if one.negative else None for one in instances]
        first = [
            None if reason else positive if is_right else negative
            for reason, is_right, positive, negative in zip(
                excluded, right.tolist(), positives, negatives, strict=True
            )
        ]
        columns: dict[str, Sequence[Any]] = {
            "fact_id": [one.id for one in instances],
            "query": [self._text(one.query, one.positive) for one in instances],
            "subject": [join(one.query) for one in instances],
            "object": positives,
            "excluded": excluded,
            "rank_raw": ranks,
            "rank_filtered": ranks,
            "first": first,
            "negative": negatives,
            "score": _nullable(values[:, 0]),
            "negative_score": _nullable(values[:, 1]),
        }
        return make_table(columns | self._constant(len(instances)))

    def _constant(self, n_rows: int) -> dict[str, Sequence[Any]]:
        return {
            "relation": [self.relation.name] * n_rows,
            "source": [self.relation.kind] * n_rows,
            "prompt": [0] * n_rows,
        }

    def _text(self, query: Pair, pair: Pair) -> str:
        """The sentence that a model is asked; empty for a baseline."""
        if not self.reads_sentences:
            return ""
        return fill(resolve_template(self.options.template), (*query, *pair)).text

    def _rows(self, probes: Sequence[Probe]) -> list[tuple[Pair, Pair]]:
        """Every query pair with every candidate pair that has to be described, each once."""
        rows: dict[tuple[Pair, Pair], None] = {}
        for half in (self.train or {}, self.test):
            for probe in probes:
                for one in half[probe]:
                    if one.negative is not None:
                        rows[one.query, one.positive] = None
                        rows[one.query, one.negative] = None
        return list(rows)

    def _decide_supervised(
        self, judge: Judge, probes: Sequence[Probe], report: Callable[[int], None]
    ) -> dict[Probe, pa.Table]:
        rows = self._rows(probes)
        features = judge.features(rows, report)
        at = {row: number for number, row in enumerate(rows)}
        return {probe: self._classified(probe, features, at) for probe in probes}

    def _classified(
        self, probe: Probe, features: NDArray[np.float32], at: dict[tuple[Pair, Pair], int]
    ) -> pa.Table:
        seeds = range(self.options.n_seeds)
        halves = [self.train[probe] if self.train else [], self.test[probe]]
        labelled = []
        kept: list[list[_Row]] = []
        for instances in halves:
            rows = [row for one in instances for row in _both(one)]
            known = [row for row in rows if not np.isnan(features[at[row.query, row.pair]]).any()]
            kept.append(known)
            chosen = [at[row.query, row.pair] for row in known]
            labels = np.array([row.label for row in known], dtype=bool)
            labelled.append(Labelled(features[chosen], labels))
        excluded = self._excluded(halves[1], kept[1])
        train, test = labelled
        enough = all(len(set(part.labels.tolist())) == 2 for part in labelled)
        if not enough:
            return excluded
        found = classify(train, test, seeds=seeds, hidden=self.options.hidden)
        tables = [excluded]
        for seed, right in zip(found.seeds, found.right, strict=True):
            ranks = [1 if one else 2 for one in right.tolist()]
            columns: dict[str, Sequence[Any]] = {
                "fact_id": [f"{row.id}/{seed}" for row in kept[1]],
                "query": [self._text(row.query, row.pair) for row in kept[1]],
                "subject": [join(row.query) for row in kept[1]],
                "object": [join(row.pair) for row in kept[1]],
                "excluded": [None] * len(ranks),
                "rank_raw": ranks,
                "rank_filtered": ranks,
                "label": [row.label for row in kept[1]],
                "seed": [seed] * len(ranks),
            }
            tables.append(make_table(columns | self._constant(len(ranks))))
        return pa.concat_tables(tables)

    def _excluded(self, instances: Sequence[Instance], kept: "Sequence[_Row]") -> pa.Table:
        """The test instances that can't be decided, with the reason."""
        decided = {row.id for row in kept}
        rows = [
            (one.id, one, one.excluded or UNKNOWN)
            for one in instances
            if one.excluded or not {f"{one.id}/+", f"{one.id}/-"} <= decided
        ]
        columns: dict[str, Sequence[Any]] = {
            "fact_id": [name for name, _, _ in rows],
            "query": [self._text(one.query, one.positive) for _, one, _ in rows],
            "subject": [join(one.query) for _, one, _ in rows],
            "object": [join(one.positive) for _, one, _ in rows],
            "excluded": [reason for _, _, reason in rows],
        }
        return make_table(columns | self._constant(len(rows)))


@dataclass(frozen=True, slots=True)
class _Row:
    """A query pair with a candidate pair, and whether they make a true analogy."""

    id: str
    query: Pair
    pair: Pair
    label: bool


def _both(instance: Instance) -> list[_Row]:
    if instance.negative is None:
        return []
    return [
        _Row(f"{instance.id}/+", instance.query, instance.positive, True),
        _Row(f"{instance.id}/-", instance.query, instance.negative, False),
    ]


def plan_unsupervised(
    number: int,
    relation: AnalogyRelation,
    probes: Sequence[Probe],
    options: ProbeOptions,
    *,
    reads_sentences: bool,
) -> Plan:
    """A relation's instances, all of its pairs together. Raises ProbeImpossible."""
    test = {
        probe: make_probe(
            relation, probe, seed=options.seed, limit=options.limit, strict=options.strict
        )
        for probe in probes
    }
    return Plan(number, relation, options, reads_sentences, test)


def plan_supervised(
    number: int,
    relation: AnalogyRelation,
    probes: Sequence[Probe],
    options: ProbeOptions,
    *,
    reads_sentences: bool,
) -> Plan:
    """A relation's instances, half of its pairs each to train and test. Raises ProbeImpossible."""
    halves = split_pairs(distinct_pairs(relation), seed=options.seed, name=relation.name)
    if min(len(half) for half in halves) < 3:
        raise ProbeImpossible(
            f"{relation.name}: no supervised probe is possible with "
            f"{len(distinct_pairs(relation))} pairs; each half needs three."
        )
    train, test = (
        {
            probe: make_probe(
                relation,
                probe,
                seed=options.seed,
                limit=options.limit,
                strict=options.strict,
                pairs=half,
                part=part,
            )
            for probe in probes
        }
        for part, half in zip(("train", "test"), halves, strict=True)
    )
    return Plan(number, relation, options, reads_sentences, test, train)


def make_result(relation: AnalogyRelation, table: pa.Table) -> RelationResult:
    """A relation's accuracy from its rows."""
    ranks = table["rank_raw"].to_numpy(zero_copy_only=False).astype(float)
    counted = ~np.isnan(ranks)
    right = ranks == 1
    seeds = table["seed"].to_numpy(zero_copy_only=False).astype(float)
    groups = [counted & (seeds == seed) for seed in np.unique(seeds[~np.isnan(seeds)])] or [counted]
    accuracies = tuple(float(right[group].mean()) for group in groups if group.any())
    # The frequency test looks at each pair once: at the first seed's decisions.
    once = groups[0]
    pairs = [split(text) for text in table["object"].to_pylist()]
    return RelationResult(
        name=relation.name,
        kind=relation.kind,
        one_to_many=relation.one_to_many,
        bidirectional=relation.bidirectional,
        n_pairs=len(distinct_pairs(relation)),
        n=int(counted.sum()),
        n_excluded=int((~counted).sum()),
        accuracy=float(np.mean(accuracies)) if accuracies else None,
        seeds=accuracies,
        frequency=compare_frequency(
            [pair for pair, chosen in zip(pairs, once.tolist(), strict=True) if chosen],
            right[once],
        ),
    )


def join(pair: Pair) -> str:
    """A pair as the rows hold it."""
    return f"{pair[0]} : {pair[1]}"


def split(text: str) -> Pair:
    """A pair back from the rows."""
    head, _, tail = text.partition(" : ")
    return head, tail


def _nullable(values: NDArray[np.float64]) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]
