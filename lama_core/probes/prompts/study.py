"""A study: all prompts and ensembles of one relation, with one model, on training and test facts.

    pool of prompts, split of facts --score--> store --select, fit--> ensembles --answer--> study

A study keeps only ranks, the ten best answers, weights and a shortlist of candidates, so that a
page can change weights without a model.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lama_core.candidates.columns import NO_COLUMN
from lama_core.datasets.prompt_sets import PromptPool
from lama_core.metrics.precision_at_k import macro_precision_at, precision_at
from lama_core.models.protocols import BlankFiller, Context
from lama_core.probes.prompts.distributions import DistributionStore
from lama_core.probes.prompts.ensemble import RECIPES
from lama_core.probes.prompts.fact_queries import PreparedFacts
from lama_core.probes.prompts.request import StudyRequest
from lama_core.probes.prompts.selection import (
    Combine,
    Ensemble,
    ensemble_answers,
    make_ensembles,
    prompts_by_accuracy,
    top_k_curves,
)
from lama_core.probes.prompts.shortlist import (
    Shortlist,
    ShortlistAnswers,
    make_shortlist,
    shortlist_answers,
)
from lama_core.progress import ignore
from lama_core.scoring.executors import Tick
from lama_core.scoring.ranking import Ranking
from lama_core.types import Fact, Relation

SHOWN_FACTS = 200
SHOWN_CANDIDATES = 128
Curves = tuple[tuple[str, Combine, tuple[float, ...]], ...]


@dataclass(frozen=True)
class RelationStudy:
    """The results of one relation.

    Attributes:
        train_ranks: Rank of the gold answer, int32 [prompt, training fact].
        rows: `top_answers.ROW` [prompt, test fact], with candidates as keys of `words`.
        ensemble_rows: `top_answers.ROW` [ensemble, test fact], with candidates as keys of `words`.
        shortlist: The shortlist of the first test facts; its columns are keys of `words`.
        removed: The other valid objects that filtered ranking removes, keys of `words`, int64
            [test fact, n], padded with -1.
        curves: (combination, combine, P@1 for K = 1, 2, ...) on the test facts.
        words: Column -> candidate, for every column that the study refers to.
        excluded: Excluded test facts, each with the reason.
        notes: Messages about the relation.
    """

    relation: Relation
    model: str
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
    removed: NDArray[np.int64]
    curves: Curves
    words: dict[int, str]
    n_candidates: int
    excluded: tuple[tuple[Fact, str], ...]
    notes: tuple[str, ...]

    @property
    def ranks(self) -> NDArray[np.int64]:
        """Rank of the gold answer, int64 [prompt, test fact]."""
        return self.rows[f"rank_{self.ranking}"].astype(np.int64)

    @property
    def ensemble_ranks(self) -> NDArray[np.int64]:
        """Rank of the gold answer, int64 [ensemble, test fact]."""
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
        """Whether no other prompt is right on a fact but this one is, bool [prompt, test fact]."""
        right = self.ranks == 1
        return np.asarray(right & (right.sum(axis=0) == 1))

    def ensemble(self, combination: str, method: str) -> tuple[Ensemble, NDArray[np.int64]] | None:
        """Return an ensemble and its ranks, int64 [test fact]; None if the study lacks it."""
        for number, ensemble in enumerate(self.ensembles):
            if (ensemble.combination, ensemble.method) == (combination, method):
                return ensemble, self.ensemble_ranks[number]
        return None

    def scores(self) -> list["Score"]:
        """Return the scores of each combination's ensembles, then of the combination's oracle."""
        by_combination: dict[str, dict[str, NDArray[np.int64]]] = {}
        for ensemble, ranks in zip(self.ensembles, self.ensemble_ranks, strict=True):
            by_combination.setdefault(ensemble.combination, {})[ensemble.method] = ranks
        for combination, methods in by_combination.items():
            # Right if any prompt is right. Source: Jiang et al. 2020, section 5.1.
            methods["oracle"] = self.ranks[list(self.pool.eligible(combination))].min(axis=0)
        return [
            Score(
                self.relation.name,
                combination,
                method,
                precision_at(ranks),
                macro_precision_at(ranks, self.objects),
                len(ranks),
            )
            for combination, methods in by_combination.items()
            for method, ranks in methods.items()
        ]

    def judge(self, weights: NDArray[np.float32]) -> ShortlistAnswers:
        """Return the answers of a log-linear ensemble, computed from the shortlist.

        weights: float32 [prompt].
        """
        removed = self.removed[: len(self.shortlist.gold)] if self.ranking == "filtered" else None
        return shortlist_answers(self.shortlist, weights, removed)

    def answers(self, row: NDArray[np.void], fact: int) -> list[tuple[str, float]]:
        """Return the best words of a row (at most ten) with their log-probabilities."""
        removed = set(self.removed[fact].tolist()) if self.ranking == "filtered" else set()
        pairs = zip(row["top"].tolist(), row["top_log_probs"].tolist(), strict=True)
        return [
            (self.words[column], log_prob)
            for column, log_prob in pairs
            if column >= 0 and column not in removed and np.isfinite(log_prob)
        ]

    def first_answers(self, rows: NDArray[np.void]) -> NDArray[np.int64]:
        """Return the column of each row's best word under the study's ranking."""
        first = rows["first_filtered"] if self.ranking == "filtered" else rows["top"][..., 0]
        return first.astype(np.int64)

    def known(self) -> tuple[Fact, ...]:
        """Return the test facts, and one more fact for each other valid object.

        Filtered ranking is computed from these facts.
        """
        others = (
            replace(fact, id=f"{fact.id}:{column}", object=self.words[column])
            for fact, columns in zip(self.test, self.removed.tolist(), strict=True)
            for column in columns
            if column >= 0
        )
        return (*self.test, *others)


@dataclass(frozen=True, slots=True)
class Score:
    """P@1 of one ensemble on one relation, micro and macro, 0 to 1. n: Number of test facts."""

    relation: str
    combination: str
    method: str
    micro: float
    macro: float
    n: int


def study_relation(
    model: BlankFiller,
    pool: PromptPool,
    train: PreparedFacts,
    test: PreparedFacts,
    request: StudyRequest,
    context: Context,
    *,
    folder: Path,
    notes: tuple[str, ...] = (),
    tick: Tick = ignore,
) -> RelationStudy:
    """Study one relation: score all prompts, select and fit ensembles, answer the test facts.

    `folder` holds the distributions; blocks that are already there are not scored again. Deletes
    the distributions at the end unless `request.keep`. `notes` are messages to store with the
    study.
    """
    train_store, test_store = (
        DistributionStore(folder, model, asked, pool.prompts, context) for asked in (train, test)
    )
    train_store.score(tick=tick)
    test_store.score(tick=tick)
    train_ranks = train_store.rows()[f"rank_{request.ranking}"].astype(np.int32)
    rows = test_store.rows()
    accuracies = (train_ranks == 1).mean(axis=1)
    in_pool = pool.combinations()
    combinations = [one for one in request.combinations if one in in_pool and pool.eligible(one)]
    shortlist, recipes = make_shortlist(train_store), [RECIPES[name] for name in request.recipes]
    ensembles = tuple(
        ensemble
        for name in combinations
        for ensemble in make_ensembles(pool, name, accuracies, shortlist, recipes)
    )
    ensemble_rows = ensemble_answers(test_store, rows, ensembles)
    several = [name for name in combinations if len(pool.members(name)) > 1]
    curves: Curves = ()
    if several and request.curves:
        orders = [prompts_by_accuracy(pool, name, accuracies) for name in several]
        found = zip(several, top_k_curves(test_store, orders, request.ranking), strict=True)
        curves = tuple(
            (name, combine, values)
            for name, by_combine in found
            for combine, values in by_combine.items()
        )
    shown = make_shortlist(test_store, n_facts=SHOWN_FACTS, kept=SHOWN_CANDIDATES, drawn=0)
    if not request.keep:
        train_store.discard()
        test_store.discard()
    return RelationStudy(
        relation=test.relation,
        model=model.name,
        ranking=request.ranking,
        pool=pool,
        train=train.facts,
        test=test.facts,
        objects=test.objects,
        train_ranks=train_ranks,
        rows=rows,
        ensembles=ensembles,
        ensemble_rows=ensemble_rows,
        shortlist=shown,
        removed=np.where(test.removed == test.gold[:, None], NO_COLUMN, test.removed),
        curves=curves,
        words=dict(enumerate(test.columns.words)),
        n_candidates=len(test.columns.words),
        excluded=test.excluded,
        notes=notes,
    )
