"""LPAQA's Tables 2 and 3: a study's scores next to the published values of the same model.

Micro: the mean over a relation's facts, then over relations. Macro: over a relation's unique
objects, then over relations (Jiang et al. 2020, section 5.1).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from lama_core.probes.prompts.study import RelationStudy
from lama_core.published import published_table

PAPER = "jiang2020"
N_RELATIONS, N_FACTS = 41, 34_039  # of T-REx in the paper
Averaging = Literal["micro", "macro"]
# Models of Tables 2 and 3: name in the catalogue -> name in the paper.
BERTS = {"bert-base-cased": "BERT-base", "bert-large-cased": "BERT-large"}
# Our names -> the paper's tables, columns and row labels.
TABLES: dict[Averaging, str] = {"micro": "table2", "macro": "table3"}
COLUMNS = dict(top1="Top1", top3="Top3", top5="Top5", optimised="Opti.", oracle="Oracle")
LINES = {"manual": "Man"} | {
    name: name.title() for name in ("mine", "mine+man", "mine+para", "man+para")
}


def published(model: str, averaging: Averaging, combination: str, method: str) -> float | None:
    """Return the published P@1 in percent on all 41 relations of T-REx; None if not published."""
    table = published_table(PAPER, TABLES[averaging])
    return table.number(COLUMNS.get(method, ""), model=model, prompts=LINES.get(combination))


@dataclass(frozen=True, slots=True)
class TableRow:
    """One row of the table.

    micro, macro: P@1 between 0 and 1, averaged over `n_relations`. published_model: the paper's
    name of the model, or "". published_micro, published_macro: the paper's values, or None.
    objective: mean over relations of the mean log-probability of the training facts' gold answers
    with the fitted weights; None if no weights were fitted.
    """

    model: str
    combination: str
    method: str
    micro: float
    macro: float
    n_relations: int
    n_facts: int
    published_model: str
    published_micro: float | None
    published_macro: float | None
    objective: float | None = None


def make_table(studies: Sequence[RelationStudy], model: str) -> tuple[TableRow, ...]:
    """Return the mean P@1 of every ensemble and oracle, in the paper's order.

    Each row is the mean over those relations that have this ensemble (`n_relations`).
    """
    same = BERTS.get(model, "")
    scores = [score for study in studies for score in study.scores()]
    fits = {
        (one.combination, one.method, study.relation.name): one.objective
        for study in studies
        for one in study.ensembles
    }
    rows = []
    for combination, method in dict.fromkeys((s.combination, s.method) for s in scores):
        if combination == "manual" and method == "oracle":
            continue  # with a single prompt, the oracle equals top1
        here = [s for s in scores if (s.combination, s.method) == (combination, method)]
        objectives = [fits.get((combination, method, s.relation)) for s in here]
        known = [value for value in objectives if value is not None]
        rows.append(
            TableRow(
                model,
                combination,
                method,
                float(np.mean([score.micro for score in here])),
                float(np.mean([score.macro for score in here])),
                len(here),
                sum(score.n for score in here),
                same,
                published(same, "micro", combination, method),
                published(same, "macro", combination, method),
                float(np.mean(known)) if known else None,
            )
        )
    return tuple(rows)
