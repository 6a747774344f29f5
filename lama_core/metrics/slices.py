"""Slices of the facts: P@k and kinds of wrong answers on groups of facts.

    P@k            facts of the slice with rank at most k / facts of the slice that count
    right type     wrong first answers that are objects of the relation / wrong first answers
    another valid  wrong first answers that are valid for the same subject / wrong first answers
    neither        other wrong first answers / wrong first answers
    chance         mean over the slice's facts of min(1, k / answers): P@k of a random order
    macro P@1      mean over the slice's pairs of relation and gold answer of (P@1 of their facts)

All are over facts, not means over relations, because a slice can contain few facts of many
relations. A slice is an `AnswerFilter` (see `fact_answers`), so pages can list its facts. To add a
way of slicing, add a row to `SLICINGS`. Some ways need certain data or runs: origin, domain and
popularity need data that contain them, number of answers needs runs that rank only the objects of
the fact's relation, and pair or wording seen in training needs models whose training text is known.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from lama_core.errors import UserError
from lama_core.metrics.fact_answers import WRONG_KINDS, AnswerFilter, JoinedAnswers, wrong_kinds
from lama_core.metrics.intervals import difference_intervals, share_intervals
from lama_core.metrics.known_ranks import why_undefined
from lama_core.metrics.precision_at_k import means
from lama_core.runs.info import OWN_WORDS
from lama_core.scoring.ranking import Ints
from lama_core.types import RELATION_TYPES

NO_TYPE = "none"
ORIGIN = "origin"
TYPE = "type of relation"
DOMAIN = "domain"
PAIR_SEEN = "pair seen in training"
WORDING_SEEN = "wording seen in training"
ANSWERS = "number of answers"
POPULARITY = "subject popularity"
POPULARITY_HELP = "As given by the data; in PopQA, monthly page views of the subject's article."
ANSWERS_HELP = "Number of answers ranked for the relation; with few answers a guess is often right."
PAIR_HELP = (
    "Whether subject and object co-occur in a passage of a model's training text, whatever the "
    "wording."
)
WORDING_HELP = (
    "Whether the training text contains sentences with the query's wording: the same words between "
    "subject and object, or, if these are only function words, the same whole sentence."
)

# Fields of `AnswerFilter` whose result depends on the run.
OF_A_RUN = frozenset(("pieces_min", "answers_min"))


@dataclass(frozen=True, slots=True)
class Slicing:
    """A way of slicing facts. slices: name -> fields of `AnswerFilter`. help: help text."""

    name: str
    help: str
    slices: Mapping[str, Mapping[str, Any]]


def _ranges(field: str, *ends: tuple[int, int | None]) -> dict[str, dict[str, Any]]:
    """Return slices by ranges (low, high) of a number; high None means unlimited."""
    return {
        (f"{low:,}" if low == high else f"{low:,} to {high:,}" if high else f"{low:,} or more"): {
            f"{field}_min": low,
            f"{field}_max": high,
        }
        for low, high in ends
    }


SLICINGS: dict[str, Slicing] = {
    one.name: one
    for one in (
        Slicing("all", "Every fact that counts.", {"all facts": {}}),
        Slicing(
            "gold's frequency",
            "Number of facts in the relation that have this right answer.",
            _ranges("count", (1, 1), (2, 5), (6, 20), (21, None)),
        ),
        Slicing(
            "subject's words",
            "Number of words and punctuation marks in the subject.",
            _ranges("words", (1, 1), (2, 2), (3, 3), (4, None)),
        ),
        Slicing(
            "subject's pieces",
            "Number of the subject's subword tokens by the model's tokenizer.",
            _ranges("pieces", (1, 1), (2, 3), (4, 6), (7, None)),
        ),
        Slicing(
            "gold in the subject",
            "Whether the subject contains the right answer, ignoring case.",
            {"yes": {"contained": True}, "no": {"contained": False}},
        ),
        Slicing(
            TYPE,
            "Type of the relation in the data.",
            {kind: {"types": (kind,)} for kind in RELATION_TYPES} | {NO_TYPE: {"types": ("",)}},
        ),
    )
}


def slicings(joined: JoinedAnswers) -> dict[str, Slicing]:
    """Return the ways of slicing these facts: `SLICINGS`, and others if the runs and data allow."""
    found = dict(SLICINGS)
    if any(run.run.info.candidates == OWN_WORDS for run in joined.runs):
        found[ANSWERS] = Slicing(
            ANSWERS, ANSWERS_HELP, _ranges("answers", (1, 10), (11, 50), (51, 200), (201, None))
        )
    if not np.isnan(joined.popularity).all():
        ends = ((0, 99), (100, 999), (1_000, 9_999), (10_000, 99_999), (100_000, None))
        found[POPULARITY] = Slicing(POPULARITY, POPULARITY_HELP, _ranges("popularity", *ends))
    domains = dict.fromkeys(name for names in joined.domains.values() for name in names)
    if domains:
        help_text = "Topic of the relation in the data; a relation can have several."
        by_domain: dict[str, dict[str, Any]] = {name: {"domains": (name,)} for name in domains}
        if not all(joined.domains.values()):
            by_domain[NO_TYPE] = {"domains": ("",)}
        found[DOMAIN] = Slicing(DOMAIN, help_text, by_domain)
    origin = joined.facts["origin"]
    names = [str(name) for name, n in origin.value_counts().items() if n]
    if names:
        slices: dict[str, dict[str, Any]] = {name: {"origins": (name,)} for name in names}
        if origin.isna().any():
            slices[NO_TYPE] = {"origins": ("",)}
        help_text = "Source of the fact in the data; the source with the most facts first."
        found[ORIGIN] = Slicing(ORIGIN, help_text, slices)
    for name, help_text, field, known in (
        (PAIR_SEEN, PAIR_HELP, "stated", joined.stated),
        (WORDING_SEEN, WORDING_HELP, "wording", joined.wording),
    ):
        if known is not None:
            found[name] = Slicing(
                name, help_text, {one: {field: (one,)} for one in known.categories.tolist()}
            )
    return found


def slice_table(
    joined: JoinedAnswers,
    *,
    k: int = 1,
    relations: Sequence[str] = (),
) -> pd.DataFrame:
    """Return one row per slice and run: slices as in `slicings`, runs in the order of joining.

    Args:
        joined: The runs' answers.
        k: A fact is right if its rank is at most k.
        relations: Names of the relations to include; () is all.

    Returns:
        Columns: number (index of the run), run, model, by, slice, n, n_wrong (facts with a wrong
        first answer), macro_p_at_1, chance (NaN if the number of ranked words is unknown), p_at_k,
        low, high (interval of p_at_k), right_type, another_valid, neither (shares of the wrong
        answers). NaN where P@k isn't defined, and if a wrong answer isn't known.
        Slices without facts of the run have no row.
    """
    ways = slicings(joined)
    golds = _golds(joined)
    n_golds = int(golds.max(initial=-1)) + 1
    places = [(by, name) for by, slicing in ways.items() for name in slicing.slices]
    shared: dict[tuple[str, str], Ints] = {}
    lines = []
    for number, run in enumerate(joined.runs):
        kinds = wrong_kinds(run)
        for place, (by, name) in enumerate(places):
            fields = ways[by].slices[name]
            chosen = AnswerFilter(of=number, counting="all", relations=tuple(relations), **fields)
            if (by, name) not in shared or not OF_A_RUN.isdisjoint(fields):
                shared[by, name] = joined.select(chosen)
            rows = shared[by, name]
            in_run = rows[run.at[rows] >= 0]
            if not len(in_run):
                continue
            counted = in_run[~np.isnan(run.rank[in_run])]
            are_known = not run.unknown[counted].any()
            wrong = {
                str(kind): kinds[kind][counted].sum() if are_known else np.nan
                for kind in WRONG_KINDS
            }
            of_golds = means(golds[counted], run.rank[counted] == 1, n_golds)
            lines.append(
                {
                    "place": place,
                    "number": number,
                    "run": run.run.info.id,
                    "model": run.run.info.model,
                    "by": by,
                    "slice": name,
                    "n": len(counted),
                    "n_right": run.hits(k)[counted].sum(),
                    "n_wrong": int((run.rank[counted] > 1).sum()),
                    "macro_p_at_1": _mean(of_golds[~np.isnan(of_golds)]),
                    "chance": _mean(np.minimum(1.0, k / run.n_answers[counted].astype(float))),
                    **wrong,
                }
            )
    if not lines:
        return pd.DataFrame()
    table = pd.DataFrame(lines).sort_values(["place", "number"], kind="stable", ignore_index=True)
    n, n_right, n_wrong = (table[name].to_numpy() for name in ("n", "n_right", "n_wrong"))
    ends = share_intervals(n_right, n)
    p_at_k = n_right / np.where(n > 0, n, np.nan)
    kinds_of_wrong = {
        kind.replace(" ", "_"): table[kind] / np.where(n_wrong > 0, n_wrong, np.nan)
        for kind in WRONG_KINDS
    }
    table = table.assign(p_at_k=p_at_k, low=ends.low, high=ends.high)
    return table.drop(columns=["place", "n_right", *WRONG_KINDS]).assign(**kinds_of_wrong)


def slice_differences(
    joined: JoinedAnswers,
    *,
    k: int = 1,
    relations: Sequence[str] = (),
) -> pd.DataFrame:
    """Return P@k of the second run minus the first: one row per slice, on facts that both count.

    Columns: by, slice, n, a, b (P@k of each run), difference, low, high (Tango's interval of the
    difference), only_a, only_b (facts that only this run gets right).

    Raises:
        UserError: If P@k isn't defined for both runs on any slice.
    """
    first, second = joined.runs[:2]
    lines = []
    for by, slicing in slicings(joined).items():
        for name, fields in slicing.slices.items():
            rows = joined.select(AnswerFilter(counting="all", relations=tuple(relations), **fields))
            rows = rows[~np.isnan(first.rank[rows]) & ~np.isnan(second.rank[rows])]
            right = [run.hits(k)[rows] for run in (first, second)]
            if not len(rows) or np.isnan(right).any():
                continue
            a, b = (one == 1 for one in right)
            only_a, only_b = int((a & ~b).sum()), int((b & ~a).sum())
            ends = difference_intervals(*(np.array([n]) for n in (only_b, only_a, len(rows))))[0]
            line = {"by": by, "slice": name, "n": len(rows), "a": a.mean(), "b": b.mean()}
            line |= {"difference": (only_b - only_a) / len(rows), "low": ends.low}
            lines.append(line | {"high": ends.high, "only_a": only_a, "only_b": only_b})
    if not lines:
        raise UserError(why_undefined((first.run, second.run), k))
    return pd.DataFrame(lines)


def _golds(joined: JoinedAnswers) -> Ints:
    """Return a code for each row's pair of relation and gold answer, int64 [row]."""
    facts = joined.facts
    if not len(facts):
        return np.zeros(0, dtype=np.int64)
    width = len(facts["object"].cat.categories) + 1
    relations = facts["relation"].cat.codes.to_numpy().astype(np.int64)
    pairs = relations * width + facts["object"].cat.codes.to_numpy()
    return np.unique(pairs, return_inverse=True)[1]


def _mean(values: NDArray[np.float64]) -> float:
    return float(values.mean()) if len(values) else float("nan")
