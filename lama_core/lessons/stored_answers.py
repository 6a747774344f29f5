"""A model's stored answers to a query, from a finished run, if the model isn't installed."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from lama_core.queries.blank_answers import Gold
from lama_core.runs.info import Run
from lama_core.scoring.blanks import parse_query
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
        golds: The gold answer of each of the run's facts with this query.
    """

    run: str
    words: tuple[str, ...]
    log_probs: tuple[float, ...]
    n_candidates: int
    golds: tuple[Gold, ...] = ()

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
                tuple(
                    Gold(word, int(rank), float(log_prob), (word,), in_candidates=True)
                    for word, rank, log_prob in zip(
                        golds["object"], golds["rank_raw"], golds["log_prob"], strict=True
                    )
                ),
            )
    return None
