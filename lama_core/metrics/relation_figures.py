"""Metrics of a relation, by name, for the tables of the command line and the pages.

    P@k      = |{facts: rank <= k}| / |facts|
    MRR      = mean of 1 / rank, with 0 for ranks beyond a chosen depth
    macro    = mean over objects of (P@1 over the facts with that object)
    chance   = min(1, k / answers): P@k of a random order of all answers, also in the filtered
               ranking, which removes other right answers

over the facts that count; rank 1 = best. A metric is NaN if it isn't defined for each of these
facts (see `known_ranks`). Source: Petroni et al. 2019, section 4.4; macro: Jiang et al. 2020,
section 5.1. To add a metric, add a function and a row in `METRICS`.

Departure: Reciprocal ranks beyond 10,000
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from lama_core.metrics.baselines import freq_ranks
from lama_core.metrics.intervals import Floats
from lama_core.metrics.known_ranks import hits
from lama_core.metrics.precision_at_k import group_shares, means
from lama_core.rounding import few, fixed, percent
from lama_core.runs.facts_table import RANKED
from lama_core.runs.info import RelationInfo, Run
from lama_core.scoring.queries import SQUAD
from lama_core.scoring.ranking import Ints, Ranking

# The column of `Run.facts` with the log-probability of the first answer under each ranking.
FIRST_LOG_PROB: dict[Ranking, str] = {
    "raw": "first_log_prob",
    "filtered": "first_filtered_log_prob",
}


@dataclass(frozen=True)
class Scored:
    """The rows of a run that count, as columns, for one ranking.

    Attributes:
        relations: The chosen relations.
        relation: Index into `relations`, int64 [row].
        ranks: Rank of the gold answer, int64 [row].
        known: What each row knows of its rank, int64 [row]; see `Run.known_to`.
        objects: Code of the object, int64 [row].
        subjects: Code of the subject, int64 [row].
        at: Row of `Run.facts`, int64 [row].
        n_answers: Number of words ranked for the relation, float64 [relation]; NaN if unknown.
        mrr_depth: Ranks beyond this count as 0 in MRR; None means unlimited.
        texts: For generated answers, float64 [row] for each name of `TEXT_METRICS`; else empty.
    """

    ranking: Ranking
    relations: tuple[RelationInfo, ...]
    relation: Ints
    ranks: Ints
    known: Ints
    objects: Ints
    subjects: Ints
    at: Ints
    n_answers: Floats
    mrr_depth: int | None = None
    texts: Mapping[str, Floats] = field(default_factory=dict)

    @cached_property
    def n(self) -> Ints:
        """Number of rows of each relation, int64 [relation]."""
        return np.bincount(self.relation, minlength=len(self.relations))

    @cached_property
    def exact(self) -> Floats:
        """Rank of the gold answer, float64 [row]; NaN in rows that don't know it."""
        return np.where(self.known < RANKED, np.nan, self.ranks)

    def precision(self, k: int) -> Floats:
        """Return P@k, float64 [relation]; NaN if it isn't defined."""
        return self.mean(hits(self.ranks, self.known, k))

    def mean(self, values: NDArray[np.generic]) -> Floats:
        """Return the mean of a value over each relation's rows, float64 [relation]; NaN if none."""
        return means(self.relation, values.astype(np.float64), len(self.relations))


def scored_rows(
    run: Run,
    ranking: Ranking,
    relations: Sequence[str] | None = None,
    *,
    mrr_depth: int | None = None,
) -> Scored:
    """Return the rows of a run that count, for these relations (all by default)."""
    every = run.derived.get(("scored rows", ranking))
    if every is None:
        known = run.info.relations
        number = {relation.name: at for at, relation in enumerate(known)}
        names = run.words_of("relation")
        lookup = np.array([*(number.get(name, -1) for name in names), -1], dtype=np.int64)
        relation = lookup[run.codes("relation")]
        ranks = run.column(f"rank_{ranking}").to_numpy()
        at = np.flatnonzero((relation >= 0) & ~np.isnan(ranks))
        subjects = run.codes("subject")[at]
        # SQuAD questions have no subject: give each question its own code.
        from_squad = np.array([one.source == SQUAD for one in known], dtype=bool)
        no_subject = from_squad[relation[at]] if len(known) else np.zeros(0, dtype=bool)
        subjects[no_subject] = len(ranks) + at[no_subject]
        texts = TEXT_METRICS if run.info.generates else ()
        every = run.derived["scored rows", ranking] = Scored(
            ranking,
            known,
            relation[at],
            ranks[at].astype(np.int64),
            run.known_to[at],
            run.codes("object")[at],
            subjects,
            at,
            np.array([run.n_words.get(one.name, np.nan) for one in known], dtype=np.float64),
            texts={name: run.column(name).to_numpy(dtype=np.float64)[at] for name in texts},
        )
    if relations is None:
        return every if mrr_depth is None else replace(every, mrr_depth=mrr_depth)
    wanted = set(relations)
    chosen = [at for at, one in enumerate(every.relations) if one.name in wanted]
    numbers = np.full(len(every.relations), -1)
    numbers[chosen] = np.arange(len(chosen))
    rows = np.flatnonzero(numbers[every.relation] >= 0)
    return Scored(
        ranking,
        tuple(every.relations[at] for at in chosen),
        numbers[every.relation[rows]],
        every.ranks[rows],
        every.known[rows],
        every.objects[rows],
        every.subjects[rows],
        every.at[rows],
        every.n_answers[chosen],
        mrr_depth,
        {name: values[rows] for name, values in every.texts.items()},
    )


def metrics_undefined(rows: Scored) -> str:
    """Return in which relations which metrics aren't defined, a clause; "" if all are."""
    depths = np.full(len(rows.relations), RANKED)
    np.minimum.at(depths, rows.relation, rows.known)
    lacking = [one for one, depth in zip(rows.relations, depths, strict=True) if depth < RANKED]
    if not lacking:
        return ""
    names = few([one.name for one in lacking])
    where = f" of {names}" if len(lacking) < (rows.n > 0).sum() else ""
    return (
        f"not every right answer{where} has a rank, so P@k is defined up to k = {depths.min()}"
        f"{' there' if where else ''}, and the mean rank isn't"
    )


def macro_precision(rows: Scored) -> Floats:
    """Mean over the relation's objects of P@1 of the object's facts, float64 [relation]."""
    width = max(int(rows.objects.max(initial=-1)) + 1, 1)
    keys, shares = group_shares(rows.relation * width + rows.objects, rows.ranks == 1)
    return means(keys // width, shares, len(rows.relations))


def reciprocal_rank(rows: Scored) -> Floats:
    """Mean of 1 / rank, float64 [relation]; ranks beyond `mrr_depth` count as 0.

    NaN if a rank up to `mrr_depth` isn't known.
    """
    depth = RANKED if rows.mrr_depth is None else rows.mrr_depth
    values = np.where(rows.ranks > depth, 0.0, 1.0 / rows.ranks)
    return rows.mean(np.where(rows.known < depth, np.nan, values))


def median_rank(rows: Scored) -> Floats:
    """Median rank, float64 [relation]; the mean of the two middle ranks for an even number."""
    medians = pd.Series(rows.ranks).groupby(rows.relation).median()
    values = medians.reindex(range(len(rows.relations))).to_numpy(dtype=np.float64)
    return np.where(np.isnan(rows.mean(rows.exact)), np.nan, values)


def chance_precision(rows: Scored, k: int = 1) -> Floats:
    """P@k of a random order of the answers, float64 [relation]: min(1, k / answers)."""
    return np.minimum(1.0, k / rows.n_answers)


def freq_precision(rows: Scored) -> Floats:
    """P@1 of the Freq baseline on the same rows, float64 [relation]."""
    subjects = None if rows.ranking == "raw" else rows.subjects
    return rows.mean(freq_ranks(rows.relation, rows.objects, subjects) == 1)


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric: how it is computed and displayed.

    Attributes:
        name: Column in tables.
        label: Displayed name.
        formula: Formula in words.
        meaning: Explanation for users.
        higher_is_better: Whether higher values are better.
        compute: Returns the values, float64 [relation].
        form: Formats a value.
        is_share: Whether values are between 0 and 1 and shown in percent.
        in_json: Whether `results --json` includes the metric.
        unit: Unit of displayed values.
    """

    name: str
    label: str
    formula: str
    meaning: str
    higher_is_better: bool
    compute: Callable[[Scored], Floats]
    form: Callable[[float], str] = percent
    is_share: bool = True
    in_json: bool = True
    unit: str = "% of facts"

    def shown(self, value: float) -> str:
        """Return a value as text; "" for NaN."""
        return "" if np.isnan(value) else self.form(value)


METRICS: dict[str, Metric] = {
    one.name: one
    for one in (
        Metric(
            "p_at_1",
            "P@1",
            "facts with rank 1 / facts",
            "How often the right word is the model's first answer.",
            True,
            lambda rows: rows.precision(1),
        ),
        Metric(
            "p_at_10",
            "P@10",
            "facts with rank at most 10 / facts",
            "How often the right word is among the ten best.",
            True,
            lambda rows: rows.precision(10),
        ),
        Metric(
            "mrr",
            "MRR",
            "mean of 1 / rank",
            "Mean reciprocal rank: 1 when the right word is always first.",
            True,
            reciprocal_rank,
            partial(fixed, digits=3),
            is_share=False,
            unit="0 to 1",
        ),
        Metric(
            "macro_p_at_1",
            "macro P@1",
            "mean over objects of (P@1 of the facts with that object)",
            "Each answer word has the same weight, so a model that always gives the most frequent "
            "one scores low.",
            True,
            macro_precision,
            unit="%, mean over objects",
        ),
        Metric(
            "mean_rank",
            "mean rank",
            "mean of the ranks",
            "Average rank of the right word among the candidates; a few very bad ranks change it a "
            "lot.",
            False,
            lambda rows: rows.mean(rows.exact),
            partial(fixed, digits=0),
            is_share=False,
            unit="1 = best",
        ),
        Metric(
            "median_rank",
            "median rank",
            "median of the ranks",
            "For half of the facts, the right word has this rank or a better one.",
            False,
            median_rank,
            partial(fixed, digits=0),
            is_share=False,
            unit="1 = best",
            in_json=False,
        ),
        Metric(
            "freq",
            "Freq",
            "P@1 of ranking words by how often they are objects of the relation",
            "Baseline that knows only the relation, not the subject.",
            True,
            freq_precision,
            in_json=False,
        ),
    )
}


def _of_texts(name: str, label: str, formula: str, meaning: str, higher: bool = True) -> Metric:
    """Return a metric of generated answers: the mean of the column `name` in `Scored.texts`."""
    return Metric(name, label, formula, meaning, higher, lambda rows: rows.mean(rows.texts[name]))


# Metrics of generated answers; their gold answer has rank 1 if the text is right, else `UNRANKED`.
TEXT_METRICS: dict[str, Metric] = {
    one.name: one
    for one in (
        _of_texts(
            "exact_match",
            "exact match",
            "texts that equal a right answer, normalised / facts",
            "Case, punctuation, articles and extra spaces are ignored (Rajpurkar et al. 2016).",
        ),
        _of_texts(
            "contains",
            "contains",
            "texts that contain a right answer / facts",
            "How often a right answer is part of the text, also of a word or of the repeated "
            "question (Mallen et al. 2023).",
        ),
        _of_texts(
            "token_f1",
            "token F1",
            "mean of 2 x common words / (words of the text + words of the answer)",
            "Overlap of the text's words with those of the right answer (Rajpurkar et al. 2016).",
        ),
        _of_texts(
            "no_answer",
            "no answer",
            "empty texts and refusals / facts",
            "How often the model gave no answer.",
            False,
        ),
    )
}


def figures_text() -> str:
    """Return the glossary section on the metrics, in Markdown."""
    parts = [
        f"### {one.label[0].upper()}{one.label[1:]}\n\n{one.meaning}\n\n"
        f"`{one.label} = {one.formula}`"
        for one in (*METRICS.values(), *TEXT_METRICS.values())
    ]
    return "\n\n".join(["## Figures of runs", *parts]) + "\n"
