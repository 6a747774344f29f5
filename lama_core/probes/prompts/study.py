"""A study: every prompt and ensemble of one relation, with one model, on training and test facts.

    pool of prompts, split of facts --score--> store --choose, fit--> ensembles --answer--> study

What is kept of it is small (ranks, ten best answers, weights, a shortlist of candidates), so that a
page can move weights about without a model.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lama_core.asking.ranking import Ranking
from lama_core.candidates.columns import Candidates
from lama_core.datasets.prompt_sets import PromptPool
from lama_core.metrics.precision import macro_precision_at, precision_at
from lama_core.models.base import BlankFiller, Context
from lama_core.probes.prompts.asking import AskedFacts, make_asked
from lama_core.probes.prompts.ensemble import RECIPES, RELEASED, oracle_ranks
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
from lama_core.probes.prompts.shortlist import Shortlist, make_shortlist
from lama_core.probes.prompts.store import DistributionStore
from lama_core.probes.prompts.training_pairs import Split, draw
from lama_core.types import Fact, Relation

SHOWN_FACTS = 200
SHOWN_CANDIDATES = 128

# (what is being done, how much is done, how much there is)
OnStage = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class StudyOptions:
    """What a study's numbers depend on besides data, prompts and model.

    combinations: of prompt sets; those that a relation lacks are left out. recipes: of the
    optimiser, by name; the first is `optimised`. curves: whether K against accuracy is computed
    for every K, log-linear and linear. train_limit, seed: at most so many of the training facts
    that count for the model, as in `training_pairs.draw`.
    """

    candidates: Candidates
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

    train_ranks: int32 [prompt, training fact]. rows: `block_log.ROW` [prompt, test fact], columns
    of `words`. ensemble_rows: the same [ensemble, test fact]. shortlist: of the first test facts,
    columns of `words`. curves: (combination, combine, P@1 for K = 1, 2, ...) on the test facts.
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
        found = []
        for combination in dict.fromkeys(one.combination for one in self.ensembles):
            for number, one in enumerate(self.ensembles):
                if one.combination == combination:
                    found.append(self._score(combination, one.method, self.ensemble_ranks[number]))
            members = list(self.pool.members(combination))
            found.append(self._score(combination, "oracle", oracle_ranks(self.ranks[members])))
        return found

    def _score(self, combination: str, method: str, ranks: NDArray[np.int64]) -> "Score":
        return Score(
            self.relation.name,
            combination,
            method,
            precision_at(ranks),
            macro_precision_at(ranks, self.objects),
            len(ranks),
        )


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
    relation: Relation,
    pool: PromptPool,
    split: Split,
    options: StudyOptions,
    *,
    folder: Path,
    known: Sequence[Fact] | None = None,
    keep: bool = True,
    on_stage: OnStage | None = None,
    stopped: Callable[[], bool] | None = None,
) -> RelationStudy:
    """Score, choose, fit and answer for one relation; goes on with what `folder` holds already.

    folder: for the distributions. known: all test facts, where the split has some of them.
    keep: leave the distributions on disk; else only ranks stay.
    Raises UserError when no training or no test fact counts for this model.
    """
    template = (relation.prompts[0] if relation.prompts else pool.prompts[0]).template
    train, test = (
        make_asked(
            relation,
            facts,
            options.candidates,
            model,
            options.context,
            template=template,
            known=everything,
        )
        for facts, everything in ((split.train, split.train), (split.test, known or split.test))
    )
    train = train.take(draw(train.facts, options.train_limit, options.seed))
    stores = []
    for name, asked in (("training facts", train), ("test facts", test)):
        store = DistributionStore(folder, model, asked, pool.prompts, options.context)
        store.score(on_progress=_staged(on_stage, f"{relation.name}: {name}"), stopped=stopped)
        stores.append(store)
    train_store, test_store = stores
    train_rows, rows = train_store.rows(), test_store.rows()
    by_accuracy = accuracies(train_rows, options.ranking)
    combinations = [name for name in options.combinations if name in pool.combinations()]
    _tell(on_stage, f"{relation.name}: weights", 0, len(combinations))
    shortlist = make_shortlist(train_store)
    ensembles: list[Ensemble] = []
    for number, name in enumerate(combinations, start=1):
        if len(pool.members(name)) == 1:
            ensembles.append(select_top(pool, name, by_accuracy, 1))
        else:
            for k in options.top_ks:
                ensembles.append(select_top(pool, name, by_accuracy, k))
            for recipe in options.recipes:
                ensembles.append(select_optimised(pool, name, shortlist, RECIPES[recipe]))
        _tell(on_stage, f"{relation.name}: weights", number, len(combinations))
    _tell(on_stage, f"{relation.name}: answers", 0, 1)
    ensemble_rows = answer(test_store, rows, ensembles)
    curves = _curves(test_store, pool, combinations, by_accuracy, options)
    shown = make_shortlist(test_store, n_facts=SHOWN_FACTS, kept=SHOWN_CANDIDATES, drawn=0)
    if not keep:
        train_store.discard()
        test_store.discard()
    _tell(on_stage, f"{relation.name}: answers", 1, 1)
    return RelationStudy(
        relation=relation,
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
        curves=curves,
        words=_words(test, rows, ensemble_rows, shown),
        n_candidates=len(test.columns.words),
        excluded=test.excluded,
        notes=split.notes + pool.notes,
    )


def _curves(
    store: DistributionStore,
    pool: PromptPool,
    combinations: Sequence[str],
    by_accuracy: NDArray[np.float64],
    options: StudyOptions,
) -> tuple[tuple[str, Combine, tuple[float, ...]], ...]:
    """P@1 of Top-K for every K, of the combinations with more than one prompt."""
    names = [name for name in combinations if len(pool.members(name)) > 1]
    if not options.curves or not names:
        return ()
    orders = [order_of(pool, name, by_accuracy) for name in names]
    found = top_k_curves(store, orders, options.ranking)
    return tuple(
        (name, kind, values)
        for name, curves in zip(names, found, strict=True)
        for kind, values in curves.items()
    )


def _words(
    test: AskedFacts, rows: NDArray[np.void], more: NDArray[np.void], shown: Shortlist
) -> dict[int, str]:
    used = {int(column) for column in np.unique(shown.columns)}
    for table in (rows, more):
        used |= {int(column) for column in np.unique(table["top"])}
        used |= {int(column) for column in np.unique(table["first_filtered"])}
    used |= {int(column) for column in test.gold}
    return {column: test.columns.words[column] for column in sorted(used) if column >= 0}


def _staged(on_stage: OnStage | None, stage: str) -> Callable[[int, int], None] | None:
    if on_stage is None:
        return None
    return lambda done, total: on_stage(stage, done, total)


def _tell(on_stage: OnStage | None, stage: str, done: int, total: int) -> None:
    if on_stage is not None:
        on_stage(stage, done, total)
