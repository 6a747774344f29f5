"""Scoring in this process, one batch after the other."""

from collections.abc import Iterator, Sequence

import numpy as np

from lama_core.asking.executors import Job, Span
from lama_core.asking.preparation import Segment
from lama_core.asking.ranking import best_candidates, rank_gold
from lama_core.asking.scoring import ScoreBlock, plan_batches
from lama_core.errors import UserError
from lama_core.models.base import BlankFiller
from lama_core.runs.block_log import ROW, TOP_K, Block


class LocalExecutor:
    """Scores the spans here, in order."""

    def blocks(
        self, job: Job, segments: Sequence[Segment], spans: Sequence[Span]
    ) -> Iterator[Block]:
        """The scored blocks of the spans, in order."""
        scorer: SegmentScorer | None = None
        for span in spans:
            if scorer is None or scorer.number != span.segment:
                scorer = SegmentScorer(job, segments[span.segment], span.segment)
            yield from scorer.blocks(span)


class SegmentScorer:
    """One segment with its plan; scores any stretch of its batches."""

    def __init__(self, job: Job, segment: Segment, number: int) -> None:
        """Plan the batches: the same plan in every process."""
        self.job = job
        self.segment = segment
        self.number = number
        self.batches = plan_batches(
            segment.encoded, max_rows=job.batch_rows, max_tokens=job.batch_tokens
        )

    def blocks(self, span: Span) -> Iterator[Block]:
        """The blocks of one span, in order."""
        last = len(self.batches) if span.last is None else span.last
        for number in range(span.first, last):
            batch = self.batches[number]
            scores = self.job.model.blank_log_probs(
                [self.segment.encoded[query] for query in batch], self.segment.columns
            )
            at = np.array(batch, dtype=np.int64)
            block = ScoreBlock(number, at, scores.log_probs, scores.order)
            yield rank_block(self.job.model, self.segment, self.number, block)


def rank_block(model: BlankFiller, segment: Segment, number: int, scored: ScoreBlock) -> Block:
    """One batch of scores, reduced to what a run keeps of it.

    Raises UserError, naming the query, if the model gave a value that is not a number.
    """
    at = scored.indices
    gold, removed = segment.gold[at], segment.removed[at]
    bad = np.isnan(scored.log_probs).any(axis=1)
    if bad.any():
        query = segment.queries[int(at[int(np.flatnonzero(bad)[0])])]
        raise UserError(
            f"{model.name} gave a value that is not a number for {query.text()!r}: its weights are "
            "damaged, or the precision is too low for them; try --precision fp32. What was scored "
            "before is kept."
        )
    ranks = rank_gold(scored.log_probs, gold, removed=removed, order=scored.order)
    top = best_candidates(scored.log_probs, TOP_K, order=scored.order)
    rows = np.zeros(len(at), dtype=ROW)
    rows["query"] = at
    rows["rank_raw"] = ranks.raw
    rows["rank_filtered"] = ranks.filtered
    rows["log_prob"] = scored.log_probs[np.arange(len(at)), gold]
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
    return Block(number, scored.number, rows)
