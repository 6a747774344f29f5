"""The stored scores of whole answers, in runs of statements and in imported ones."""

import numpy as np
from numpy.typing import NDArray

from lama_core.scoring.batches import ScoreBlock
from lama_core.scoring.preparation import Segment
from lama_core.scoring.statement_scores import log_softmax
from lama_core.scoring.top_answers import TopRows, rank_block

# Maximum number of answers; with more, a run keeps only the scores of the top ten and the gold
# answer.
MAX_KEPT = 1000


def rank_statements(
    name: str, segment: Segment, chosen: NDArray[np.int64], scores: NDArray[np.float64]
) -> tuple[TopRows, NDArray[np.float32]]:
    """Return what a run stores of some queries of a segment, and the margin of each of them.

    Log-probabilities are over the answers. Answers that the model can't write are ranked last and
    not shown. A margin is the gold answer's score minus the best wrong answer's; NaN without a
    wrong answer that the model can write.

    Args:
        name: Name of the model.
        segment: The segment.
        chosen: Indices of the queries.
        scores: Scores, float64 [query, answer]; -inf for an answer that the model can't write.
    """
    rows = rank_block(name, segment, ScoreBlock(0, chosen, scores.astype(np.float32), None))
    log_probs = log_softmax(scores)
    queries = np.arange(len(chosen))
    gold = segment.gold[chosen]
    rows["log_prob"] = log_probs[queries, gold]
    for answers, values in (
        ("first_filtered", "first_filtered_log_prob"),
        ("top", "top_log_probs"),
    ):
        columns = rows[answers].reshape(len(rows), -1)
        found = np.where(columns >= 0, log_probs[queries[:, None], np.maximum(columns, 0)], -np.inf)
        rows[values] = found.reshape(rows[values].shape)
    wrong = scores.copy()
    wrong[queries, gold] = -np.inf
    for row, others in enumerate(segment.removed[chosen]):
        wrong[row, others[others >= 0]] = -np.inf
    best_wrong, own = wrong.max(axis=1), scores[queries, gold]
    known = np.isfinite(best_wrong) & np.isfinite(own)
    margins = np.subtract(own, best_wrong, out=np.full(len(own), np.nan), where=known)
    return rows, margins.astype(np.float32)
