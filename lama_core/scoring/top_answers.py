"""Reduce the scores of a batch to what a run stores: the gold answer's ranks and the top ten."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lama_core.candidates.columns import NO_COLUMN
from lama_core.errors import UserError
from lama_core.scoring.batches import ScoreBlock
from lama_core.scoring.preparation import Segment
from lama_core.scoring.ranking import Top, best_candidates, first_nan, rank_gold

TOP_K = 10

# One row per scored query. Candidates are indices in the segment's candidate list; -1 for none.
ROW = np.dtype(
    [
        ("query", "<i8"),
        ("rank_raw", "<i4"),
        ("rank_filtered", "<i4"),
        ("log_prob", "<f4"),
        ("first_filtered", "<i4"),
        ("first_filtered_log_prob", "<f4"),
        ("top", "<i4", (TOP_K,)),
        ("top_log_probs", "<f4", (TOP_K,)),
    ]
)
TopRows = NDArray[np.void]


def rank_block(name: str, segment: Segment, scored: ScoreBlock) -> TopRows:
    """Return what a run stores of a batch: a structured array [query] of type `ROW`.

    Raises:
        UserError: If a score is NaN; the message names the model (`name`) and the first such query.
    """
    at = scored.indices
    gold, removed = segment.gold[at], segment.removed[at]
    if (bad := first_nan(scored.log_probs)) is not None:
        raise UserError(
            f"{name} returned NaN for {segment.queries[int(at[bad])].text()!r}: its weights are "
            "corrupt, or the precision is too low; try --precision fp32. Finished parts are kept."
        )
    ranks = rank_gold(
        scored.log_probs, gold, removed=removed, order=scored.order, gold_scores=scored.gold
    )
    top = best_candidates(scored.log_probs, TOP_K, order=scored.order)
    if scored.order is None:  # without an order, candidates at -inf are unscored: drop them
        top = Top(np.where(np.isneginf(top.log_probs), NO_COLUMN, top.columns), top.log_probs)
    rows = np.zeros(len(at), dtype=ROW)
    rows["query"] = at
    rows["rank_raw"] = ranks.raw
    rows["rank_filtered"] = ranks.filtered
    rows["log_prob"] = scored.log_probs[np.arange(len(at)), gold]
    if scored.gold_log_probs is not None:
        apart = ~np.isnan(scored.gold_log_probs)
        rows["log_prob"][apart] = scored.gold_log_probs[apart]
    rows["top"] = top.columns
    rows["top_log_probs"] = top.log_probs
    rows["first_filtered"] = top.columns[:, 0]
    rows["first_filtered_log_prob"] = top.log_probs[:, 0]
    beaten = np.flatnonzero((removed == top.columns[:, :1]).any(axis=1))
    if len(beaten):
        best = best_candidates(
            scored.log_probs[beaten],
            1,
            removed=removed[beaten],
            order=None if scored.order is None else scored.order[beaten],
        )
        rows["first_filtered"][beaten] = best.columns[:, 0]
        rows["first_filtered_log_prob"][beaten] = best.log_probs[:, 0]
    return rows


def to_table(rows: TopRows) -> pa.Table:
    """Return rows as a table with the same columns; the top ten are lists."""
    columns = {}
    for name in ROW.names or ():
        values = pa.array(np.ascontiguousarray(rows[name]).ravel())
        is_list = rows[name].ndim > 1
        columns[name] = pa.FixedSizeListArray.from_arrays(values, TOP_K) if is_list else values
    return pa.table(columns)


def from_table(table: pa.Table) -> TopRows:
    """Return the rows of a table that `to_table` made; other columns are ignored."""
    rows = np.zeros(table.num_rows, dtype=ROW)
    if not len(rows):
        return rows
    for name in ROW.names or ():
        column = table[name].combine_chunks()
        if pa.types.is_fixed_size_list(column.type):
            rows[name] = column.flatten().to_numpy().reshape(-1, TOP_K)
        else:
            rows[name] = column.to_numpy()
    return rows
