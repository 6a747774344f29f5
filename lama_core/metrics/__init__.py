"""Metrics of ranks and of finished runs: pure functions, one family per file.

`METRICS` holds the label, formula and meaning of each metric, which pages and commands show.
"""

from lama_core.metrics.calibration import expected_calibration_error as expected_calibration_error
from lama_core.metrics.comparison import compare as compare
from lama_core.metrics.consistency import contrast as contrast
from lama_core.metrics.consistency import paraphrase_consistency as paraphrase_consistency
from lama_core.metrics.consistency import spearman_rows as spearman_rows
from lama_core.metrics.correlates import Correlations as Correlations
from lama_core.metrics.correlates import Mentions as Mentions
from lama_core.metrics.correlates import correlate as correlate
from lama_core.metrics.correlates import correlation_sources as correlation_sources
from lama_core.metrics.correlates import mentions_of as mentions_of
from lama_core.metrics.correlates import wordfreq_mentions as wordfreq_mentions
from lama_core.metrics.headlines import headline as headline
from lama_core.metrics.headlines import overall as overall
from lama_core.metrics.headlines import paired_headline as paired_headline
from lama_core.metrics.headlines import standings as standings
from lama_core.metrics.margins import margin_histogram as margin_histogram
from lama_core.metrics.precision_at_k import macro_precision_at as macro_precision_at
from lama_core.metrics.precision_at_k import precision_at as precision_at
from lama_core.metrics.rank_spread import average_ranks as average_ranks
from lama_core.metrics.relation_figures import METRICS as METRICS
from lama_core.metrics.relation_figures import TEXT_METRICS as TEXT_METRICS
from lama_core.metrics.relation_figures import Metric as Metric
from lama_core.metrics.relation_figures import Scored as Scored
from lama_core.metrics.relation_figures import scored_rows as scored_rows
from lama_core.metrics.score_tables import BYS as BYS
from lama_core.metrics.score_tables import Average as Average
from lama_core.metrics.score_tables import By as By
from lama_core.metrics.score_tables import calibrate as calibrate
from lama_core.metrics.score_tables import precision_curves as precision_curves
from lama_core.metrics.score_tables import rank_histogram as rank_histogram
from lama_core.metrics.score_tables import rank_quartiles as rank_quartiles
from lama_core.metrics.score_tables import relation_figures as relation_figures
from lama_core.metrics.score_tables import relation_precision as relation_precision
from lama_core.metrics.score_tables import relations_counted as relations_counted
from lama_core.metrics.score_tables import score_table as score_table
from lama_core.metrics.score_tables import summarise as summarise
