"""A model's stored answers to a query, if the model isn't installed.

Answers to the queries of the project's lessons are recorded (`python -m tools.lesson_answers`), as
the installed model gives them. Other answers are those of a finished run, which has ranked words
only.
"""

import math
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache

import msgspec
import numpy as np

from lama_core.candidates.lists import COMMON, is_per_model
from lama_core.errors import UserError
from lama_core.lessons.lesson import N_BEST
from lama_core.models.protocols import KINDS, Context
from lama_core.models.sources.catalog import find_model
from lama_core.models.sources.locations import is_here
from lama_core.paths import ASSETS
from lama_core.queries.blank_answers import BlankAnswer, Gold, Prediction
from lama_core.runs.find import list_runs
from lama_core.runs.info import Run, RunInfo
from lama_core.scoring.blanks import parse_query
from lama_core.scoring.shared_fields import ClozeSettings
from lama_core.texts import word_key

RECORDED = ASSETS / "recorded_answers.json"


@dataclass(frozen=True, slots=True)
class Recorded:
    """A model's answer to a query of a lesson.

    Attributes:
        model: The model.
        models: All queried models, which determine the candidates.
        context: The context of the request; None if the model chooses it.
        text: The query, with its blank as `[MASK]`.
        blank: The answer.
    """

    model: str
    models: tuple[str, ...]
    context: Context | None
    text: str
    blank: BlankAnswer


@dataclass(frozen=True, slots=True)
class Stored:
    """The best answers to a query in a run, or recorded ones, best first.

    Attributes:
        run: The run's id; empty for recorded answers.
        found: The answers as those of a query.
        n_candidates: Number of candidates that were ranked.
        candidates: The name of their list.
        golds: The gold answer of each of the run's facts with this query.
    """

    run: str
    found: BlankAnswer
    n_candidates: int
    candidates: str
    golds: tuple[Gold, ...] = ()

    @property
    def blank(self) -> BlankAnswer:
        """The answers as those of a query, with the gold answer if there is one."""
        return replace(self.found, gold=self.golds[0] if len(self.golds) == 1 else None)

    @property
    def source(self) -> str:
        """Where the answers are from, in words."""
        of = f"From its run {self.run}" if self.run else "Recorded from the installed model"
        return f"{of}, among {self.n_candidates:,} words"

    def judged(self, word: str | None) -> "Stored":
        """Return the answers with one gold answer, `word`; with none if its rank isn't stored."""
        wanted = word_key(word or "")
        golds = [one for one in self.golds if word_key(one.word) == wanted]
        listed = [
            Gold(str(word).strip(), one.rank, one.log_prob, (one.token,), in_candidates=True)
            for one in self.found.predictions
            if one.rank and word_key(one.token) == wanted
        ]
        return replace(self, golds=(*golds, *listed)[:1])


def find_stored(text: str, runs: Iterable[Run]) -> Stored | None:
    """Return the answers of the first run that contains this query; None if none does.

    runs: Cloze runs of one model.
    """
    wanted = parse_query(text).text()
    for run in runs:
        matches = (run.facts["query"] == wanted) & run.facts["excluded"].isna()
        rows = np.flatnonzero(matches.to_numpy())
        if len(rows) and (best := run.top.of(rows[0])[:N_BEST]):  # no word may be ranked
            ranked = enumerate(best, start=1)
            golds = run.facts.iloc[rows]
            return Stored(
                run.info.id,
                BlankAnswer(tuple(Prediction(n, *one, math.exp(one[1])) for n, one in ranked)),
                run.info.n_candidates,
                run.info.candidates,
                tuple(
                    Gold(word, int(rank), float(log_prob), (word,), in_candidates=True)
                    for word, rank, log_prob in zip(
                        golds["object"], golds["rank_raw"], golds["log_prob"], strict=True
                    )
                ),
            )
    return None


def recorded_answer(text: str, name: str, settings: ClozeSettings) -> Stored | None:
    """Return a model's recorded answer to a query; None if none has these settings."""
    found = recorded_answers().get(
        (name, tuple(settings.models), settings.context, parse_query(text).text())
    )
    if found is None or settings.candidates != COMMON or found.n_candidates is None:
        return None
    return Stored("", found, found.n_candidates, COMMON, (found.gold,) if found.gold else ())


@cache
def recorded_answers() -> dict[tuple[str, tuple[str, ...], Context | None, str], BlankAnswer]:
    """Return the recorded answers by model, queried models, context and text."""
    found = msgspec.json.decode(RECORDED.read_bytes(), type=list[Recorded])
    return {(one.model, one.models, one.context, one.text): one.blank for one in found}


def stored_runs(settings: ClozeSettings) -> dict[str, tuple[RunInfo, ...]]:
    """Return the finished cloze runs with the candidates and the context of some settings.

    No run ranks `own` words: runs on the words that its models share are the nearest.

    Returns:
        Model of the settings that is known but not installed -> its runs; without models that have
        none.
    """
    missing = missing_models(settings.models)
    infos = list_runs(kinds=("cloze",)).intact().runs if missing else ()
    runs = {
        name: tuple(info for info in infos if info.model == name and _fits(info, settings))
        for name in missing
    }
    return {name: found for name, found in runs.items() if found}


def missing_models(names: Iterable[str]) -> list[str]:
    """Return the models that are known, but not installed."""
    found = []
    for name in names:
        with suppress(UserError):  # the model isn't known
            found += [name] * (not is_here(find_model(name)))
    return found


def _fits(info: RunInfo, settings: ClozeSettings) -> bool:
    kind = find_model(info.model).kind
    usual = KINDS[kind].contexts[0] if kind else info.context
    listed = COMMON if is_per_model(settings.candidates) else settings.candidates
    return info.candidates == listed and info.context == (settings.context or usual)
