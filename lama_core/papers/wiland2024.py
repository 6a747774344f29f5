"""Wiland, Ploner and Akbik 2024 (BEAR), its authors' leaderboard: `reproduce wiland2024`.

    accuracy of a template = facts whose right answer is first / facts        raw ranking
    printed                = mean of the three templates' accuracies, and its standard error
                           = sqrt(sum (accuracy - mean)^2 / (3 - 1)) / sqrt(3)
    random baseline        = (sum over facts of 1 / answers) / facts = 362 / 7,731

Statements are scored as their library does unless told otherwise: summed over the whole statement,
and the later pieces of a word hidden with the one that a masked model is asked for. Asked are the
models of the leaderboard that are on this machine, and the embedded ones; where BEAR can't be had,
no other facts stand in for it.

Source: Wiland et al. 2024, and https://lm-pub-quiz.github.io for the mean and its error.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from lama_core.datasets import Dataset, load_dataset
from lama_core.datasets.bear import SOURCE
from lama_core.metrics import score_table
from lama_core.models.sources.catalog import find_model
from lama_core.models.sources.locations import is_here
from lama_core.papers.framework import (
    EMBEDDED,
    Paper,
    Prepared,
    bars,
    differing,
    joined,
)
from lama_core.papers.published import BEAR_MODELS, published_table
from lama_core.probes.plan import check_limit
from lama_core.probes.statements.answer_spaces import RELATION, answers_of, named_space
from lama_core.probes.statements.plan import StatementsRequest, most_templates, plan
from lama_core.reports.tables import Item, ReproducedRow, UnavailableItem
from lama_core.runs.execute import execute
from lama_core.scoring.ranking import Ranking

if TYPE_CHECKING:
    import pandas as pd

PAPER, BOARD = "wiland2024", "leaderboard"
BEAR = "bear"  # what the data are called that `data get` fetches
N_RELATIONS, N_FACTS, N_TEMPLATES = 60, 7731, 3
RANKING: Ranking = "raw"  # the library takes no other right answers out; BEAR has none
BASELINE = "Random Baseline"
TUNED, UNSAID = "CLM-IT", "tuned to instructions, and not said how it was asked there"
MEAN, ERROR = "mean over the templates", "standard error"
NO_BEAR = "BEAR can't be had here"
NOT_HERE = "not on this machine"
NO_ERROR = "one template has no standard error"
NO_FACT = "no fact is asked"
NO_TABLES = (
    "The tables and figures of the paper itself aren't reproduced: their values aren't among the "
    "published numbers here. The leaderboard is its authors' own."
)


@dataclass(frozen=True, slots=True)
class OverFacts:
    """What a run of statements says over its facts, each counting the same.

    n: facts that count; n_relations: those that have any. accuracy: P@1. chance: the mean over
    facts of 1 / answers. Both between 0 and 1, NaN where no fact counts.
    """

    n: int
    n_relations: int
    accuracy: float
    chance: float


def over_facts(lines: "pd.DataFrame") -> OverFacts:
    """lines: those of one run in `metrics.score_table`, by relation."""
    n = lines["n"].to_numpy(dtype=np.int64)
    if not n.sum():
        return OverFacts(0, 0, float("nan"), float("nan"))
    counted = lines[n > 0]
    means = [
        float(np.average(values, weights=n[n > 0]))
        for values in (counted["p_at_1"], 1 / counted["n_answers"])
    ]
    return OverFacts(int(n.sum()), len(counted), *means)


def standard_error(values: Sequence[float]) -> float | None:
    """Of the mean of some values; None of less than two."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None


def differs_from_leaderboard(
    *,
    data: str = "",
    n_relations: int,
    n_facts: int,
    n_templates: int,
    limit: int | None = None,
    asked: str = "",
) -> str:
    """What isn't the leaderboard's; "" where all is. data, limit: see `differing`.

    n_templates: over how many the mean is. asked: how the query differs.
    """
    relations, facts = (n_relations, N_RELATIONS), (n_facts, N_FACTS)
    fewer = f"{n_templates} of {N_TEMPLATES} templates" if n_templates != N_TEMPLATES else ""
    return joined(differing(data=data, relations=relations, facts=facts, limit=limit), fewer, asked)


@dataclass
class Bear(Prepared):
    """The data, the models and their runs. Raises UserError for a wrong limit, data or model."""

    own = BEAR

    def __post_init__(self) -> None:
        check_limit(self.options.limit)
        named = [find_model(reference).name for reference in self.options.models]
        known = {
            name: reference
            for name, reference in BEAR_MODELS.items()
            if reference in named or is_here(find_model(reference))
        }
        further = [name for name in (*EMBEDDED, *named) if name not in BEAR_MODELS.values()]
        # The name that is shown -> how it is named here; those of the leaderboard first.
        self.models = known | {name: name for name in further}

    @cached_property
    def dataset(self) -> Dataset | None:
        """The facts; None where BEAR can't be had."""
        return load_dataset(self.data.name) if self.data.name else None

    @property
    def notes(self) -> Sequence[str]:
        """How the statements are scored, and which facts."""
        said = [
            "Accuracy: the share of facts whose right answer has the likeliest statement, of all "
            "its tokens together, among its relation's answers. Each fact counts the same; the "
            "mean is over the templates, with its standard error.",
            NO_TABLES,
        ]
        if self.dataset is None:
            said.append("BEAR can't be had here, and no other facts stand in for it.")
        if self.options.limit is not None:
            said.append(f"Only the first {self.options.limit:,} facts of each relation.")
        return said

    @cached_property
    def other(self) -> str:
        """The data's name where they aren't BEAR's; "" where they are."""
        if self.dataset is None or all(one.source == SOURCE for one in self.dataset.relations):
            return ""
        return f"{self.dataset.name}, not BEAR"

    def ask(self, model: str) -> tuple[OverFacts, ...]:
        """A model's figures, one a template; () where it can't be had, and `missing` has why."""
        if self.dataset is None:
            return ()
        if model not in self.models:
            self.missing[model] = UnavailableItem(model, NOT_HERE, _command(BEAR_MODELS[model]))
            return ()
        found = []
        reference = self.models[model]
        with self.noting(model, _command(reference)):
            for template in range(min(N_TEMPLATES, most_templates(self.dataset))):
                request = StatementsRequest(
                    self.data.name, (reference,), template=template, limit=self.options.limit
                )
                (spec,) = plan(request, load=self.load).specs
                run = execute(spec, on_progress=self.on_progress, on_note=self.options.on_note)
                found.append(over_facts(score_table([run], by="relation", ranking=RANKING)))
        return () if model in self.missing else tuple(found)

    def chance(self) -> OverFacts | None:
        """The expected accuracy of random answers, on the same facts; None without any."""
        if self.dataset is None:
            return None
        space = named_space(RELATION)
        counts = {
            one.name: len(self.dataset.facts_of(one.name)[: self.options.limit])
            for one in self.dataset.relations
        }
        asked = {name: n_facts for name, n_facts in counts.items() if n_facts}
        if not asked:
            return None
        hits = sum(n / len(answers_of(space, self.dataset, name)) for name, n in asked.items())
        n = sum(asked.values())
        return OverFacts(n, len(asked), hits / n, hits / n)

    def differs(self, found: Sequence[OverFacts], asked: str = "") -> str:
        """What isn't the leaderboard's of some templates' figures; "" where all is."""
        return differs_from_leaderboard(
            data=self.other,
            n_relations=min(one.n_relations for one in found),
            n_facts=min(one.n for one in found),
            n_templates=len(found),
            limit=self.options.limit,
            asked=asked,
        )


def _command(reference: str) -> str:
    return f"lama-explorer models get {reference}"


def leaderboard(bear: Bear) -> Iterator[Item]:
    """Every model of the leaderboard, then the others: each template, the mean and its error."""
    printed = {str(row.labels[0]): row for row in published_table(PAPER, BOARD).rows}
    rows: list[ReproducedRow] = []
    for name in dict.fromkeys((*printed, *bear.models)):
        row = printed.get(name)
        values = row.values if row else (None, None)
        mean, error = (None if value is None else 100 * float(value) for value in values)
        if name == BASELINE:
            rows.append(_baseline(bear, mean))
            continue
        found = bear.ask(name)
        reason = "" if found else NO_BEAR
        if name in bear.missing:
            reason = NOT_HERE if name not in bear.models else f"{name} can't be asked here"
        if not (found or row):
            continue
        tuned = UNSAID if row is not None and row.labels[1] == TUNED else ""
        differs = bear.differs(found, tuned) if found and row else ""
        accuracies = [100 * one.accuracy for one in found]
        n = min((one.n for one in found), default=0)
        ours = float(np.mean(accuracies)) if accuracies else None
        deviation = standard_error(accuracies)
        unknown = reason or ("" if deviation is not None else NO_ERROR)
        rows += [
            *(
                ReproducedRow(name, f"template {number}", one.n, value, None)
                for number, (one, value) in enumerate(zip(found, accuracies, strict=True))
            ),
            ReproducedRow(name, MEAN, n, ours, mean, reason, differs),
            ReproducedRow(name, ERROR, n, deviation, error, unknown, differs),
        ]
    yield from rows
    means = [row for row in rows if row.what == MEAN]
    if any(row.ours is not None for row in means):
        yield from bars(
            "Accuracy on BEAR",
            means,
            x=lambda row: row.model,
            y_title="accuracy, %",
            name=lambda row: "accuracy",
            published=lambda row: not row.differs,
        )


def _baseline(bear: Bear, published: float | None) -> ReproducedRow:
    """The chance level, computed as the leaderboard's: the mean over facts of 1 / answers."""
    chance = bear.chance()
    if chance is None:
        reason = NO_BEAR if bear.dataset is None else NO_FACT
        return ReproducedRow(BASELINE, MEAN, 0, None, published, reason)
    differs = bear.differs([chance] * N_TEMPLATES)
    return ReproducedRow(BASELINE, MEAN, chance.n, 100 * chance.chance, published, "", differs)


BEAR_PAPER = Paper(PAPER, Bear, {BOARD: leaderboard})
