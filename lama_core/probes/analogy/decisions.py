"""One relation's instances, decided: from judged pairs to the rows of a run."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lama_core.datasets.base import AnalogyRelation
from lama_core.probes.analogy.judges import Judge, OnDone
from lama_core.probes.analogy.probes import (
    MIN_PAIRS,
    Instance,
    ProbeImpossible,
    ProbeOptions,
    Setting,
    distinct_pairs,
    make_probe,
    split_pairs,
)
from lama_core.probes.analogy.score import Pair
from lama_core.probes.analogy.supervised import Labelled, classify
from lama_core.probes.analogy.templates import fill, resolve_template
from lama_core.runs.table import SCHEMA, make_column

UNKNOWN = "a word has no vector"
ROWS = pa.schema(
    [
        *SCHEMA,
        ("negative", pa.string()),
        ("score", pa.float32()),
        ("negative_score", pa.float32()),
        ("label", pa.bool_()),
        ("seed", pa.int16()),
    ]
)


@dataclass(frozen=True)
class Plan:
    """The instances of one relation for one probe.

    reads_sentences: whether the judge is a model; baselines see the pairs alone.
    test: what is decided. train: what a classifier learns from; None is unsupervised.
    """

    relation: AnalogyRelation
    options: ProbeOptions
    reads_sentences: bool
    test: tuple[Instance, ...]
    train: tuple[Instance, ...] | None = None

    @property
    def n_decisions(self) -> int:
        """How many instances are decided; supervised: pairs of pairs that are described."""
        if self.train is None:
            return len(self.test)
        return sum(map(len, self._rows()))

    @property
    def n_pairs(self) -> int:
        """How many pairs the instances are made of."""
        return len(distinct_pairs(self.relation, self.options.tails))

    def decide(self, judge: Judge, tick: OnDone) -> pa.Table:
        """One row a decision. tick: told how many more of `n_decisions` are done."""
        if self.train is not None:
            return self._decide_supervised(judge, self.train, tick)
        usable = [one for one in self.test if one.negative]
        scores = judge.prefer(usable, tick) if usable else np.zeros((0, 2))
        return self._unsupervised_table(self.test, scores)

    def _unsupervised_table(
        self, instances: Sequence[Instance], scores: NDArray[np.float64]
    ) -> pa.Table:
        values = np.full((len(instances), 2), np.nan)
        values[[one.negative is not None for one in instances]] = scores
        rows = []
        for one, (right, wrong) in zip(instances, values.tolist(), strict=True):
            unknown = np.isnan(right) or np.isnan(wrong)
            row = self._row(one.id, one.query, one.positive)
            row["negative"] = join(one.negative) if one.negative else None
            row["score"] = None if np.isnan(right) else right
            row["negative_score"] = None if np.isnan(wrong) else wrong
            row["excluded"] = one.excluded or (UNKNOWN if unknown else None)
            # A tie is no preference: it counts as wrong.
            rank = None if row["excluded"] else 1 if right > wrong else 2
            row["rank_raw"] = row["rank_filtered"] = rank
            row["first"] = rank and row["object" if rank == 1 else "negative"]
            rows.append(row)
        return make_table(rows)

    def _row(self, name: str, query: Pair, pair: Pair) -> dict[str, Any]:
        """What every row of a pair has; query: the sentence, empty for a baseline."""
        text = ""
        if self.reads_sentences:
            text = fill(resolve_template(self.options.template), (*query, *pair)).text
        return {
            "fact_id": name,
            "relation": self.relation.name,
            "source": self.relation.kind,
            "prompt": 0,
            "query": text,
            "subject": join(query),
            "object": join(pair),
        }

    def _rows(self) -> tuple[list[tuple[Pair, Pair]], list[tuple[Pair, Pair]]]:
        """Each query pair with its positives, and with its negatives, of both halves, each once.

        The positives are the same for every probe.
        """
        usable = [one for half in (self.train or (), self.test) for one in half if one.negative]
        rights = dict.fromkeys((one.query, one.positive) for one in usable)
        wrongs = dict.fromkeys((one.query, one.negative) for one in usable if one.negative)
        return list(rights), list(wrongs)

    def _decide_supervised(self, judge: Judge, train: Sequence[Instance], tick: OnDone) -> pa.Table:
        vectors: dict[tuple[Pair, Pair], NDArray[np.float32]] = {}
        for pairs in self._rows():
            if pairs:
                vectors |= dict(zip(pairs, judge.features(pairs, tick), strict=True))
        kept: list[_Row] = []
        labelled = []
        for instances in (train, self.test):
            both = [row for one in instances for row in _both(one)]
            kept = [row for row in both if not np.isnan(vectors[row.query, row.pair]).any()]
            labels = np.array([row.label for row in kept], dtype=bool)
            found = [vectors[row.query, row.pair] for row in kept] or [np.zeros(0, np.float32)]
            labelled.append(Labelled(np.stack(found), labels))
        decided = {row.id for row in kept}
        rows = [
            self._row(one.id, one.query, one.positive) | {"excluded": one.excluded or UNKNOWN}
            for one in self.test
            if one.excluded or not {f"{one.id}/+", f"{one.id}/-"} <= decided
        ]
        if all(len(set(part.labels.tolist())) == 2 for part in labelled):
            seeds = range(self.options.n_seeds)
            answers = classify(*labelled, seeds=seeds, hidden=self.options.hidden)
            for seed, answered in zip(seeds, answers, strict=True):
                for one, right in zip(kept, answered.tolist(), strict=True):
                    row = self._row(f"{one.id}/{seed}", one.query, one.pair)
                    row["rank_raw"] = row["rank_filtered"] = 1 if right else 2
                    rows.append(row | {"label": one.label, "seed": seed})
        return make_table(rows)


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


def make_plan(
    relation: AnalogyRelation,
    setting: Setting,
    probe: str,
    options: ProbeOptions,
    *,
    reads_sentences: bool,
) -> Plan:
    """A relation's instances: within halves of its pairs, to train and to test, or of all pairs.

    Unsupervised instances are those of both halves; a limit is shared between these.
    Raises ProbeImpossible for too few pairs.
    """

    def instances(part: str, pairs: Sequence[Pair], limit: int | None) -> tuple[Instance, ...]:
        limited = replace(options, limit=limit)
        return tuple(make_probe(relation, probe, limited, pairs=pairs, part=part))

    pairs, limit = distinct_pairs(relation, options.tails), options.limit
    if setting == "unsupervised" and options.pairing == "all":
        return Plan(relation, options, reads_sentences, instances("all", pairs, limit))
    train, test = split_pairs(pairs, seed=options.seed, name=relation.name)
    if min(len(train), len(test)) < MIN_PAIRS:
        raise ProbeImpossible(
            f"{relation.name}: no probe is possible with {len(pairs)} "
            f"{'pair' if len(pairs) == 1 else 'pairs'}; each half needs three."
        )
    if setting == "supervised":
        tested, trained = instances("test", test, limit), instances("train", train, limit)
        return Plan(relation, options, reads_sentences, tested, trained)
    first = None if limit is None else min(limit // 2, len(train) * (len(train) - 1))
    second = None if limit is None or first is None else limit - first
    both = (*instances("train", train, first), *instances("test", test, second))
    return Plan(relation, options, reads_sentences, both)


def join(pair: Pair) -> str:
    """A pair as the rows hold it."""
    return f"{pair[0]} : {pair[1]}"


def split(text: str) -> Pair:
    """A pair back from the rows."""
    head, _, tail = text.partition(" : ")
    return head, tail


def make_table(rows: Sequence[dict[str, Any]]) -> pa.Table:
    """Rows of a probe run from what they have; the rest is null."""
    arrays = [
        make_column([row.get(field.name) for row in rows], len(rows), field.type) for field in ROWS
    ]
    return pa.Table.from_arrays(arrays, schema=ROWS)
