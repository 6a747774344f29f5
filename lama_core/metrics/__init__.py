"""Figures of ranks and of finished runs: pure functions, one family a file.

`METRICS` describes the figures of a table to people, so that a page needs no text of its own.
"""

from dataclasses import dataclass

from lama_core.metrics.calibration import (
    ReliabilityBin,
    expected_calibration_error,
    reliability_bins,
)
from lama_core.metrics.comparison import Agreement, Comparison, Difference, McNemar, compare
from lama_core.metrics.consistency import (
    Consistency,
    overlap,
    paraphrase_consistency,
    spearman_rows,
)
from lama_core.metrics.correlates import (
    Correlations,
    Mentions,
    corpus_mentions,
    correlate,
    wordfreq_mentions,
)
from lama_core.metrics.intervals import Interval, bootstrap
from lama_core.metrics.precision import (
    macro_precision_at,
    mean_rank,
    mean_reciprocal_rank,
    median_rank,
    precision_at,
    precision_curve,
)
from lama_core.metrics.spread import average_ranks
from lama_core.metrics.tables import (
    Calibration,
    Scored,
    calibrate,
    precision_curves,
    rank_histogram,
    rank_quartiles,
    score_table,
    scored_rows,
)


@dataclass(frozen=True, slots=True)
class MetricInfo:
    """A figure as people read it. name: the column of `score_table`."""

    name: str
    label: str
    formula: str
    meaning: str
    higher_is_better: bool


METRICS: tuple[MetricInfo, ...] = (
    MetricInfo(
        "p_at_1",
        "P@1",
        "facts with rank 1 / facts",
        "How often the right word is the model's first answer.",
        True,
    ),
    MetricInfo(
        "p_at_10",
        "P@10",
        "facts with rank at most 10 / facts",
        "How often the right word is among the ten best.",
        True,
    ),
    MetricInfo(
        "mrr",
        "MRR",
        "mean of 1 / rank",
        "Mean reciprocal rank: 1 when the right word is always first.",
        True,
    ),
    MetricInfo(
        "macro_p_at_1",
        "macro P@1",
        "mean over objects of (P@1 of the facts with that object)",
        "Every answer word counts the same, so always giving the most frequent one scores little.",
        True,
    ),
    MetricInfo(
        "mean_rank",
        "mean rank",
        "mean of the ranks",
        "Where the right word stands on average among the candidates; few very bad ranks weigh "
        "heavily.",
        False,
    ),
    MetricInfo(
        "median_rank",
        "median rank",
        "the middle one of the ranks",
        "Half of the facts have their right word at this rank or better.",
        False,
    ),
    MetricInfo(
        "freq",
        "Freq",
        "P@1 of always giving the relation's most frequent object",
        "What knowing only the relation, and not the subject, would reach.",
        True,
    ),
)

__all__ = [
    "METRICS",
    "Agreement",
    "Calibration",
    "Comparison",
    "Consistency",
    "Correlations",
    "Difference",
    "Interval",
    "McNemar",
    "Mentions",
    "MetricInfo",
    "ReliabilityBin",
    "Scored",
    "average_ranks",
    "bootstrap",
    "calibrate",
    "compare",
    "corpus_mentions",
    "correlate",
    "expected_calibration_error",
    "macro_precision_at",
    "mean_rank",
    "mean_reciprocal_rank",
    "median_rank",
    "overlap",
    "paraphrase_consistency",
    "precision_at",
    "precision_curve",
    "precision_curves",
    "rank_histogram",
    "rank_quartiles",
    "reliability_bins",
    "score_table",
    "scored_rows",
    "spearman_rows",
    "wordfreq_mentions",
]
