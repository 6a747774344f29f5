"""What chosen and weighted prompts gain over the manual one, from what a study stores.

    gain = P@1 of the ensemble - P@1 of the manual prompt

both on the test facts and under the study's ranking.

Only a few columns of the rows are read: no distributions, no shortlist. The oracle is no way of
choosing, and is left out.
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
    """One way of choosing beside the manual prompt.

    combination, method: of the ensembles. points: relation -> the gain, between -1 and 1; relations
    that lack the ensemble gain 0. Never empty.
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
        """Where it is largest; of equals the first."""
        return max(self.points, key=lambda name: self.points[name])


def find_gain(study: Study) -> Gain | None:
    """Return the way that gains most over all relations, of equals the first."""
    path = study.info.folder / FACTS_FILE
    rank = f"rank_{study.info.ranking}"
    points: dict[tuple[str, str], dict[str, float]] = {}
    manuals: dict[str, float] = {}
    try:
        check_size(path)
        names = ["relation", "prompt", "ensemble", rank]
        rows = pq.read_table(path, columns=names).to_pandas().dropna(subset=[rank])
        rows["right"] = (rows[rank] == 1).astype(float)
        single = rows[rows["ensemble"].isna()]
        of_prompts = single.groupby(["relation", "prompt"], observed=True)["right"].mean()
        of_ensembles = rows.groupby(["relation", "ensemble"], observed=True)["right"].mean()
        for name in study.relations:
            details = study.details["relations"][name]
            origins = [known for *_, known in details["prompts"]]
            at = next((at for at, known in enumerate(origins) if "manual" in known), None)
            if at is None:
                continue
            manuals[name] = float(of_prompts[name, at])
            for number, (combination, method, *_) in enumerate(details["ensembles"]):
                gain = float(of_ensembles[name, number]) - manuals[name]
                points.setdefault((combination, method), {})[name] = gain
    except (OSError, pa.ArrowException, KeyError, TypeError, ValueError) as error:
        raise UserError(f"{path} is damaged ({error}): make the study again.") from error
    gains = [
        Gain(*way, {name: known.get(name, 0.0) for name in manuals})
        for way, known in points.items()
        if way[0] != "manual"
    ]
    return max(gains, key=lambda gain: gain.mean, default=None)
