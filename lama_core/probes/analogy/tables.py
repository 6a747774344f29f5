"""Accuracies of probe runs as tables: by relation and by kind, ours and the paper's.

The accuracy of a kind is the unweighted mean over its relations, and `all` the mean over all
relations (the paper's Table 1). `random` is the mean of random-head and random-tail: the paper
prints one figure for both. The spread is the standard deviation over the classifiers' seeds of the
same mean (n - 1 in the denominator).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from lama_core.probes.analogy.probes import PROBES, Setting
from lama_core.probes.analogy.runs import ProbeDetails, ProbeRun, RelationResult

By = Literal["relation", "kind"]
BYS: tuple[By, ...] = ("relation", "kind")
KINDS = ("encyclopedic", "lexicographic", "derivational", "inflectional")
ALL = "all"
# What the paper prints as one, `random`; and all that stand beside each other.
RANDOM = ("random-head", "random-tail")
SHOWN = ("random", *(name for name in PROBES if name not in RANDOM))


@dataclass(frozen=True, slots=True)
class Accuracy:
    """One accuracy. name: of the relation or kind. probe: also `random`, the mean of both.

    accuracy, spread: between 0 and 1; spread None with less than two seeds, or for a published
    value. n: decisions. mark: `*` one-to-many, `†` bidirectional, where the paper marks them.
    p_value: of the frequency test. made_with: the options, as a person reads them.
    """

    run: str
    model: str
    dataset: str
    setting: Setting
    probe: str
    name: str
    kind: str
    accuracy: float
    spread: float | None
    n: int
    n_excluded: int
    mark: str = ""
    published: bool = False
    p_value: float | None = None
    made_with: str = ""


def accuracies(runs: Iterable[ProbeRun], *, by: By) -> list[Accuracy]:
    """Every run's accuracies, by relation in the dataset's order, or by kind with `all` last.

    Where a model has both random probes on the same data and options, `random` is added.
    """
    lines: list[Accuracy] = []
    for run in runs:
        lines += _by_relation(run) if by == "relation" else _by_kind(run)
    return [*lines, *_random(lines)]


def mark_of(result: RelationResult, probe: str) -> str:
    """The paper's mark: `*` for one-to-many on random, `†` for bidirectional on reverse."""
    known = PROBES[RANDOM[0] if probe == "random" else probe]
    return known.mark if known.marked and getattr(result, known.marked) else ""


def describe(details: ProbeDetails) -> str:
    """The options that a run's numbers depend on, in one line."""
    options = details.options
    parts = [] if options.limit is None else [f"{options.limit:,} instances a relation"]
    parts += [f"seed {options.seed}"] if options.seed else []
    parts += ["no true negatives"] if options.strict else []
    if details.method == "model":
        parts.append(f"template {options.template}")
    if details.setting == "supervised":
        layer = "last layer" if options.layer == -1 else f"layer {options.layer}"
        where = [layer, f"{options.pooling} of pieces"] if details.method == "model" else []
        parts += [*where, f"{options.hidden} hidden units", f"{options.n_seeds} seeds"]
    elif details.method == "model":
        parts.append(f"{options.normalise} of log-probabilities")
    return ", ".join(parts)


def _spread(values: Sequence[float]) -> float | None:
    return float(np.std(values, ddof=1)) if len(values) > 1 else None


def _by_relation(run: ProbeRun) -> list[Accuracy]:
    return [
        _line(
            run, result.name, result.kind, [result], result.accuracy, result.seeds,
            mark=mark_of(result, run.details.probe), p_value=result.frequency.p_value,
        )
        for result in run.details.relations
        if result.accuracy is not None
    ]  # fmt: skip


def _line(
    run: ProbeRun,
    name: str,
    kind: str,
    results: Sequence[RelationResult],
    accuracy: float,
    seeds: Sequence[float],
    **more: Any,
) -> Accuracy:
    """A line of the table about some relations of a run."""
    return Accuracy(
        run=run.info.id,
        model=run.info.model,
        dataset=run.info.dataset,
        setting=run.details.setting,
        probe=run.details.probe,
        name=name,
        kind=kind,
        accuracy=accuracy,
        spread=_spread(seeds),
        n=sum(result.n for result in results),
        n_excluded=sum(result.n_excluded for result in results),
        made_with=describe(run.details),
        **more,
    )


def _by_kind(run: ProbeRun) -> list[Accuracy]:
    lines = []
    known = [result for result in run.details.relations if result.accuracy is not None]
    for kind in (*KINDS, ALL):
        chosen = [result for result in known if kind in (ALL, result.kind)]
        if not chosen:
            continue
        n_seeds = min(len(result.seeds) for result in chosen)
        by_seed = [
            float(np.mean([result.seeds[seed] for result in chosen])) for seed in range(n_seeds)
        ]
        accuracy = float(np.mean([result.accuracy for result in chosen]))
        lines.append(_line(run, kind, kind, chosen, accuracy, by_seed))
    return lines


def _random(lines: Sequence[Accuracy]) -> list[Accuracy]:
    """`random` of each model, setting and name that has both halves."""
    found: dict[tuple[str, ...], dict[str, Accuracy]] = {}
    for line in lines:
        if line.probe.startswith("random-"):
            key = (line.model, line.dataset, line.setting, line.name, line.made_with)
            found.setdefault(key, {}).setdefault(line.probe, line)
    return [
        Accuracy(
            run=f"{head.run}, {tail.run}",
            model=head.model,
            dataset=head.dataset,
            setting=head.setting,
            probe="random",
            name=head.name,
            kind=head.kind,
            accuracy=(head.accuracy + tail.accuracy) / 2,
            spread=_mean_spread(head, tail),
            n=head.n + tail.n,
            n_excluded=head.n_excluded + tail.n_excluded,
            mark=head.mark,
            made_with=head.made_with,
        )
        for both in found.values()
        if (head := both.get(RANDOM[0])) and (tail := both.get(RANDOM[1]))
    ]


def _mean_spread(head: Accuracy, tail: Accuracy) -> float | None:
    """The standard deviation of the mean of two independent figures."""
    if head.spread is None or tail.spread is None:
        return None
    return float(np.hypot(head.spread, tail.spread)) / 2


def probes_in(lines: Iterable[Accuracy]) -> tuple[str, ...]:
    """The probes that the lines have, in the order in which they are shown."""
    order = ("random", *PROBES)
    present = {line.probe for line in lines}
    return tuple(probe for probe in order if probe in present)
