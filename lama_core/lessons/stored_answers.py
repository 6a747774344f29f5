"""A model's answers to a query from a finished run, for where the model itself isn't here."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from lama_core.runs.info import Run
from lama_core.scoring.blanks import parse_query

N_BEST = 5


@dataclass(frozen=True, slots=True)
class Stored:
    """A run's best words for a query with their log-probabilities, best first.

    n_candidates: words that were ranked.
    """

    run: str
    words: tuple[str, ...]
    log_probs: tuple[float, ...]
    n_candidates: int


def find_stored(text: str, runs: Iterable[Run]) -> Stored | None:
    """The answers of the first run that asked a fact in just these words; None if none did.

    runs: of cloze queries, of one model.
    """
    wanted = parse_query(text).text()
    for run in runs:
        asked = (run.facts["query"] == wanted) & run.facts["excluded"].isna()
        found = np.flatnonzero(asked.to_numpy())
        if len(found):
            words, log_probs = run.top.words[found[0]], run.top.log_probs[found[0]]
            n = min(N_BEST, sum(word is not None for word in words))  # fewer may be ranked
            if n:
                return Stored(
                    run.info.id,
                    tuple(map(str, words[:n])),
                    tuple(map(float, log_probs[:n])),
                    run.info.n_candidates,
                )
    return None
