"""Wiland, Ploner and Akbik 2024 (BEAR), its authors' leaderboard: `reproduce wiland2024`.

    accuracy of a template = facts whose right answer is first / facts        raw ranking
    printed                = mean of the three templates' accuracies, and its standard error
                           = sqrt(sum (accuracy - mean)^2 / (3 - 1)) / sqrt(3)
    random baseline        = (sum over facts of 1 / answers) / facts = 362 / 7,731

Statements are scored with the defaults of the authors' library: the sum over the whole statement;
for masked models, a word's later subword tokens are masked together with the scored token. The
table runs the leaderboard's models that are installed, and the embedded ones. If BEAR is
unavailable, no other facts replace it.

Source: Wiland et al. 2024, and https://lm-pub-quiz.github.io for the mean and its error.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lama_core.datasets import Dataset, load_dataset
from lama_core.metrics import score_table
from lama_core.models.sources.catalog import find_model
from lama_core.models.sources.locations import is_here
from lama_core.papers.bear import (
    BEAR,
    BOARD,
    N_TEMPLATES,
    PAPER,
    OverFacts,
    differs_from_leaderboard,
    over_facts,
)
from lama_core.probes.statements.plan import most_templates, plan
from lama_core.probes.statements.request import StatementsRequest
from lama_core.published import BEAR_MODELS, published_table
from lama_core.runs.execute import execute
from lama_core.scoring.answer_spaces import RELATION, answers_of, named_space
from lama_core.scoring.ranking import Ranking
from lama_papers.charts import compared
from lama_papers.framework import (
    EMBEDDED,
    Paper,
    PaperInputs,
)
from lama_papers.tables import Item, ReproducedRow, UnavailableItem

SOURCE = "BEAR"  # of the data's relations
RANKING: Ranking = "raw"  # the library doesn't remove other right answers; BEAR has none
BASELINE = "Random Baseline"
MEAN, ERROR = "mean over the templates", "standard error"
NO_BEAR = "BEAR isn't available"
NOT_HERE = "not on this machine"


def standard_error(values: Sequence[float]) -> float | None:
    """Return the standard error of the mean; None for fewer than two values."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None


@dataclass
class Bear(PaperInputs):
    """The data, the models and their runs; raises UserError for a wrong limit, data or model."""

    own = BEAR

    def __post_init__(self) -> None:
        named = [find_model(reference).name for reference in self.options.models]
        known = {
            name: reference
            for name, reference in BEAR_MODELS.items()
            if reference in named or is_here(find_model(reference))
        }
        further = [name for name in (*EMBEDDED, *named) if name not in BEAR_MODELS.values()]
        # Displayed name -> name in the catalogue; the leaderboard's models first.
        self.models = known | {name: name for name in further}

    @cached_property
    def dataset(self) -> Dataset | None:
        """The facts; None if BEAR is unavailable."""
        return load_dataset(self.data.name) if self.data.name else None

    @property
    def notes(self) -> Sequence[str]:
        notes = [
            "Accuracy: the share of facts for which the statement with the right answer has the "
            "highest log-likelihood of all the relation's answers, summed over its tokens. All "
            "facts have the same weight. The mean is over the templates, with its standard error.",
            "Only the authors' leaderboard is reproduced, not the tables and figures of the paper, "
            "whose values aren't in this project's data.",
        ]
        if self.dataset is None:
            notes.append("BEAR isn't available, and no other facts replace it.")
        if self.options.limit is not None:
            notes.append(f"Only the first {self.options.limit:,} facts of each relation.")
        return notes

    @cached_property
    def other(self) -> str:
        """Description of the data if they aren't BEAR, else ""."""
        if self.dataset is None or all(one.source == SOURCE for one in self.dataset.relations):
            return ""
        return f"{self.dataset.name}, not BEAR"

    def ask(self, model: str) -> tuple[OverFacts, ...]:
        """Return a model's scores, one per template; () if it is unavailable (see `missing`)."""
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
                    self.data.name,
                    (reference,),
                    template=template,
                    start_token="always",
                    limit=self.options.limit,
                )
                (spec,) = plan(request, load=self.load)
                run = execute(
                    spec, on_progress=self.options.on_progress, on_note=self.options.on_note
                )
                found.append(over_facts(score_table([run], by="relation", ranking=RANKING)))
        return () if model in self.missing else tuple(found)

    def baseline(self, published: float | None) -> ReproducedRow:
        """Return the expected accuracy of random answers: mean over facts of 1 / answers."""
        if self.dataset is None:
            return ReproducedRow(BASELINE, MEAN, 0, None, published, NO_BEAR)
        space = named_space(RELATION)
        counts = {
            one.name: len(self.dataset.facts_of(one.name)[: self.options.limit])
            for one in self.dataset.relations
            if self.dataset.facts_of(one.name)
        }
        if not counts:
            return ReproducedRow(BASELINE, MEAN, 0, None, published, "no facts to query")
        n = sum(counts.values())
        hits = sum(n / len(answers_of(space, self.dataset, name)) for name, n in counts.items())
        differs = self.differs([OverFacts(n, len(counts), hits / n, hits / n)] * N_TEMPLATES)
        return ReproducedRow(BASELINE, MEAN, n, 100 * hits / n, published, "", differs)

    def differs(self, found: Sequence[OverFacts], asked: str = "") -> str:
        """Describe how the scores (one per template) differ from the leaderboard's."""
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
    """Yield all models of the leaderboard, then others: each template, mean, standard error."""
    printed = {str(row.labels[0]): row for row in published_table(PAPER, BOARD).rows}
    rows: list[ReproducedRow] = []
    for name in dict.fromkeys((*printed, *bear.models)):
        row = printed.get(name)
        values = row.values if row else (None, None)
        mean, error = (None if value is None else 100 * float(value) for value in values)
        if name == BASELINE:
            rows.append(bear.baseline(mean))
            continue
        found = bear.ask(name)
        reason = "" if found else NO_BEAR
        if name in bear.missing:
            reason = NOT_HERE if name not in bear.models else f"{name} can't be queried"
        if not (found or row):
            continue
        is_tuned = row is not None and row.labels[1] == "CLM-IT"
        said = "instruction-tuned, and the leaderboard doesn't state its query format" * is_tuned
        differs = bear.differs(found, said) if found and row else ""
        accuracies = [100 * one.accuracy for one in found]
        n = min((one.n for one in found), default=0)
        ours = float(np.mean(accuracies)) if accuracies else None
        deviation = standard_error(accuracies)
        unknown = reason or ("" if deviation is not None else "needs at least two templates")
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
        yield from compared(
            "Accuracy on BEAR",
            means,
            x=lambda row: row.model,
            y_title="accuracy, %",
            name=lambda row: "accuracy",
            published=lambda row: not row.differs,
        )


BEAR_PAPER = Paper(PAPER, Bear, {BOARD: leaderboard})
