"""Wiland, Ploner and Akbik 2024 (BEAR), its authors' leaderboard: `reproduce wiland2024`.

    accuracy of a template = facts whose right answer is first / facts        raw ranking
    printed                = mean of the three templates' accuracies, and its standard error
                           = sqrt(sum (accuracy - mean)^2 / (3 - 1)) / sqrt(3)

Statements are scored as their library does unless told otherwise: summed over the whole statement,
and the later pieces of a word hidden with the one that a masked model is asked for. Asked are the
models of the leaderboard that are on this machine, and the embedded ones; where BEAR can't be had,
no other facts stand in for it.

Source: Wiland et al. 2024, and https://lm-pub-quiz.github.io for the mean and its error.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from lama_core.asking.ranking import Ranking
from lama_core.datasets import Dataset, load_dataset
from lama_core.datasets.bear import SOURCE
from lama_core.datasets.library.installed import installed_names
from lama_core.errors import UserError
from lama_core.metrics import score_table
from lama_core.models.catalog import find_model
from lama_core.models.sources import is_here
from lama_core.papers.framework import (
    Absent,
    Chart,
    Data,
    Made,
    Paper,
    PaperTable,
    ReproducedRow,
    ReproduceOptions,
    Series,
    differing,
    find_data,
)
from lama_core.papers.published import BEAR_MODELS, published_table
from lama_core.probes.probing import check_limit
from lama_core.probes.statements.probing import StatementsRequest, most_templates, plan
from lama_core.probes.statements.spaces import RELATION, answers_of, named_space
from lama_core.progress import OnNote, OnProgress, silent
from lama_core.runs.execute import execute
from lama_core.runs.spec import load_by_name

if TYPE_CHECKING:
    import pandas as pd

PAPER, BOARD = "wiland2024", "leaderboard"
BEAR = "bear"  # what the data are called that `data get` fetches
N_RELATIONS, N_FACTS, N_TEMPLATES = 60, 7731, 3
RANKING: Ranking = "raw"  # the library takes no other right answers out; BEAR has none
EMBEDDED = ("minilm-mlm", "smollm2-135m")
BASELINE = "Random Baseline"
TUNED = "CLM-IT"
MEAN, ERROR = "mean over the templates", "standard error"
NOT_HERE = "not on this machine"
NO_ERROR = "one template has no standard error"
NO_FACT = "no fact is asked"


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
    if len(values) < 2:
        return None
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))


def differs_from_leaderboard(
    *,
    data: str = "",
    n_relations: int,
    n_facts: int,
    n_templates: int,
    limit: int | None = None,
    asked: str = "",
) -> str:
    """What isn't the leaderboard's, in a word; "" where all is. data, limit: see `differing`.

    n_templates: over how many the mean is. asked: how it is asked otherwise.
    """
    words = [
        differing(
            data=data,
            relations=(n_relations, N_RELATIONS),
            facts=(n_facts, N_FACTS),
            limit=limit,
        ),
        f"{n_templates} of {N_TEMPLATES} templates" if n_templates != N_TEMPLATES else "",
        asked,
    ]
    return "; ".join(filter(None, words))


@dataclass
class Bear:
    """The data, the models and what their runs say.

    dataset: None where BEAR can't be had. models: the name that is shown -> how it is named here;
    those of the leaderboard first. missing: the models that can't be had, and why.
    """

    options: ReproduceOptions
    data: Data
    dataset: Dataset | None
    models: dict[str, str]
    on_progress: OnProgress = silent
    on_note: OnNote = silent
    missing: dict[str, Absent] = field(default_factory=dict)

    @property
    def notes(self) -> Sequence[str]:
        """How the statements are scored, and what is asked."""
        said = [
            "Accuracy: the share of facts whose right answer has the likeliest statement, of all "
            "its tokens together, among its relation's answers. Each fact counts the same; the "
            "mean is over the templates, with its standard error.",
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

    @cached_property
    def n_templates(self) -> int:
        """How many of a relation's templates are asked."""
        return min(N_TEMPLATES, most_templates(self.dataset)) if self.dataset else 0

    def ask(self, model: str) -> tuple[OverFacts, ...]:
        """What a model's runs say, one a template; () where it fails, and `missing` says why."""
        if self.dataset is None:
            return ()
        reference = self.models[model]
        found = []
        try:
            for template in range(self.n_templates):
                request = StatementsRequest(
                    self.data.name, (reference,), template=template, limit=self.options.limit
                )
                load = partial(load_by_name, on_progress=self.on_progress)
                (spec,) = plan(request, load=load).specs
                run = execute(spec, on_progress=self.on_progress, on_note=self.on_note)
                found.append(over_facts(score_table([run], by="relation", ranking=RANKING)))
        except UserError as error:
            self.missing[model] = Absent(model, str(error), _command(reference))
            return ()
        return tuple(found)

    def chance(self) -> OverFacts | None:
        """The expected accuracy of drawn answers, on the facts that are asked; None without any."""
        if self.dataset is None:
            return None
        space = named_space(RELATION)
        asked = {
            one.name: len(self.dataset.facts_of(one.name)[: self.options.limit])
            for one in self.dataset.relations
        }
        n = sum(asked.values())
        if not n:
            return None
        hits = sum(
            n_facts / len(answers_of(space, self.dataset, name))
            for name, n_facts in asked.items()
            if n_facts
        )
        return OverFacts(n, sum(one > 0 for one in asked.values()), hits / n, hits / n)

    def differs(self, found: Sequence[OverFacts], asked: str = "") -> str:
        """What isn't the leaderboard's of some templates' figures, in a word; "" where all is."""
        return differs_from_leaderboard(
            data=self.other,
            n_relations=min(one.n_relations for one in found),
            n_facts=min(one.n for one in found),
            n_templates=len(found),
            limit=self.options.limit,
            asked=asked,
        )


def _command(reference: str) -> str:
    return f"python -m lama_core models get {reference}"


def prepare(
    options: ReproduceOptions, on_progress: OnProgress = silent, on_note: OnNote = silent
) -> Bear:
    """The data, and who is asked. Raises UserError for a limit, data or a model that is none."""
    check_limit(options.limit)
    named = [find_model(reference).name for reference in options.models]
    data = find_data(
        options.dataset,
        own=BEAR,
        installed=installed_names(),
        instead=Data(""),
        on_progress=on_progress,
    )
    known = {
        name: reference
        for name, reference in BEAR_MODELS.items()
        if reference in named or is_here(find_model(reference))
    }
    further = [name for name in (*EMBEDDED, *named) if name not in BEAR_MODELS.values()]
    dataset = load_dataset(data.name) if data.name else None
    models = known | {name: name for name in further}
    return Bear(options, data, dataset, models, on_progress, on_note)


def make_leaderboard(bear: Bear) -> Made:
    """Every model of the leaderboard, then the others: each template, the mean and its error."""
    rows: list[ReproducedRow] = []
    absent: list[Absent] = [*bear.data.absent]
    printed = {str(row.labels[0]): row for row in published_table(PAPER, BOARD).rows}
    for name in dict.fromkeys((*printed, *bear.models)):
        row = printed.get(name)
        published = [_percent(value) for value in row.values] if row else [None, None]
        if name == BASELINE:
            rows.append(_baseline(bear, published[0]))
            continue
        asked = name in bear.models
        found = bear.ask(name) if asked else ()
        if bear.dataset is None:
            reason = "BEAR can't be had here"
        elif asked:
            reason = f"{name} can't be asked here" if name in bear.missing else ""
        else:
            reason = NOT_HERE
            absent.append(Absent(name, NOT_HERE, _command(BEAR_MODELS[name])))
        tuned = row is not None and row.labels[1] == TUNED
        how = "tuned to instructions, and not said how it was asked there" if tuned else ""
        differs = bear.differs(found, how) if found and row else ""
        if found or row:
            rows += _rows(name, found, published, reason, differs)
    absent += bear.missing.values()
    return Made(tuple(rows), _charts(rows), absent=tuple(absent))


def _percent(value: float | str | None) -> float | None:
    return None if value is None else 100 * float(value)


def _rows(
    model: str,
    found: Sequence[OverFacts],
    published: Sequence[float | None],
    reason: str,
    differs: str,
) -> list[ReproducedRow]:
    """A model's lines. found: by template, () where there is none. published: mean and error."""
    accuracies = [100 * one.accuracy for one in found]
    n = min((one.n for one in found), default=0)
    mean = float(np.mean(accuracies)) if accuracies else None
    error = standard_error(accuracies)
    unknown = reason or ("" if error is not None else NO_ERROR)
    return [
        *(
            ReproducedRow(model, f"template {number}", one.n, value, None)
            for number, (one, value) in enumerate(zip(found, accuracies, strict=True))
        ),
        ReproducedRow(model, MEAN, n, mean, published[0], reason, differs),
        ReproducedRow(model, ERROR, n, error, published[1], unknown, differs),
    ]


def _baseline(bear: Bear, published: float | None) -> ReproducedRow:
    """The chance level: ours expected, the leaderboard's drawn."""
    chance = bear.chance()
    if chance is None:
        reason = "BEAR can't be had here" if bear.dataset is None else NO_FACT
        return ReproducedRow(BASELINE, MEAN, 0, None, published, reason)
    differs = bear.differs([chance] * N_TEMPLATES, "drawn there, 1 / answers here")
    return ReproducedRow(BASELINE, MEAN, chance.n, 100 * chance.chance, published, "", differs)


def _charts(rows: Sequence[ReproducedRow]) -> tuple[Chart, ...]:
    """The means, ours, and the leaderboard's of the same; () without ours."""
    means = [row for row in rows if row.what == MEAN]
    series = []
    for name, published in (("here", False), ("leaderboard", True)):
        points = [
            (row.model, value)
            for row in means
            if isinstance(value := row.published if published else row.ours, float)
            and not (published and row.differs)
        ]
        if points:
            x, y = zip(*points, strict=True)
            series.append(Series(name, x, y, published))
    if all(one.published for one in series):
        return ()
    return (Chart("Accuracy on BEAR", "bars", "", "accuracy, %", tuple(series)),)


BEAR_PAPER = Paper(
    PAPER,
    published_table(PAPER, BOARD).citation,
    (PaperTable(BOARD, "Accuracy on BEAR by model", "percent", "facts", make_leaderboard, 2),),
    prepare,
)
