"""Whether a model notices a "not": each query beside its negation, over all candidates.

For every fact with both texts: the first prediction of each, and Spearman's correlation of the two
distributions over the candidates. A model that hears the negation has a low overlap.
Source: Kassner and Schütze 2020, section 4 and Table 2. How far P@1 drops when a misleading word
stands before the query is the comparison of two runs, of the prompts `sentences` and `misprimed`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from lama_core.asking.preparation import Prepared, prepare
from lama_core.asking.prompts import make_prompt_set
from lama_core.asking.questions import gather_knowledge, make_questions
from lama_core.asking.ranking import best_candidates
from lama_core.candidates.lists import named_candidates
from lama_core.datasets import Dataset
from lama_core.errors import UserError
from lama_core.metrics.consistency import spearman_rows
from lama_core.models.base import BlankFiller, Context, Encoded

PAIRS_PER_BATCH = 16


@dataclass(frozen=True, slots=True)
class Negated:
    """One relation, or the unweighted mean over relations (named ""). Source: the module's.

    overlap: share of facts with the same first prediction. spearman: mean over facts.
    """

    relation: str
    n: int
    overlap: float
    spearman: float


@dataclass(frozen=True)
class NegationReport:
    """Every fact, and the figures by relation.

    facts: relation, fact_id, query, negated, first, first_negated, same_first, spearman.
    """

    facts: pd.DataFrame
    relations: tuple[Negated, ...]
    total: Negated


def compare_negated(
    model: BlankFiller,
    dataset: Dataset,
    *,
    relations: Sequence[str] | None = None,
    candidates: Literal["common", "full", "lama"] = "common",
    context: Context | None = None,
    limit: int | None = None,
) -> NegationReport:
    """Each fact asked as it is and negated, and how far the two answers agree.

    relations: by default all. limit: the first so many facts of each.
    Raises UserError if no fact has both texts.
    """
    names = tuple(relations or (relation.name for relation in dataset.relations))
    chosen = [dataset.relation(name) for name in names]
    knowledge = gather_knowledge(dataset, names)
    words = named_candidates(candidates, [model.vocabulary])
    seen: Context = "both" if model.kind == "masked" else context or "left"
    asked = [
        _by_fact(
            prepare(
                make_questions(dataset, names, make_prompt_set(kind, chosen), limit),
                knowledge,
                words,
                model,
                seen,
            )
        )
        for kind in ("manual", "negated")
    ]
    both = [fact for fact in asked[0] if fact in asked[1]]
    if not both:
        raise UserError(f"No fact of {dataset.name} has a negated text: choose other relations.")
    both.sort(key=lambda fact: -len(asked[0][fact].encoded.token_ids))
    pairs = [(asked[0][fact], asked[1][fact]) for fact in both]
    rows: list[dict[str, object]] = []
    for start in range(0, len(pairs), PAIRS_PER_BATCH):
        rows += _compare(model, pairs[start : start + PAIRS_PER_BATCH])
    order = {name: at for at, name in enumerate(names)}
    facts = pd.DataFrame(rows).sort_values(
        "relation", key=lambda column: column.map(order), kind="stable", ignore_index=True
    )
    figures = tuple(
        Negated(
            str(name),
            len(group),
            float(group["same_first"].mean()),
            float(group["spearman"].mean()),
        )
        for name, group in facts.groupby("relation", sort=False)
    )
    total = Negated(
        "",
        len(facts),
        sum(figure.overlap for figure in figures) / len(figures),
        sum(figure.spearman for figure in figures) / len(figures),
    )
    return NegationReport(facts, figures, total)


@dataclass(frozen=True, slots=True)
class _Asked:
    """One text as it is asked. segment: whose columns it is scored on."""

    relation: str
    fact_id: str
    text: str
    encoded: Encoded
    prepared: Prepared
    segment: int


def _by_fact(prepared: Prepared) -> dict[str, _Asked]:
    asked = {}
    for number, segment in enumerate(prepared.segments):
        for row, query, encoded in zip(
            segment.rows.tolist(), segment.queries, segment.encoded, strict=True
        ):
            question = prepared.questions[row]
            asked[question.fact.id] = _Asked(
                question.relation.name, question.fact.id, query.text(), encoded, prepared, number
            )
    return asked


def _compare(
    model: BlankFiller, pairs: Sequence[tuple[_Asked, _Asked]]
) -> Iterator[dict[str, object]]:
    first = pairs[0][0]
    columns = first.prepared.segments[first.segment].columns
    encoded = [plain.encoded for plain, _ in pairs] + [negated.encoded for _, negated in pairs]
    scores = model.blank_log_probs(encoded, columns)
    n = len(pairs)
    correlations = spearman_rows(scores.log_probs[:n], scores.log_probs[n:])
    best = best_candidates(scores.log_probs, 1, order=scores.order).columns[:, 0].tolist()
    for at, (plain, negated) in enumerate(pairs):
        yield {
            "relation": plain.relation,
            "fact_id": plain.fact_id,
            "query": plain.text,
            "negated": negated.text,
            "first": columns.words[best[at]],
            "first_negated": columns.words[best[n + at]],
            "same_first": best[at] == best[n + at],
            "spearman": float(correlations[at]),
        }
