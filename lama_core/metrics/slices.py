"""Slices: what a run gets right on some kinds of facts, and what its wrong answers are.

    P@k            facts of the slice with rank at most k / facts of the slice that count
    right type     wrong first answers that are an object of the relation / wrong first answers
    another valid  wrong first answers that the data gives for this very subject / the same
    neither        the rest of them / the same
    chance         mean over the slice's facts of min(1, k / answers): P@k of a random order
    macro P@1      mean over the slice's golds, each of its relation, of (P@1 of their facts)

Over facts, whatever their relation: no mean over relations, since a slice may hold a few facts of
many. A slice is a filter of facts (see `answers`), so that what it counts can be looked at. A new
way of slicing is a row in `SLICINGS`; those by origin and domain follow from the data, the one by
the number of answers is of runs that rank each relation's own, the one by popularity is of data
that give it, and those by what was seen in training are of models whose training text is known.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from lama_core.metrics.cooccurrence import pair_labels
from lama_core.metrics.fact_answers import WRONG_KINDS, AnswerFilter, JoinedAnswers, wrong_kinds
from lama_core.metrics.intervals import LEVEL, difference_intervals, share_intervals
from lama_core.metrics.precision_at_k import group_shares
from lama_core.metrics.sentence_forms import FORMS_FILE, wording_labels
from lama_core.metrics.training_texts import unknown_texts
from lama_core.runs.info import OWN_WORDS

Ints = NDArray[np.int64]
NO_TYPE = "none"
ORIGIN = "origin"
DOMAIN = "domain"
PAIR_SEEN = "pair seen in training"
WORDING_SEEN = "wording seen in training"
ANSWERS = "number of answers"
POPULARITY = "subject popularity"
POPULARITY_HELP = "As the data give it; in PopQA, the page views of the subject in a month."
ANSWERS_HELP = "Answers that are ranked for the relation: the fewer, the likelier a right guess."
PAIR_HELP = (
    "Whether subject and object co-occur in a passage of the text that a model was trained on, in "
    "any words."
)
WORDING_HELP = (
    "Whether the query's wording has the form of sentences that the training text's sources write: "
    "the same words between subject and object, or the same whole sentence where these are only "
    "function words."
)


# Fields of `AnswerFilter` that another run answers otherwise.
OF_A_RUN = frozenset(("pieces_min", "answers_min"))


@dataclass(frozen=True, slots=True)
class Slicing:
    """A way of slicing facts. slices: name -> fields of `AnswerFilter`. help: for people."""

    name: str
    help: str
    slices: Mapping[str, Mapping[str, Any]]


def _ranges(field: str, *ends: tuple[int, int | None]) -> dict[str, dict[str, Any]]:
    """Slices by the range of a number; a range without an upper end is the last."""
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
            "Facts of the relation with this gold in the data.",
            _ranges("count", (1, 1), (2, 5), (6, 20), (21, None)),
        ),
        Slicing(
            "subject's words",
            "Words and punctuation signs of the subject.",
            _ranges("words", (1, 1), (2, 2), (3, 3), (4, None)),
        ),
        Slicing(
            "subject's pieces",
            "Pieces that the model's own tokenizer makes of the subject.",
            _ranges("pieces", (1, 1), (2, 3), (4, 6), (7, None)),
        ),
        Slicing(
            "gold in the subject",
            "Whether the lower-cased gold is part of the lower-cased subject.",
            {"yes": {"contained": True}, "no": {"contained": False}},
        ),
        Slicing(
            "type of relation",
            "As the data gives it.",
            {kind: {"types": (kind,)} for kind in ("1-1", "N-1", "N-M")}
            | {NO_TYPE: {"types": ("",)}},
        ),
    )
}


def slicings(joined: JoinedAnswers) -> dict[str, Slicing]:
    """The ways of slicing these facts: `SLICINGS`, and those that the runs and the data allow."""
    found = dict(SLICINGS)
    if any(run.run.info.candidates == OWN_WORDS for run in joined.runs):
        found[ANSWERS] = Slicing(
            ANSWERS, ANSWERS_HELP, _ranges("answers", (1, 10), (11, 50), (51, 200), (201, None))
        )
    if not np.isnan(joined.popularity).all():
        ends = ((0, 99), (100, 999), (1_000, 9_999), (10_000, 99_999), (100_000, None))
        by_views = _ranges("popularity", *ends)
        found[POPULARITY] = Slicing(POPULARITY, POPULARITY_HELP, by_views)
    domains = dict.fromkeys(name for names in joined.domains.values() for name in names)
    if domains:
        help_text = "What the relation is about, as the data says; one of several is in each."
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
        help_text = "Where the fact itself is from, as the data says: most facts first."
        found[ORIGIN] = Slicing(ORIGIN, help_text, slices)
    for name, help_text, field, known, labels in (
        (PAIR_SEEN, PAIR_HELP, "stated", joined.stated, pair_labels),
        (WORDING_SEEN, WORDING_HELP, "wording", joined.wording, wording_labels),
    ):
        if known is not None:
            by_text = {one: {field: (one,)} for one in labels(joined.readers)}
            found[name] = Slicing(name, help_text, by_text)
    return found


def unknown_training(models: Sequence[str]) -> str:
    """Say of which models it isn't known what was seen in training; empty where it is of all."""
    return unknown_texts(models, FORMS_FILE)


def slice_table(
    joined: JoinedAnswers,
    *,
    k: int = 1,
    relations: Sequence[str] = (),
    level: float = LEVEL,
) -> pd.DataFrame:
    """One row a slice and run: slices in the order of `slicings`, runs in the order of joining.

    Columns: number (of the run), run, model, by, slice, n, n_wrong (facts whose first answer is
    wrong), macro_p_at_1, chance (NaN where the run doesn't say how many words it ranked), p_at_k,
    low, high (its interval), right_type, another_valid, neither (shares of the wrong answers). A
    slice of which the run was asked no fact has no row. relations: only these; () is all.
    """
    ways = slicings(joined)
    golds = _golds(joined)
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
            asked = rows[run.at[rows] >= 0]
            if not len(asked):
                continue
            counted = asked[~np.isnan(run.rank[asked])]
            wrong = {str(kind): int(kinds[kind][counted].sum()) for kind in WRONG_KINDS}
            lines.append(
                {
                    "place": place,
                    "number": number,
                    "run": run.run.info.id,
                    "model": run.run.info.model,
                    "by": by,
                    "slice": name,
                    "n": len(counted),
                    "n_right": int((run.rank[counted] <= k).sum()),
                    "n_wrong": int((run.rank[counted] > 1).sum()),
                    "macro_p_at_1": _mean(group_shares(golds[counted], run.rank[counted] == 1)[1]),
                    "chance": _mean(np.minimum(1.0, k / run.n_answers[counted].astype(float))),
                    **wrong,
                }
            )
    if not lines:
        return pd.DataFrame()
    table = _shares(pd.DataFrame(lines), level).sort_values(["place", "number"], kind="stable")
    return table.drop(columns="place").reset_index(drop=True)


def slice_differences(
    joined: JoinedAnswers,
    *,
    k: int = 1,
    relations: Sequence[str] = (),
    level: float = LEVEL,
) -> pd.DataFrame:
    """P@k of the second run less that of the first, a row a slice, on the facts that both count.

    Columns: by, slice, n, a, b (P@k of each), difference, low, high (its interval, Tango's of
    paired shares), only_a, only_b (facts that only that run gets right).
    """
    first, second = joined.runs[:2]
    lines = []
    for by, slicing in slicings(joined).items():
        for name, fields in slicing.slices.items():
            chosen = AnswerFilter(counting="all", relations=tuple(relations), **fields)
            rows = joined.select(chosen)
            rows = rows[~np.isnan(first.rank[rows]) & ~np.isnan(second.rank[rows])]
            if not len(rows):
                continue
            a, b = first.rank[rows] <= k, second.rank[rows] <= k
            only_a, only_b = int((a & ~b).sum()), int((b & ~a).sum())
            counts = (np.array([n]) for n in (only_b, only_a, len(rows)))
            ends = difference_intervals(*counts, level=level)[0]
            line = {"by": by, "slice": name, "n": len(rows), "a": a.mean(), "b": b.mean()}
            line |= {"difference": (only_b - only_a) / len(rows), "low": ends.low}
            lines.append(line | {"high": ends.high, "only_a": only_a, "only_b": only_b})
    return pd.DataFrame(lines)


def _golds(joined: JoinedAnswers) -> Ints:
    """Equal numbers for an equal gold of the same relation, int64 [row]."""
    facts = joined.facts
    if not len(facts):
        return np.zeros(0, dtype=np.int64)
    width = len(facts["object"].cat.categories) + 1
    relations = facts["relation"].cat.codes.to_numpy().astype(np.int64)
    return relations * width + facts["object"].cat.codes.to_numpy()


def _mean(values: NDArray[np.float64]) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _shares(counts: pd.DataFrame, level: float) -> pd.DataFrame:
    """A run's table from its counts; NaN where nothing was counted."""
    n, n_right, n_wrong = (counts[name].to_numpy() for name in ("n", "n_right", "n_wrong"))
    ends = share_intervals(n_right, n, level=level)
    table = counts.drop(columns=["n_right", *WRONG_KINDS]).assign(
        p_at_k=n_right / np.where(n > 0, n, np.nan),
        low=ends.low,
        high=ends.high,
    )
    for kind in WRONG_KINDS:
        table[kind.replace(" ", "_")] = counts[kind] / np.where(n_wrong > 0, n_wrong, np.nan)
    return table
