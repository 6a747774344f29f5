"""A study: every prompt and ensemble of one relation, with one model, on training and test facts.

    pool of prompts, split of facts --score--> store --choose, fit--> ensembles --answer--> study

What is kept of it is small (ranks, ten best answers, weights, a shortlist of candidates), so that a
page can move weights about without a model.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lama_core.datasets.prompt_sets import PromptPool
from lama_core.errors import UserError
from lama_core.metrics.precision_at_k import macro_precision_at, precision_at
from lama_core.models.protocols import BlankFiller, Context
from lama_core.probes.prompts.distributions import DistributionStore
from lama_core.probes.prompts.ensemble import RECIPES, RELEASED, oracle_ranks
from lama_core.probes.prompts.fact_queries import AskedFacts
from lama_core.probes.prompts.selection import (
    TOP_KS,
    Combine,
    Ensemble,
    accuracies,
    answer,
    order_of,
    select_optimised,
    select_top,
    top_k_curves,
)
from lama_core.probes.prompts.shortlist import Shortlist, Verdict, judge, make_shortlist
from lama_core.progress import silent
from lama_core.scoring.executors import Tick
from lama_core.scoring.ranking import NO_COLUMN, Ranking
from lama_core.types import Fact, Relation

SHOWN_FACTS = 200
SHOWN_CANDIDATES = 128


@dataclass(frozen=True, slots=True)
class StudyOptions:
    """What a study's numbers depend on besides data, prompts and model.

    combinations: of prompt sets. recipes: of the optimiser; the first is `optimised`. curves: of
    accuracy for every K. train_limit, seed: of the training facts that count, as in `draw`.
    """

    context: Context
    ranking: Ranking = "raw"
    combinations: tuple[str, ...] = ("manual", "mine", "mine+man", "mine+para", "man+para")
    recipes: tuple[str, ...] = (RELEASED.name,)
    top_ks: tuple[int, ...] = TOP_KS
    curves: bool = True
    train_limit: int | None = None
    seed: int | None = None


@dataclass(frozen=True)
class RelationStudy:
    """The results of one relation.

    train_ranks: int32 [prompt, training fact]. rows: `answers.ROW` [prompt, test fact], columns of
    `words`. ensemble_rows: the same [ensemble, test fact]. shortlist: of the first test facts,
    columns of `words`. removed: int64 [test fact, n], the other valid objects that filtered ranking
    takes out, columns of `words`, -1 for none; None in studies that didn't keep them. curves:
    (combination, combine, P@1 for K = 1, 2, ...) on the test facts.
    words: the candidates that anything here refers to, by column. excluded: (fact, reason), of
    test facts. notes: sentences.
    """

    relation: Relation
    model: str
    model_kind: str
    ranking: Ranking
    pool: PromptPool
    train: tuple[Fact, ...]
    test: tuple[Fact, ...]
    objects: tuple[str, ...]
    train_ranks: NDArray[np.int32]
    rows: NDArray[np.void]
    ensembles: tuple[Ensemble, ...]
    ensemble_rows: NDArray[np.void]
    shortlist: Shortlist
    removed: NDArray[np.int64] | None
    curves: tuple[tuple[str, Combine, tuple[float, ...]], ...]
    words: dict[int, str]
    n_candidates: int
    excluded: tuple[tuple[Fact, str], ...]
    notes: tuple[str, ...]

    @property
    def ranks(self) -> NDArray[np.int64]:
        """The gold's rank, int64 [prompt, test fact]."""
        return self.rows[f"rank_{self.ranking}"].astype(np.int64)

    @property
    def ensemble_ranks(self) -> NDArray[np.int64]:
        """The gold's rank, int64 [ensemble, test fact]."""
        return self.ensemble_rows[f"rank_{self.ranking}"].astype(np.int64)

    @property
    def train_accuracies(self) -> NDArray[np.float64]:
        """P@1 on the training facts, float64 [prompt]."""
        return np.asarray((self.train_ranks == 1).mean(axis=1), dtype=np.float64)

    @property
    def test_accuracies(self) -> NDArray[np.float64]:
        """P@1 on the test facts, float64 [prompt]."""
        return np.asarray((self.ranks == 1).mean(axis=1), dtype=np.float64)

    @property
    def only_right(self) -> NDArray[np.bool_]:
        """Whether a prompt is the only one that gets the fact right: bool [prompt, test fact]."""
        right = self.ranks == 1
        return np.asarray(right & (right.sum(axis=0) == 1))

    def ensemble(self, combination: str, method: str) -> tuple[Ensemble, NDArray[np.int64]] | None:
        """An ensemble and its ranks, int64 [test fact]; None if it was not made."""
        for number, one in enumerate(self.ensembles):
            if (one.combination, one.method) == (combination, method):
                return one, self.ensemble_ranks[number]
        return None

    def scores(self) -> list["Score"]:
        """Micro and macro of every ensemble, then the oracle, combination by combination."""
        found: dict[str, list[tuple[str, NDArray[np.int64]]]] = {}
        for one, ranks in zip(self.ensembles, self.ensemble_ranks, strict=True):
            found.setdefault(one.combination, []).append((one.method, ranks))
        for combination, known in found.items():
            best = oracle_ranks(self.ranks[list(self.pool.eligible(combination))])
            known.append(("oracle", best))
        name, objects = self.relation.name, self.objects
        return [
            Score(
                name,
                combination,
                method,
                precision_at(ranks),
                macro_precision_at(ranks, objects),
                len(ranks),
            )
            for combination, known in found.items()
            for method, ranks in known
        ]

    def judge(self, weights: NDArray[np.float32]) -> Verdict:
        """What the log-linear ensemble of these weights, [prompt], answers, by the shortlist.

        Raises UserError where a filtered study didn't keep which objects are taken out.
        """
        if self.ranking == "raw":
            return judge(self.shortlist, weights)
        if self.removed is None:
            raise UserError(
                "This study doesn't hold the other valid objects that its filtered ranking takes "
                "out: delete its folder and make it again to try weights."
            )
        return judge(self.shortlist, weights, self.removed[: len(self.shortlist.gold)])

    def answers(self, row: NDArray[np.void], fact: int) -> list[tuple[str, float]]:
        """The (up to ten) best words and log-probabilities in a row, under the study's ranking."""
        out: set[int] = set()
        if self.ranking == "filtered" and self.removed is not None:
            out = set(self.removed[fact].tolist())
        pairs = zip(row["top"].tolist(), row["top_log_probs"].tolist(), strict=True)
        return [
            (self.words[column], log_prob)
            for column, log_prob in pairs
            if column >= 0 and column not in out and np.isfinite(log_prob)
        ]

    def first_answers(self, rows: NDArray[np.void]) -> NDArray[np.int64]:
        """The number of the word that comes first in each row, under the study's ranking."""
        first = rows["first_filtered"] if self.ranking == "filtered" else rows["top"][..., 0]
        return first.astype(np.int64)

    def known(self) -> tuple[Fact, ...]:
        """The test facts, and one for each other valid object: what filtered ranking goes by."""
        removed = [] if self.removed is None else self.removed.tolist()
        more = (
            replace(fact, id=f"{fact.id}:{column}", object=self.words[column])
            for fact, columns in zip(self.test, removed, strict=False)
            for column in columns
            if column >= 0
        )
        return (*self.test, *more)


@dataclass(frozen=True, slots=True)
class Score:
    """P@1 of one ensemble on one relation, between 0 and 1. n: test facts that count."""

    relation: str
    combination: str
    method: str
    micro: float
    macro: float
    n: int


def study_relation(
    model: BlankFiller,
    pool: PromptPool,
    train: AskedFacts,
    test: AskedFacts,
    options: StudyOptions,
    *,
    folder: Path,
    keep: bool = True,
    notes: tuple[str, ...] = (),
    tick: Tick = silent,
) -> RelationStudy:
    """Score, choose, fit and answer for one relation; resumes from what `folder` holds.

    keep: leave the distributions there; else only ranks stay.
    """
    train_store, test_store = (
        DistributionStore(folder, model, asked, pool.prompts, options.context)
        for asked in (train, test)
    )
    train_store.score(tick=tick)
    test_store.score(tick=tick)
    train_rows, rows = train_store.rows(), test_store.rows()
    by_accuracy = accuracies(train_rows, options.ranking)
    here = pool.combinations()
    combinations = [name for name in options.combinations if name in here and pool.eligible(name)]
    shortlist = make_shortlist(train_store)
    ensembles: list[Ensemble] = []
    for name in combinations:
        single = len(pool.members(name)) == 1
        top_ks = (1,) if single else options.top_ks
        recipes = () if single else options.recipes
        ensembles += [select_top(pool, name, by_accuracy, k) for k in top_ks]
        ensembles += [select_optimised(pool, name, shortlist, RECIPES[one]) for one in recipes]
    ensemble_rows = answer(test_store, rows, ensembles)
    several = [one for one in combinations if len(pool.members(one)) > 1 and options.curves]
    orders = [order_of(pool, name, by_accuracy) for name in several]
    found = top_k_curves(test_store, orders, options.ranking) if several else []
    curves = tuple(
        (name, kind, values)
        for name, known in zip(several, found, strict=True)
        for kind, values in known.items()
    )
    shown = make_shortlist(test_store, n_facts=SHOWN_FACTS, kept=SHOWN_CANDIDATES, drawn=0)
    if not keep:
        train_store.discard()
        test_store.discard()
    return RelationStudy(
        relation=test.relation,
        model=model.name,
        model_kind=model.kind,
        ranking=options.ranking,
        pool=pool,
        train=train.facts,
        test=test.facts,
        objects=test.objects,
        train_ranks=train_rows[f"rank_{options.ranking}"].astype(np.int32),
        rows=rows,
        ensembles=tuple(ensembles),
        ensemble_rows=ensemble_rows,
        shortlist=shown,
        removed=np.where(test.removed == test.gold[:, None], NO_COLUMN, test.removed),
        curves=curves,
        words=dict(enumerate(test.columns.words)),
        n_candidates=len(test.columns.words),
        excluded=test.excluded,
        notes=notes,
    )
