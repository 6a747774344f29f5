"""Series: the finished runs of a training run's checkpoints on the same queries, by step."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace

from lama_core.models.sources.checkpoints import Checkpoint, checkpoint_of
from lama_core.runs.info import RunInfo


@dataclass(frozen=True)
class CheckpointSeries:
    """Runs of at least two checkpoints of one training run, on the same queries and candidates.

    Attributes:
        name: The hub name or folder of the checkpoints.
        runs: The runs, by step; each has a `checkpoint`.
        steps: The training step of each run.
    """

    name: str
    runs: tuple[RunInfo, ...]
    steps: tuple[int, ...]

    @property
    def last(self) -> RunInfo:
        """The run of the last checkpoint."""
        return self.runs[-1]


def place_of(info: RunInfo) -> Checkpoint | None:
    """Return a run's series and step, as stored or from the model's name; None if unknown."""
    return info.checkpoint or checkpoint_of(info.model)


def find_series(infos: Iterable[RunInfo]) -> tuple[CheckpointSeries, ...]:
    """Return the series among the runs, in the order of their first runs.

    Runs are in one series if they differ only in the checkpoint. Of several runs of one step, the
    newest is used.
    """
    groups: dict[Hashable, dict[int, RunInfo]] = {}
    for info in infos:
        place = place_of(info)
        if place is None:
            continue
        group = groups.setdefault((place.series, *_same(info)), {})
        other = group.get(place.step)
        if other is None or info.made >= other.made:
            group[place.step] = replace(info, checkpoint=place)
    return tuple(
        CheckpointSeries(
            str(key[0]), tuple(group[step] for step in sorted(group)), tuple(sorted(group))
        )
        for key, group in groups.items()
        if isinstance(key, tuple) and len(group) > 1
    )


def earlier_checkpoints(infos: Iterable[RunInfo]) -> frozenset[str]:
    """Return the ids of the runs of all but the last checkpoint of each series.

    The last checkpoint's run is included, too, if `infos` has a run of the model itself.
    """
    infos = tuple(infos)
    models = {info.model for info in infos}
    return frozenset(
        run.id
        for series in find_series(infos)
        for run in series.runs[: None if series.name in models else -1]
    )


def _same(info: RunInfo) -> tuple[Hashable, ...]:
    """Return what the runs of a series have in common."""
    return (
        *(info.kind, info.data_digest, info.prompts, info.limit, info.context, info.precision),
        *(info.candidates_digest, tuple(one.name for one in info.relations)),
    )
