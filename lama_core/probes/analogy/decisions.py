"""One relation's instances, decided: from judged pairs to the rows of a run.

Supervised: does a query pair with a candidate pair make a true analogy? A multi-layer perceptron
(one hidden layer, ReLU, Adam) reads the embeddings and is trained on one half of a relation's
pairs, tested on the other. Source: Rezaee and Camacho-Collados, sections 2.3 and 2.4, which leave
the hidden size, the seeds and the training open: here scikit-learn's `MLPClassifier` on
standardised features, at most 100 epochs, once for each seed.

Departure: Supervised analogy probes
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lama_core.datasets.dataset import AnalogyRelation
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
from lama_core.probes.analogy.score import Pair
from lama_core.probes.analogy.scorers import Judge, OnDone
from lama_core.probes.analogy.templates import fill, resolve_template
from lama_core.runs.facts_table import SCHEMA, make_column

EPOCHS = 100
Labelled = tuple[NDArray[np.float32], NDArray[np.bool_]]
UNKNOWN = "a word has no vector"
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
            # A tie is no preference: it counts as wrong. Departure: Ties of analogies
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
        """Each query pair with its positives, and with its negatives, of both halves, each once."""
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
        labelled: list[Labelled] = []
        for instances in (train, self.test):
            both = [
                (f"{one.id}/{sign}", one.query, pair, sign == "+")
                for one in instances
                for sign, pair in (("+", one.positive), ("-", one.negative))
                if one.negative and pair
            ]
            kept = [row for row in both if not np.isnan(vectors[row[1:3]]).any()]
            found = [vectors[row[1:3]] for row in kept] or [np.zeros(0, np.float32)]
            labelled.append((np.stack(found), np.array([row[3] for row in kept], dtype=bool)))
        decided = {name for name, *_ in kept}
        rows = [
            self._row(one.id, one.query, one.positive) | {"excluded": one.excluded or UNKNOWN}
            for one in self.test
            if one.excluded or not {f"{one.id}/+", f"{one.id}/-"} <= decided
        ]
        if all(len(set(labels.tolist())) == 2 for _, labels in labelled):
            seeds = range(self.options.n_seeds)
            right = classify(labelled[0], labelled[1], seeds=seeds, hidden=self.options.hidden)
            for seed, answered in zip(seeds, right.tolist(), strict=True):
                for (name, query, pair, label), is_right in zip(kept, answered, strict=True):
                    row = self._row(f"{name}/{seed}", query, pair)
                    row["rank_raw"] = row["rank_filtered"] = 1 if is_right else 2
                    rows.append(row | {"label": label, "seed": seed})
        return make_table(rows)


def make_plan(
    relation: AnalogyRelation,
    setting: Setting,
    probe: str,
    options: ProbeOptions,
    *,
    reads_sentences: bool,
) -> Plan:
    """Return a relation's instances: within halves of its pairs, or of all pairs."""
    pairs, limit = distinct_pairs(relation, options.tails), options.limit
    halves: dict[str, Sequence[Pair]] = {"all": pairs}
    limits = dict.fromkeys(("all", "train", "test"), limit)
    if setting == "supervised" or options.pairing != "all":
        train, test = split_pairs(pairs, seed=options.seed, name=relation.name)
        if min(len(train), len(test)) < MIN_PAIRS:
            raise ProbeImpossible(
                f"{relation.name}: no probe is possible with {len(pairs)} "
                f"{'pair' if len(pairs) == 1 else 'pairs'}; each half needs three."
            )
        halves = {"train": train, "test": test}
        if setting == "unsupervised" and limit is not None:
            first = min(limit // 2, len(train) * (len(train) - 1))
            limits |= {"train": first, "test": limit - first}
    made = {
        part: tuple(
            make_probe(relation, probe, replace(options, limit=limits[part]), pairs=some, part=part)
        )
        for part, some in halves.items()
    }
    if setting == "supervised":
        return Plan(relation, options, reads_sentences, made["test"], made["train"])
    every = tuple(one for instances in made.values() for one in instances)
    return Plan(relation, options, reads_sentences, every)


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


def classify(
    train: Labelled, test: Labelled, *, seeds: Sequence[int], hidden: int
) -> NDArray[np.bool_]:
    """Whether the classifier of each seed is right about each test row, bool [seed, row].

    train, test: features, float32 [row, dim], and labels, bool [row], whether an analogy is true.
    The same rows and seeds answer the same.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    (features, labels), (asked, truth) = train, test
    centre, width = features.mean(axis=0), features.std(axis=0)
    width = np.where(width < 1e-6, 1, width).astype(np.float32)
    right = np.empty((len(seeds), len(truth)), dtype=bool)
    for number, seed in enumerate(seeds):
        network = MLPClassifier((hidden,), max_iter=EPOCHS, random_state=seed, batch_size="auto")
        with warnings.catch_warnings():
            # Stopping at EPOCHS is the setting, not a fault.
            warnings.simplefilter("ignore", ConvergenceWarning)
            network.fit((features - centre) / width, labels)
        right[number] = network.predict((asked - centre) / width) == truth
    return right
