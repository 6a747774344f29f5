"""What chosen and weighted prompts gain over the manual one, from what a study stores.

    gain = P@1 of the ensemble - P@1 of the manual prompt

both on the test facts and under the study's ranking.

Only a few columns of the rows are read: no distributions, no shortlist. The oracle is no way of
choosing, and is left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lama_core.errors import UserError
from lama_core.probes.prompts.runs import Study
from lama_core.runs.info import FACTS_FILE
from lama_core.runs.table import check_size


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
    """The way of choosing that gains most over all relations; of equals the first that is stored.

    None if the study holds no manual prompt, or no ensemble beside it. Raises UserError if the
    study is damaged.
    """
    path = study.info.folder / FACTS_FILE
    rank = f"rank_{study.info.ranking}"
    try:
        check_size(path)
        rows = pq.read_table(path, columns=["relation", "prompt", "ensemble", rank])
        found = {name: _precisions(rows, name, study, rank) for name in study.relations}
    except (OSError, pa.ArrowException, KeyError, TypeError, ValueError) as error:
        raise UserError(f"{path} is damaged ({error}): make the study again.") from error
    known = {name: one for name, one in found.items() if one is not None}
    ways = dict.fromkeys(way for _, ensembles in known.values() for way in ensembles)
    gains = [
        Gain(
            *way,
            {
                name: ensembles.get(way, manual) - manual
                for name, (manual, ensembles) in known.items()
            },
        )
        for way in ways
        if way[0] != "manual"
    ]
    return max(gains, key=lambda gain: gain.mean, default=None)


Way = tuple[str, str]


def _precisions(
    rows: pa.Table, relation: str, study: Study, rank: str
) -> tuple[float, dict[Way, float]] | None:
    """P@1 of a relation's manual prompt and of its ensembles; None without a manual prompt."""
    details = study.details["relations"][relation]
    manual = next(
        (at for at, (*_, origins) in enumerate(details["prompts"]) if "manual" in origins), None
    )
    if manual is None:
        return None
    here = rows.filter(pc.equal(rows["relation"].cast(pa.string()), relation))
    here = here.filter(pc.is_valid(here[rank]))
    right = pc.equal(here[rank], 1).cast(pa.float64())
    of_prompts = pc.and_(pc.is_null(here["ensemble"]), pc.equal(here["prompt"], manual))
    return pc.mean(right.filter(of_prompts)).as_py(), {
        (combination, method): pc.mean(right.filter(pc.equal(here["ensemble"], number))).as_py()
        for number, (combination, method, *_) in enumerate(details["ensembles"])
    }
