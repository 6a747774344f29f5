"""Share of a run's facts that come from its model's training sources, and P@k on these facts.

    share   facts that count and come from a training source / facts that count
    P@k     on these facts, on the others, and on each source: facts with rank at most k / facts
    gain    facts that only one run gets right - facts that only the other run gets right

All shares are over facts, not means over relations. A fact comes from a training source if its
origin contains the source's name in the catalogue (`Entry.trained_on`). A fact of several sources
counts for each of them. Facts of other origins can still occur in the training text.
What an embedded model's encoder had been trained on before isn't among the sources.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from lama_core.metrics.fact_answers import AnswerFilter, by_word, join_answers
from lama_core.metrics.intervals import Floats
from lama_core.metrics.known_ranks import hits
from lama_core.metrics.sentence_forms import wordings_in_texts
from lama_core.metrics.training_texts import label
from lama_core.models.sources.catalog import known_models
from lama_core.rounding import percent
from lama_core.runs.alignment import Bools
from lama_core.runs.info import Run
from lama_core.scoring.ranking import Ranking


@dataclass(frozen=True, slots=True)
class FactGroup:
    """A group of n facts that count. n_right: those with rank at most k; NaN if not defined."""

    n: int
    n_right: float

    @property
    def p_at_k(self) -> float:
        """Share of right facts; NaN without facts."""
        return self.n_right / self.n if self.n else float("nan")


@dataclass(frozen=True, slots=True)
class TrainedOn:
    """The facts that count, split by whether they come from the model's training sources.

    inside, outside: facts from training sources, and the others. sources: the facts of each
    training source that has any, largest first. seen, unseen: the facts whose wording has a form of
    the model's training text, and whose wording hasn't; without facts if the forms are unknown.
    """

    inside: FactGroup
    outside: FactGroup
    sources: tuple[tuple[str, FactGroup], ...]
    seen: FactGroup = FactGroup(0, 0)
    unseen: FactGroup = FactGroup(0, 0)

    @property
    def share(self) -> float:
        """Share of the facts that come from training sources; NaN without facts."""
        n = self.inside.n + self.outside.n
        return self.inside.n / n if n else float("nan")


def training_sources(model: str) -> tuple[str, ...]:
    """Return the sources that a model was trained on; () if the catalogue has none."""
    return {entry.name: entry.trained_on for entry in known_models()}.get(model, ())


def n_from_training(model: str, origins: Iterable[str]) -> int:
    """Return how many facts of these origins come from the model's training sources."""
    known = training_sources(model)
    return sum(any(source in origin for source in known) for origin in origins)


def trained_on(
    run: Run, *, ranking: Ranking = "filtered", k: int = 1, relations: Sequence[str] = ()
) -> TrainedOn | None:
    """Split a run's facts by its model's training sources.

    None if the catalogue has no training sources of the model, or the data no origins.

    Args:
        run: A finished run.
        ranking: Filtered or raw.
        k: A fact is right if its rank is at most k.
        relations: Names of the relations to include; () is all.
    """
    known = training_sources(run.info.model)
    if not known or not (origin := run.column("origin")).notna().any():
        return None
    counted, right = _counted(run, ranking, k, relations)
    groups = [(source, _group(_is_from(origin, [source]), counted, right)) for source in known]
    anywhere, model = _is_from(origin, known), run.info.model
    wordings = wordings_in_texts(run.facts, [model])
    by_wording = (
        ()
        if wordings is None
        else (  # whose form the training text has, and hasn't
            _group(np.asarray(wordings == label(models, [model])), counted, right)
            for models in ([model], [])
        )
    )
    return TrainedOn(
        _group(anywhere, counted, right),
        _group(~anywhere, counted, right),
        tuple(
            sorted(((name, group) for name, group in groups if group.n), key=lambda one: -one[1].n)
        ),
        *by_wording,
    )


def outside_training(
    run: Run, model: str, *, ranking: Ranking, k: int, relations: Sequence[str]
) -> FactGroup:
    """Return a run's facts that aren't from the training sources of a model, perhaps another one.

    ranking, k, relations: as of `trained_on`.
    """
    inside = _is_from(run.column("origin"), training_sources(model))
    return _group(~inside, *_counted(run, ranking, k, relations))


def _counted(run: Run, ranking: Ranking, k: int, relations: Sequence[str]) -> tuple[Bools, Floats]:
    """Return which rows count, and which are right, [row]."""
    counted = run.counted
    if relations:
        counted = counted & run.column("relation").isin(relations).to_numpy()
    return counted, hits(run.column(f"rank_{ranking}").to_numpy(), run.known_to, k)


def gain_from_training(
    run: Run, other: Run, *, k: int = 1, relations: Sequence[str] = ()
) -> tuple[int, int]:
    """Return how many more facts one run gets right than another, where both have a P@k.

    Returns:
        The facts that only this run gets right, minus those that only the other gets right; the
        same difference over the facts from the training sources of the run's model.
    """
    joined = join_answers([run, other])
    rows = joined.select(AnswerFilter(counting="all", relations=tuple(relations)))
    right, other_right = (answers.hits(k)[rows] for answers in joined.runs)
    gained = right - other_right
    both = ~np.isnan(gained)
    from_training = _is_from(joined.facts["origin"], training_sources(run.info.model))[rows]
    return int(gained[both].sum()), int(gained[both & from_training].sum())


def _is_from(origin: "pd.Series[Any]", known: Sequence[str]) -> Bools:
    """Whether each origin names one of the sources, bool [row]."""
    return by_word(origin, lambda text: any(one in text for one in known), False).astype(bool)


def _group(rows: Bools, counted: Bools, right: Floats) -> FactGroup:
    return FactGroup(int((rows & counted).sum()), float(right[rows & counted].sum()))


def sentence(found: TrainedOn, model: str, *, k: int, counts: str = "facts") -> str:
    """Return the sentence shown next to the model's P@k. counts: `RunInfo.counts`."""
    inside, outside = found.inside, found.outside
    n = inside.n + outside.n
    seen, unseen = found.seen, found.unseen
    unsought = n - seen.n - unseen.n
    is_defined = inside.n_right + outside.n_right >= 0  # not NaN
    wording = (
        f" The wordings of {seen.n:,} {counts} have the form of sentences in {model}'s training "
        f"text: P@{k} is {_percent(seen)} on them, and {_percent(unseen)} on the {unseen.n:,} "
        "whose wording hasn't" + f" (not looked for: the other {unsought:,})" * (unsought > 0) + "."
        if seen.n and unseen.n and is_defined
        else ""
    )
    if not inside.n:
        return (
            f"None of these {n:,} {counts} comes from a source that {model} was trained on; they "
            f"can still occur in its training text.{wording}"
        )
    by_source = "; ".join(
        f"{name}: {_percent(group)} of {group.n:,}" for name, group in found.sources
    )
    others = f", and {_percent(outside)} on the other {outside.n:,}" if outside.n else ""
    return (
        f"{inside.n:,} of the {n:,} {counts} that count ({percent(found.share)} %) come from "
        f"sources that {model} was trained on."
        + f" P@{k} over {counts} is {_percent(inside)} on them ({by_source}){others}." * is_defined
        + wording
    )


def _percent(group: FactGroup) -> str:
    return f"{percent(group.p_at_k)} %"
