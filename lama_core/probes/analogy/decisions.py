"""Decide the instances of one relation, and make the rows of a run from the decisions.

Unsupervised: a decision is right if the positive has a higher score than the negative.
Supervised: a classifier decides whether a query pair and a candidate pair form a true analogy. It
is a multi-layer perceptron (one hidden layer, ReLU, Adam), trained on the embeddings of one half of
a relation's pairs and tested on the other half. Source: Rezaee and Camacho-Collados, sections 2.3
and 2.4. They do not specify hidden size, seeds and training; we use scikit-learn's `MLPClassifier`
on standardised features, with at most 100 epochs, once per seed.

Departure: Supervised analogy probes
"""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lama_core.datasets.dataset import AnalogyRelation, Pair
from lama_core.probes.analogy.instances import (
    MIN_PAIRS,
    Instance,
    ProbeImpossible,
    ProbeOptions,
    Setting,
    distinct_pairs,
    make_probe,
    split_pairs,
)
from lama_core.probes.analogy.scorers import UNKNOWN, OnDone, PairScorer
from lama_core.queries.analogy_templates import fill_template, resolve_template
from lama_core.runs.facts_table import SCHEMA, make_facts_table

EPOCHS = 100
Labelled = tuple[NDArray[np.float32], NDArray[np.bool_]]
_Row = tuple[str, Pair, Pair, bool]  # name, query, candidate, whether they are a true analogy
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
class RelationPlan:
    """The instances of one relation for one probe.

    Attributes:
        relation: The relation.
        options: The probe's options.
        reads_sentences: Whether the scorer is a language model; baselines get only the pairs.
        test: The instances to decide.
        train: The instances to train a classifier on; None in the unsupervised setting.
    """

    relation: AnalogyRelation
    options: ProbeOptions
    reads_sentences: bool
    test: tuple[Instance, ...]
    train: tuple[Instance, ...] | None = None

    @property
    def n_decisions(self) -> int:
        """Total for progress reports: number of instances or (supervised) of feature vectors."""
        return len(self.test) if self.train is None else sum(map(len, self._feature_rows()))

    @property
    def n_pairs(self) -> int:
        """Number of pairs of the relation."""
        return len(distinct_pairs(self.relation))

    def decide(self, scorer: PairScorer, tick: OnDone) -> pa.Table:
        """Return one row per decision.

        tick: Called with the number of instances (supervised: feature vectors) since its last call.
        """
        if self.train is not None:
            return self._decide_supervised(scorer, self.train, tick)
        usable = [one for one in self.test if one.negative]
        scores = np.full((len(self.test), 2), np.nan)
        if usable:
            scores[[one.negative is not None for one in self.test]] = scorer.prefer(usable, tick)
        rows = []
        for one, (right, wrong) in zip(self.test, scores.tolist(), strict=True):
            unknown = np.isnan(right) or np.isnan(wrong)
            row = self._row(one.id, one.query, one.positive)
            row["negative"] = pair_text(one.negative) if one.negative else None
            row["score"] = None if np.isnan(right) else right
            row["negative_score"] = None if np.isnan(wrong) else wrong
            row["excluded"] = one.excluded or (scorer.why_unscored(one) if unknown else None)
            # A tie counts as wrong, because no pair is preferred. Departure: Ties of analogies
            rank = None if row["excluded"] else 1 if right > wrong else 2
            row["rank_raw"] = row["rank_filtered"] = rank
            row["first"] = rank and row["object" if rank == 1 else "negative"]
            rows.append(row)
        return make_table(rows)

    def _row(self, name: str, query: Pair, pair: Pair) -> dict[str, Any]:
        """Return the columns that don't depend on the decision; for baselines, `query` is empty."""
        text = ""
        if self.reads_sentences:
            text = fill_template(resolve_template(self.options.template), (*query, *pair)).text
        return {
            "fact_id": name,
            "relation": self.relation.name,
            "source": self.relation.kind,
            "prompt": 0,
            "query": text,
            "subject": pair_text(query),
            "object": pair_text(pair),
        }

    def _feature_rows(self) -> tuple[list[tuple[Pair, Pair]], list[tuple[Pair, Pair]]]:
        """Return the distinct (query, positive) and (query, negative) of both halves, two lists."""
        usable = [one for half in (self.train or (), self.test) for one in half if one.negative]
        positives = dict.fromkeys((one.query, one.positive) for one in usable)
        negatives = dict.fromkeys((one.query, one.negative) for one in usable if one.negative)
        return list(positives), list(negatives)

    def _decide_supervised(
        self, scorer: PairScorer, train: Sequence[Instance], tick: OnDone
    ) -> pa.Table:
        vectors: dict[tuple[Pair, Pair], NDArray[np.float32]] = {}
        for pairs in self._feature_rows():
            if pairs:
                vectors |= dict(zip(pairs, scorer.features(pairs, tick), strict=True))
        _, of_train = _labelled(train, vectors)
        kept, of_test = _labelled(self.test, vectors)
        decided = {name for name, *_ in kept}
        rows = [
            self._row(one.id, one.query, one.positive) | {"excluded": one.excluded or UNKNOWN}
            for one in self.test
            if one.excluded or not {f"{one.id}/+", f"{one.id}/-"} <= decided
        ]
        if all(len(set(labels.tolist())) == 2 for _, labels in (of_train, of_test)):
            seeds = range(self.options.n_seeds)
            right = classify(of_train, of_test, seeds=seeds, hidden=self.options.hidden)
            for seed, right_of_seed in zip(seeds, right.tolist(), strict=True):
                for (name, query, pair, label), is_right in zip(kept, right_of_seed, strict=True):
                    row = self._row(f"{name}/{seed}", query, pair)
                    row["rank_raw"] = row["rank_filtered"] = 1 if is_right else 2
                    rows.append(row | {"label": label, "seed": seed})
        return make_table(rows)


def _labelled(
    instances: Iterable[Instance], vectors: Mapping[tuple[Pair, Pair], NDArray[np.float32]]
) -> tuple[list[_Row], Labelled]:
    """Return the candidates of instances that have features, and their features and labels."""
    both = [
        (f"{one.id}/{sign}", one.query, pair, sign == "+")
        for one in instances
        for sign, pair in (("+", one.positive), ("-", one.negative))
        if one.negative and pair
    ]
    rows = [row for row in both if not np.isnan(vectors[row[1:3]]).any()]
    features = [vectors[row[1:3]] for row in rows] or [np.zeros(0, np.float32)]
    return rows, (np.stack(features), np.array([row[3] for row in rows], dtype=bool))


def make_plan(
    relation: AnalogyRelation,
    setting: Setting,
    probe: str,
    options: ProbeOptions,
    *,
    reads_sentences: bool,
) -> RelationPlan:
    """Return a relation's instances, made within halves of its pairs.

    Raises ProbeImpossible if a half has fewer than three pairs.
    """
    pairs, limit = distinct_pairs(relation), options.limit
    halves = split_pairs(pairs, seed=options.seed, name=relation.name)
    if len(pairs) < 2 * MIN_PAIRS:
        raise ProbeImpossible(
            f"{relation.name}: a probe needs at least {2 * MIN_PAIRS} pairs, three in each "
            f"half. This relation has {len(pairs)}."
        )
    limits = (limit, limit)
    if setting == "unsupervised" and limit is not None:
        first = min(limit // 2, len(halves[0]) * (len(halves[0]) - 1))
        limits = (first, limit - first)
    train, test = (
        tuple(make_probe(relation, probe, replace(options, limit=most), pairs=half, part=part))
        for part, half, most in zip(("train", "test"), halves, limits, strict=True)
    )
    if setting == "supervised":
        return RelationPlan(relation, options, reads_sentences, test, train)
    return RelationPlan(relation, options, reads_sentences, train + test)


def pair_text(pair: Pair) -> str:
    """Return the text of a pair in the rows, such as `Paris : France`."""
    return f"{pair[0]} : {pair[1]}"


def pair_from_text(text: str) -> Pair:
    """Return the pair of a text that `pair_text` made."""
    head, _, tail = text.partition(" : ")
    return head, tail


def make_table(rows: Sequence[dict[str, Any]]) -> pa.Table:
    """Return the rows as a table; missing values become null."""
    return make_facts_table(
        {name: [row.get(name) for row in rows] for name in ROWS.names}, len(rows), ROWS
    )


def classify(
    train: Labelled, test: Labelled, *, seeds: Sequence[int], hidden: int
) -> NDArray[np.bool_]:
    """Train one classifier per seed; return whether it is right on each test row, [seed, row].

    train, test: features, float32 [row, dim], and labels (true analogy or not), bool [row].
    The result depends only on the arguments.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    (features, labels), (test_features, test_labels) = train, test
    mean, std = features.mean(axis=0), features.std(axis=0)
    std = np.where(std < 1e-6, 1, std).astype(np.float32)
    right = np.empty((len(seeds), len(test_labels)), dtype=bool)
    for number, seed in enumerate(seeds):
        network = MLPClassifier((hidden,), max_iter=EPOCHS, random_state=seed, batch_size="auto")
        with warnings.catch_warnings():
            # Stopping after EPOCHS is intended.
            warnings.simplefilter("ignore", ConvergenceWarning)
            network.fit((features - mean) / std, labels)
        right[number] = network.predict((test_features - mean) / std) == test_labels
    return right
