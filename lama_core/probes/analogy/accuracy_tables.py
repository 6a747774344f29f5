"""Accuracies of probe runs as tables: by relation and by kind, ours and the paper's.

The accuracy of a kind is the unweighted mean over its relations, and `all` the mean over all
relations (the paper's Table 1). `random` is the mean of random-head and random-tail: the paper
prints one figure for both. The spread is the standard deviation over the classifiers' seeds of the
same mean (n - 1 in the denominator).

The frequency test is of a relation and a probe; on `random` the decisions of both halves are one
sample, as the paper's random probe is one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lama_core.probes.analogy.instances import PROBES, Setting
from lama_core.probes.analogy.spec import ProbeDetails, ProbeRun, RelationResult, frequency_test
from lama_core.runs.facts_table import read_columns
from lama_core.runs.info import FACTS_FILE

By = Literal["relation", "kind"]
BYS: tuple[By, ...] = ("relation", "kind")
KINDS = ("encyclopedic", "lexicographic", "derivational", "inflectional")
ALL = "all"
SEMANTIC = ("encyclopedic", "lexicographic")
UNMARKED = "semantic, without marked"
# What the paper prints as one, `random`; and all that stand beside each other.
RANDOM = ("random-head", "random-tail")
SHOWN = ("random", *(name for name in PROBES if name not in RANDOM))
# A p-value above it is no effect of frequency (section 4).
SIGNIFICANT = 0.05


@dataclass(frozen=True, slots=True)
class Accuracy:
    """One accuracy, 0 to 1, of a relation or kind. probe: also `random`, the mean of both.

    spread: None with less than two seeds. n: decisions. mark: `*` one-to-many, `†` bidirectional.
    p_value: of the frequency test; None by kind. made_with: the options in words.
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
    """Return accuracies by relation or kind (`all` last), and `random` where both are there."""
    known = {run.info.id: run for run in runs}
    lines: list[Accuracy] = []
    for run in known.values():
        lines += _by_relation(run) if by == "relation" else _by_kind(run)
    return [*lines, *_random(lines, {name: run.info.folder for name, run in known.items()}, by)]


def unmarked(runs: Iterable[ProbeRun]) -> list[Accuracy]:
    """Return accuracies over the semantic relations without the paper's marks, as `UNMARKED`.

    Source: Rezaee and Camacho-Collados, section 4, which says all relations; but two of its three
    averages are those of the six unmarked semantic relations of its Table 2.
    """
    lines = []
    for run in runs:
        chosen = [
            one
            for one in _known(run)
            if one.kind in SEMANTIC and not (one.one_to_many or one.bidirectional)
        ]
        lines += [_mean_line(run, UNMARKED, chosen)] if chosen else []
    return [*lines, *_random(lines, {}, "kind")]


def frequency_summary(lines: Iterable[Accuracy]) -> tuple[int, int]:
    """Of how many relations the test was made, and in how many p is above 0.05."""
    values = [line.p_value for line in lines if line.p_value is not None]
    return len(values), sum(value > SIGNIFICANT for value in values)


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
    parts += ["first tails alone"] if options.tails == "first" else []
    if details.setting == "unsupervised" and options.pairing == "all":
        parts.append("instances of all pairs")
    parts += ["reverse of the right pair"] if options.reverse == "positive" else []
    if details.method == "model":
        parts.append(f"template {options.template}")
    if details.setting == "supervised":
        layer = "last layer" if options.layer == -1 else f"layer {options.layer}"
        where = [layer, f"{options.pooling} of pieces"] if details.method == "model" else []
        parts += [*where, f"{options.hidden} hidden units", f"{options.n_seeds} seeds"]
    elif details.method == "model":
        parts.append(f"{options.normalise} of log-probabilities")
    return ", ".join(parts)


def _known(run: ProbeRun) -> list[RelationResult]:
    """The relations that have an accuracy."""
    return [result for result in run.details.relations if result.accuracy is not None]


def _by_relation(run: ProbeRun) -> list[Accuracy]:
    lines = []
    for one in _known(run):
        more = {"mark": mark_of(one, run.details.probe), "p_value": one.frequency.p_value}
        lines.append(_line(run, one.name, one.kind, [one], one.accuracy or 0.0, one.seeds, **more))
    return lines


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
        spread=float(np.std(seeds, ddof=1)) if len(seeds) > 1 else None,
        n=sum(result.n for result in results),
        n_excluded=sum(result.n_excluded for result in results),
        made_with=describe(run.details),
        **more,
    )


def _by_kind(run: ProbeRun) -> list[Accuracy]:
    chosen = {
        kind: [one for one in _known(run) if kind in (ALL, one.kind)] for kind in (*KINDS, ALL)
    }
    return [_mean_line(run, kind, results) for kind, results in chosen.items() if results]


def _mean_line(run: ProbeRun, name: str, chosen: Sequence[RelationResult]) -> Accuracy:
    """The unweighted mean over some relations that have an accuracy."""
    n_seeds = min(len(result.seeds) for result in chosen)
    by_seed = [float(np.mean([result.seeds[seed] for result in chosen])) for seed in range(n_seeds)]
    accuracy = float(np.mean([result.accuracy for result in chosen]))
    return _line(run, name, name, chosen, accuracy, by_seed)


@lru_cache(maxsize=32)
def _both_tested(head: Path, tail: Path) -> dict[str, float | None]:
    """By relation the p-value of the test over the decisions of two runs, in their folders."""
    columns = ("relation", "object", "rank_raw", "seed")
    table = pa.concat_tables(
        read_columns(folder / FACTS_FILE).select(columns) for folder in (head, tail)
    )
    names = table["relation"].cast("string")
    return {
        name: frequency_test(table.filter(pc.equal(names, name))).p_value
        for name in names.unique().to_pylist()
    }


def _random(lines: Sequence[Accuracy], folders: Mapping[str, Path], by: By) -> list[Accuracy]:
    """`random` of each model, setting and name. folders: of the runs, to test both together."""

    def p_value(head: Accuracy, tail: Accuracy) -> float | None:
        if by == "kind":
            return None
        return _both_tested(folders[head.run], folders[tail.run])[head.name]

    found: dict[tuple[str, ...], dict[str, Accuracy]] = {}
    for line in lines:
        if line.probe.startswith("random-"):
            key = (line.model, line.dataset, line.setting, line.name, line.made_with)
            found.setdefault(key, {}).setdefault(line.probe, line)
    means = []
    for both in found.values():
        if (head := both.get(RANDOM[0])) and (tail := both.get(RANDOM[1])):
            spread = None  # else the standard deviation of the mean of two independent figures
            if head.spread is not None and tail.spread is not None:
                spread = float(np.hypot(head.spread, tail.spread)) / 2
            mean = replace(
                head,
                run=f"{head.run}, {tail.run}",
                probe="random",
                accuracy=(head.accuracy + tail.accuracy) / 2,
                spread=spread,
                n=head.n + tail.n,
                n_excluded=head.n_excluded + tail.n_excluded,
                p_value=p_value(head, tail),
            )
            means.append(mean)
    return means


def probes_in(lines: Iterable[Accuracy]) -> tuple[str, ...]:
    """The probes that the lines have, in the order in which they are shown."""
    order = ("random", *PROBES)
    present = {line.probe for line in lines}
    return tuple(probe for probe in order if probe in present)
