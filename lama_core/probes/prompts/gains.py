"""Gain in P@1 of selected and weighted prompts over the manual prompt.

    gain = P@1 of the ensemble - P@1 of the manual prompt

both on the test facts and under the study's ranking. Reads only a few columns of the study's rows.
The oracle is excluded, because it is not a selection method.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from lama_core.errors import UserError
from lama_core.probes.prompts.spec import Study
from lama_core.runs.facts_table import check_size
from lama_core.runs.info import FACTS_FILE


@dataclass(frozen=True, slots=True)
class Gain:
    """The gain of one combination and method over the manual prompt.

    points: relation -> gain, between -1 and 1; 0 for relations without such an ensemble. Never
    empty.
    """

    combination: str
    method: str
    points: Mapping[str, float]

    @property
    def mean(self) -> float:
        """The mean over relations."""
        return sum(self.points.values()) / len(self.points)

    @property
    def relation(self) -> str:
        """The relation with the largest gain; the first one wins a tie."""
        return max(self.points, key=lambda name: self.points[name])


def largest_gain(study: Study) -> Gain | None:
    """Return the largest mean gain of a combination and method; the first one wins a tie.

    Returns None if no relation has a manual prompt, or if all ensembles are of the manual prompt.
    """
    path = study.info.path(FACTS_FILE)
    rank = f"rank_{study.info.ranking}"
    points: dict[tuple[str, str], dict[str, float]] = {}
    manuals: dict[str, float] = {}
    try:
        check_size(path)
        names = ["relation", "prompt", "ensemble", rank]
        rows = (
            pq.read_table(path, columns=names, page_checksum_verification=True)
            .to_pandas()
            .dropna(subset=[rank])
        )
        rows["right"] = (rows[rank] == 1).astype(float)
        single = rows[rows["ensemble"].isna()]
        of_prompts = single.groupby(["relation", "prompt"], observed=True)["right"].mean()
        of_ensembles = rows.groupby(["relation", "ensemble"], observed=True)["right"].mean()
        for name in study.relations:
            details = study.details["relations"][name]
            origins = enumerate(origins for *_, origins in details["prompts"])
            manual = next((number for number, names in origins if "manual" in names), None)
            if manual is None:
                continue
            manuals[name] = float(of_prompts[name, manual])
            for number, (combination, method, *_) in enumerate(details["ensembles"]):
                gain = float(of_ensembles[name, number]) - manuals[name]
                points.setdefault((combination, method), {})[name] = gain
    except (OSError, pa.ArrowException, KeyError, TypeError, ValueError) as error:
        raise UserError(f"Damaged file {path} ({error}). Run the study again.") from error
    gains = [
        Gain(combination, method, {name: by_relation.get(name, 0.0) for name in manuals})
        for (combination, method), by_relation in points.items()
        if combination != "manual"
    ]
    return max(gains, key=lambda gain: gain.mean, default=None)
