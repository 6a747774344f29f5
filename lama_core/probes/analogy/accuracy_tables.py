"""Tables of probe accuracies, by relation and by kind of relation.

The accuracy of a kind is the unweighted mean over its relations; `all` is the mean over all
relations (the paper's Table 1). `random` is the mean of random-head and random-tail, for which the
paper prints one value. The spread is the standard deviation of an accuracy over the classifiers'
seeds (n - 1 in the denominator).

There is one frequency test per relation and probe. For `random` the test uses the decisions of
random-head and random-tail as one sample, because the paper has a single random probe.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lama_core.probes.analogy.instances import PROBES, Setting
from lama_core.probes.analogy.spec import ProbeDetails, ProbeRun, RelationResult, frequency_test
from lama_core.runs.facts_table import read_columns
from lama_core.runs.info import FACTS_FILE, RunInfo

AccuracyBy = Literal["relation", "kind"]
RELATION_KINDS = ("encyclopedic", "lexicographic", "derivational", "inflectional")
ALL = "all"
UNMARKED = "semantic, without marked"
# The probes that the paper combines as `random`, and the columns of a table.
RANDOM_PROBES = ("random-head", "random-tail")
SHOWN_PROBES = ("random", *(name for name in PROBES if name not in RANDOM_PROBES))
# A p-value above this level shows no effect of frequency (section 4).
SIGNIFICANT = 0.05


@dataclass(frozen=True, slots=True)
class ProbeAccuracy:
    """The accuracy of a relation or kind of relations.

    Attributes:
        probe: A probe, or `random` for the mean of random-head and random-tail.
        name: The relation or kind.
        accuracy: 0 to 1.
        spread: Standard deviation over seeds; None with fewer than two seeds.
        n: Number of decisions.
        mark: `*` for one-to-many, `†` for bidirectional relations.
        p_value: P-value of the frequency test; None for a kind.
        made_with: The run's options as text.
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


def probe_accuracies(runs: Iterable[ProbeRun], *, by: AccuracyBy) -> list[ProbeAccuracy]:
    """Return accuracies by relation or kind (`all` last).

    Adds `random` wherever there are results of random-head and random-tail.
    """
    by_id = {run.info.id: run for run in runs}
    lines: list[ProbeAccuracy] = []
    for run in by_id.values():
        lines += _by_relation(run) if by == "relation" else _by_kind(run)
    return [*lines, *_random_lines(lines, {name: run.info for name, run in by_id.items()}, by)]


def unmarked_accuracies(runs: Iterable[ProbeRun]) -> list[ProbeAccuracy]:
    """Return mean accuracies over the semantic relations that the paper doesn't mark with * or †.

    Source: Rezaee and Camacho-Collados, section 4. The paper says that its three averages are over
    all relations, but two of them match averages over Table 2's six unmarked semantic relations.
    """
    of_runs = [
        (
            run,
            [
                one
                for one in _with_accuracy(run)
                if one.kind in ("encyclopedic", "lexicographic")
                and not (one.one_to_many or one.bidirectional)
            ],
        )
        for run in runs
    ]
    lines = [_mean_line(run, UNMARKED, results) for run, results in of_runs if results]
    return [*lines, *_random_lines(lines, {}, "kind")]


def frequency_summary(lines: Iterable[ProbeAccuracy]) -> tuple[int, int]:
    """Return the number of frequency tests, and how many have p above 0.05."""
    values = [line.p_value for line in lines if line.p_value is not None]
    return len(values), sum(value > SIGNIFICANT for value in values)


def options_text(details: ProbeDetails) -> str:
    """Return in one line the options that a run's numbers depend on."""
    options = details.options
    parts = [] if options.limit is None else [f"{options.limit:,} instances per relation"]
    parts += [f"seed {options.seed}"] if options.seed else []
    parts += ["without negatives that are true"] if options.strict else []
    if details.method == "model":
        parts.append(f"template {options.template}")
    if details.setting == "supervised":
        if details.method == "model":
            parts.append("last layer" if options.layer == -1 else f"layer {options.layer}")
            parts.append(f"{options.pooling} of subword tokens")
        parts += [f"{options.hidden} hidden units", f"{options.n_seeds} seeds"]
    elif details.method == "model":
        parts.append(f"{options.normalise} of log-probabilities")
    return ", ".join(parts)


def _with_accuracy(run: ProbeRun) -> list[RelationResult]:
    return [result for result in run.details.relations if result.accuracy is not None]


def _by_relation(run: ProbeRun) -> list[ProbeAccuracy]:
    probe = PROBES[run.details.probe]
    return [
        _line(
            run,
            one.name,
            one.kind,
            [one],
            one.accuracy or 0.0,
            one.seeds,
            mark=probe.mark if probe.marked and getattr(one, probe.marked) else "",
            p_value=one.frequency.p_value,
        )
        for one in _with_accuracy(run)
    ]


def _line(
    run: ProbeRun,
    name: str,
    kind: str,
    results: Sequence[RelationResult],
    accuracy: float,
    seeds: Sequence[float],
    **more: Any,
) -> ProbeAccuracy:
    """Return a line of the table for some relations of a run."""
    return ProbeAccuracy(
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
        made_with=options_text(run.details),
        **more,
    )


def _by_kind(run: ProbeRun) -> list[ProbeAccuracy]:
    by_kind = {
        kind: [result for result in _with_accuracy(run) if kind in (ALL, result.kind)]
        for kind in (*RELATION_KINDS, ALL)
    }
    return [_mean_line(run, kind, results) for kind, results in by_kind.items() if results]


def _mean_line(run: ProbeRun, name: str, results: Sequence[RelationResult]) -> ProbeAccuracy:
    """Return the unweighted mean over relations that have an accuracy."""
    seeds = (one.seeds for one in results)
    by_seed = [float(np.mean(values)) for values in zip(*seeds, strict=False)]
    accuracy = float(np.mean([result.accuracy for result in results]))
    return _line(run, name, name, results, accuracy, by_seed)


@lru_cache(maxsize=32)
def _joint_p_values(head: RunInfo, tail: RunInfo) -> dict[str, float | None]:
    """Return relation -> p-value of one frequency test over the decisions of both runs."""
    columns = ("relation", "object", "rank_raw", "seed")
    table = pa.concat_tables(
        read_columns(info.path(FACTS_FILE)).select(columns) for info in (head, tail)
    )
    names = table["relation"].cast("string")
    return {
        name: frequency_test(table.filter(pc.equal(names, name))).p_value
        for name in names.unique().to_pylist()
    }


def _random_lines(
    lines: Sequence[ProbeAccuracy], infos: Mapping[str, RunInfo], by: AccuracyBy
) -> list[ProbeAccuracy]:
    """Return the `random` lines: means of random-head and random-tail with the same options.

    infos: run id -> run, to read the decisions for the frequency test.
    """
    by_options: dict[tuple[str, ...], dict[str, ProbeAccuracy]] = {}
    for line in lines:
        if line.probe in RANDOM_PROBES:
            key = (line.model, line.dataset, line.setting, line.name, line.made_with)
            by_options.setdefault(key, {}).setdefault(line.probe, line)
    means = []
    for both in by_options.values():
        if len(both) < len(RANDOM_PROBES):
            continue
        head, tail = (both[probe] for probe in RANDOM_PROBES)
        spread = p_value = None
        if head.spread is not None and tail.spread is not None:
            # Standard deviation of the mean of two independent values.
            spread = float(np.hypot(head.spread, tail.spread)) / 2
        if by == "relation":
            p_value = _joint_p_values(infos[head.run], infos[tail.run])[head.name]
        means.append(
            replace(
                head,
                run=f"{head.run}, {tail.run}",
                probe="random",
                accuracy=(head.accuracy + tail.accuracy) / 2,
                spread=spread,
                n=head.n + tail.n,
                n_excluded=head.n_excluded + tail.n_excluded,
                p_value=p_value,
            )
        )
    return means


def probes_in(lines: Iterable[ProbeAccuracy]) -> tuple[str, ...]:
    """Return the probes that the lines have, in display order."""
    present = {line.probe for line in lines}
    return tuple(probe for probe in ("random", *PROBES) if probe in present)
