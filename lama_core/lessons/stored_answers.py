"""A model's stored answers to a query, from a finished run, if the model isn't installed."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from lama_core.candidates.lists import COMMON, is_per_model
from lama_core.errors import UserError
from lama_core.models.protocols import KINDS
from lama_core.models.sources.catalog import find_model
from lama_core.models.sources.locations import is_here
from lama_core.queries.blank_answers import BlankAnswer, Gold, Prediction
from lama_core.runs.find import list_runs
from lama_core.runs.info import Run, RunInfo
from lama_core.scoring.blanks import parse_query
from lama_core.scoring.shared_fields import ClozeSettings
from lama_core.texts import word_key

N_BEST = 5


@dataclass(frozen=True, slots=True)
class Stored:
    """The best answers to a query in a run, best first.

    Attributes:
        run: The run's id.
        words: The answers.
        log_probs: Their natural log-probabilities.
        n_candidates: Number of candidates that were ranked.
        candidates: The name of their list.
        golds: The gold answer of each of the run's facts with this query.
    """

    run: str
    words: tuple[str, ...]
    log_probs: tuple[float, ...]
    n_candidates: int
    candidates: str
    golds: tuple[Gold, ...] = ()

    @property
    def blank(self) -> BlankAnswer:
        """The answers as those of a query, with the gold answer if there is one."""
        pairs = enumerate(zip(self.words, self.log_probs, strict=True), start=1)
        return BlankAnswer(
            tuple(Prediction(rank, word, value, math.exp(value)) for rank, (word, value) in pairs),
            gold=self.golds[0] if len(self.golds) == 1 else None,
        )

    def judged(self, word: str | None) -> "Stored":
        """Return the answers with one gold answer, `word`; with none if its rank isn't stored."""
        wanted = word_key(word or "")
        golds = [one for one in self.golds if word_key(one.word) == wanted]
        listed = [
            Gold(str(word).strip(), rank, log_prob, (answer,), in_candidates=True)
            for rank, (answer, log_prob) in enumerate(
                zip(self.words, self.log_probs, strict=True), start=1
            )
            if word_key(answer) == wanted
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
            words, log_probs = zip(*best, strict=True)
            golds = run.facts.iloc[rows]
            return Stored(
                run.info.id,
                words,
                log_probs,
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


def stored_runs(settings: ClozeSettings) -> dict[str, tuple[RunInfo, ...]]:
    """Return the finished cloze runs with the candidates and the context of some settings.

    No run ranks `own` words: runs on the words that its models share are the nearest.

    Returns:
        Model of the settings that is known but not installed -> its runs; without models that have
        none.
    """
    missing = [name for name in settings.models if _is_missing(name)]
    infos = list_runs(kinds=("cloze",)).intact().runs if missing else ()
    runs = {
        name: tuple(info for info in infos if info.model == name and _fits(info, settings))
        for name in missing
    }
    return {name: found for name, found in runs.items() if found}


def _is_missing(name: str) -> bool:
    try:
        return not is_here(find_model(name))
    except UserError:  # the model isn't known
        return False


def _fits(info: RunInfo, settings: ClozeSettings) -> bool:
    kind = find_model(info.model).kind
    usual = KINDS[kind].contexts[0] if kind else info.context
    listed = COMMON if is_per_model(settings.candidates) else settings.candidates
    return info.candidates == listed and info.context == (settings.context or usual)
