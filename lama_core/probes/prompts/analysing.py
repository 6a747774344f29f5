"""Analyse the prompts of a study: the function of `prompts analyse`."""

from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

from lama_core.probes.prompts.analyses import (
    AnalyseRequest,
    Divergence,
    measure_divergence,
    prompt_pairs,
    rank_patterns,
    transfer_weights,
)
from lama_core.probes.prompts.mining import SpacyParser
from lama_core.probes.prompts.paper_tables import mean_curves
from lama_core.probes.prompts.spec import Study, find_study
from lama_core.requests import Function


@dataclass(frozen=True)
class StudyAnalysis:
    """Analyses of the prompts of a study.

    Attributes:
        divergence: Divergence of pairs of prompts, in bins of edit distance.
        found: `divergence`, `curves`; if requested, `transfer` and `patterns`.
    """

    request: AnalyseRequest
    study: Study
    divergence: Divergence
    found: dict[str, Any]

    @property
    def frame(self) -> pd.DataFrame:
        """A row for each bin of edit distance."""
        return pd.DataFrame([asdict(one) for one in self.divergence.bins])

    def to_json(self) -> dict[str, Any]:
        """Return what `prompts analyse --json` prints."""
        return self.found


def _analyse(request: AnalyseRequest) -> StudyAnalysis:
    study = find_study(request.study)
    chosen = request.combination
    relations = [study.relation(name) for name in study.relations]
    divergence = measure_divergence(
        [pair for relation in relations for pair in prompt_pairs(relation, chosen)]
    )
    found: dict[str, Any] = {"divergence": asdict(divergence), "curves": mean_curves(relations)}
    if request.other is not None:
        other = find_study(request.other)
        found["transfer"] = [
            asdict(transfer_weights(one, other.relation(one.relation.name), chosen))
            for one in relations
            if one.relation.name in other.relations and one.ensemble(chosen, "optimised")
        ]
    if request.patterns:
        parser = SpacyParser()
        found["patterns"] = [
            asdict(row) for relation in relations for row in rank_patterns(relation, parser, chosen)
        ]
    return StudyAnalysis(request, study, divergence, found)


analyse_prompts = Function(
    AnalyseRequest,
    _analyse,
    lambda analysis: analysis.frame,
    """Analyse a study: divergence by edit distance, Top-K curves, another model's prompt weights.

    Returns:
        A DataFrame with a row for each bin of edit distance.

    Raises:
        UserError: If a study is missing, or has no prompts of this set.
    """,
)
