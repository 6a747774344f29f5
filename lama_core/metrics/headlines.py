"""Headlines: sentences that name the best model, generated from the scores.

A run's score is the unweighted mean over its relations (Petroni et al. 2019, section 4.4) from all
sources; its interval is that of `mean_share_intervals`. P@k over facts follows in brackets. Runs
whose rounded scores are equal are called level. Overlapping intervals don't show that two models
are equally good: `comparison` tests the difference on the facts that both count, and
`paired_headline` reports the result.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from lama_core.metrics.comparison import Comparison
from lama_core.metrics.relation_figures import METRICS, Metric
from lama_core.metrics.score_tables import means_of
from lama_core.rounding import percent

# Why the scores of chosen facts aren't comparable.
CHOSEN = "the facts were chosen, perhaps by a model's answers, so this doesn't compare models"
MOST_NAMED = 3  # a headline names up to this many relations, and gives the number if there are more


@dataclass(frozen=True, slots=True)
class Standing:
    """A run's score.

    title: displayed name of the run. value: NaN if no fact counts. low, high: 95 % interval, or
    NaN. n: facts that count. n_relations: relations with such facts. over_facts: P@k over facts,
    NaN for other metrics.
    """

    title: str
    value: float
    low: float
    high: float
    n: int
    n_relations: int
    over_facts: float = float("nan")


@dataclass(frozen=True, slots=True)
class Headline:
    """A headline.

    text: the best model and its score. counted: explanation of the score: definition, mean, number
    of facts, interval. order: the titles of the runs that have a score, best first.
    """

    text: str
    counted: str
    order: tuple[str, ...]


def overall(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the mean over all relations for each run, with the columns of a score table.

    The column `over_facts` has P@k over facts.

    scores: `score_table` by relation, with a column `name` that identifies the run.
    """
    lines = []
    for name, part in scores.groupby("name", sort=False):
        known, columns = part[part["n"] > 0], [*METRICS, "p_at_k", "chance"]
        counts = {"n": int(part["n"].sum()), "n_excluded": int(part["n_excluded"].sum())}
        over_facts = float("nan")
        if len(known):
            n = known["n"].to_numpy()
            over_facts = float(np.rint(known["p_at_k"].to_numpy(float) * n).sum() / n.sum())
        means = means_of(known, columns) | {"over_facts": over_facts}
        lines.append({"name": name, "n_relations": len(known)} | counts | means)
    return pd.DataFrame(lines)


def standings(table: pd.DataFrame, column: str) -> list[Standing]:
    """Return the runs' scores in one column of `overall`; only `p_at_k` has intervals."""
    nan = float("nan")
    return [
        Standing(
            title=str(row["name"]),
            value=float(row[column]),
            low=float(row["low"]) if column == "p_at_k" else nan,
            high=float(row["high"]) if column == "p_at_k" else nan,
            n=int(row["n"]),
            n_relations=int(row["n_relations"]),
            over_facts=float(row["over_facts"]) if column == "p_at_k" else nan,
        )
        for row in table.to_dict("records")
    ]


def headline(
    runs: Sequence[Standing],
    metric: Metric,
    *,
    k: int | None = None,
    relations: Sequence[str] = (),
    source: str = "",
    counts: str = "facts",
    differ: str = "",
) -> Headline:
    """Return a headline that names the best run.

    Args:
        runs: The runs' scores, in any order.
        metric: The metric of the scores.
        k: If given, the scores are P@k for this k.
        relations: Labels of the chosen relations; () is all.
        source: Source of all relations, such as `T-REx`; "" for several sources.
        counts: What n counts: `facts` or `queries`.
        differ: Why the scores aren't directly comparable, as a clause; "" if they are.
    """
    given = [one for one in runs if not np.isnan(one.value)]
    known = sorted(given, key=lambda one: one.value, reverse=metric.higher_is_better)
    order = tuple(one.title for one in known)
    if not known:
        return Headline(f"None of these {counts} can be scored for these models", "", order)
    first = known[0]
    level = [one for one in known if metric.shown(one.value) == metric.shown(first.value)]
    on = ""
    if relations:
        few = len(relations) <= MOST_NAMED
        on = f" on {_joined(relations)}" if few else f" on {len(relations)} chosen relations"
    if len(known) == 1:
        who, then = f"{first.title}{on}", ""
    elif len(level) > 1:
        who, then = f"{_joined([one.title for one in level])} are level{on}", ""
    elif differ:
        who, then = f"{first.title} has the best figure{on}", f"; {differ}"
    else:
        rivals = [one.title for one in known[1:] if one.low <= first.high and first.low <= one.high]
        then = f"; its interval overlaps those of {_joined(rivals)}" if rivals else ""
        if len(rivals) == 1:
            then = f"; the intervals of {_joined([first.title, *rivals])} overlap"
        if np.isnan([(one.low, one.high) for one in known]).any():
            then = ""
        clear = not then and all(one.low == one.low for one in known)  # NaN: without intervals
        who = f"{first.title} is {'clearly ' * clear}ahead{on}"
    said = _figure(level, metric, k, counts, source)
    return Headline(f"{who}: {said}{then}", _counted(given, metric, k, counts), order)


def is_level(difference: float) -> bool:
    """Return whether a difference of shares is 0.0 percentage points when it is shown."""
    return percent(abs(difference)) == percent(0)


def paired_headline(found: Comparison, titles: tuple[str, str], *, k: int = 1) -> str:
    """Return which of two runs is better on the facts that both count, and by how much.

    The difference is the mean over relations; P@k over facts follows in brackets. Limits the result
    to these relations if the sign of the mean, with relations as a sample, is not clear.

    Args:
        found: The comparison of the runs.
        titles: Displayed names of A and B.
        k: The k of the comparison.
    """
    whole, mean = found.over_facts, found.over_relations
    first_k = f"{found.units} have the right answer among the first {k}"
    right = "first answers are right" if k == 1 else first_k
    of, over = f"of {whole.n:,} {right}", ""
    if mean.n > 1:
        of = f"of {right} on average over {mean.n} relations"
        facts = [whole.a, whole.b] if mean.difference < 0 else [whole.b, whole.a]
        each = " against ".join(f"{percent(one)} %" for one in facts)
        over = f" (over {whole.n:,} {found.units}: {each})"
    if is_level(mean.difference):
        return f"{_joined(titles)} are level: {percent(mean.a)} % {of}{over}"
    if found.run_a.info.only:
        over += f"; {CHOSEN}"
    sign = 1 if mean.difference > 0 else -1
    first, second = titles[::-sign]
    best, other = (mean.a, mean.b)[::-sign]
    points = percent(sign * mean.difference)
    low, high = sorted((sign * mean.interval.low, sign * mean.interval.high))
    said = (
        f"{first} is ahead of {second} by {points} points ({percent(low)} to {percent(high)}): "
        f"{percent(best)} % against {percent(other)} % {of}{over}"
    )
    if mean.interval.includes_zero:
        return f"{said}; the interval includes 0, so the difference is not clear"
    ends = (sign * mean.sample_interval.low, sign * mean.sample_interval.high)
    return said if min(ends) > 0 or mean.p != mean.p else f"On these relations {said}"


def _figure(
    level: Sequence[Standing], metric: Metric, k: int | None, counts: str, source: str
) -> str:
    """Return the score of runs that are level, with their intervals and what was counted."""
    one = level[0]
    ends = [f"{percent(run.low)} to {percent(run.high)}" for run in level if run.low == run.low]
    value = metric.shown(one.value) + " %" * metric.is_share
    value += f" ({'; '.join(ends)})" if ends else ""
    alone = one.n_relations == 1
    n = f"{one.n:,} " if alone else ""
    over = f" on average over these {one.n_relations} {source}".rstrip() + " relations"
    if k is None:
        over += f" ({one.n:,} {counts})"
        return f"{metric.label} {value}" + (f" over {n}{counts}" if alone else over)
    first_k = f"{counts} have the right answer among the first {k}"
    said = f"{value} of {n}{'first answers are right' if k == 1 else first_k}"
    each = [f"{percent(run.over_facts)} %" for run in level if run.over_facts == run.over_facts]
    facts = (
        f" (over {counts}: {' and '.join(each)} of {level[0].n:,})"
        if len(each) == len(level)
        else ""
    )
    return said if alone else said + over + facts


def _counted(known: Sequence[Standing], metric: Metric, k: int | None, counts: str) -> str:
    """Return an explanation of the scores: definition, mean, number of facts, interval."""
    first = known[0]
    place = "first" if k == 1 else f"among the first {k}"
    said = f"P@{k}: the share of {counts} whose right answer is ranked {place}"
    if k is None:
        said = f"{metric.label}: {metric.meaning.rstrip('.')}"
    if any(one.n_relations > 1 for one in known):
        n_relations = sorted({one.n_relations for one in known})
        n = " to ".join(map(str, dict.fromkeys((n_relations[0], n_relations[-1]))))
        said += f"; the unweighted mean over {n} relations"
    each = ", ".join(f"{one.n:,} ({one.title})" for one in known)
    same = len({one.n for one in known}) == 1
    said += f", {first.n:,} {counts} in all." if same else f"; each model's own {counts}: {each}."
    return said + " In brackets: the 95 % interval." * (first.low == first.low)


def _joined(words: Sequence[str]) -> str:
    """`A`, `A and B`, `A, B and C`."""
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
