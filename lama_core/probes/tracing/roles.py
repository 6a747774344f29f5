"""The roles of a text's tokens in a trace, and the average effect of each role.

The effect of a role at a layer, for one fact, is the mean over the role's tokens of the restored
minus the corrupted probability. A relation's average is the mean over its facts, with Student's
interval. As in the paper's code, a subject of one token counts as first and as last subject token.
The token at which the answer is read has the role `blank`; if it belongs to the subject, it has its
role in the subject, too.
Source: Meng et al. 2022, Figure 2.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lama_core.grouping import grouped
from lama_core.metrics.intervals import mean_of_sample

EARLIER, FIRST, MIDDLE, LAST, LATER, BLANK = ROLES = (
    "earlier tokens",
    "first subject token",
    "middle subject tokens",
    "last subject token",
    "later tokens",
    "blank",
)


@dataclass(frozen=True, slots=True)
class RoleEffect:
    """The average effect of restoring a layer at tokens of one role.

    Attributes:
        model: The model.
        relation: The relation.
        restore: What is restored.
        layer: The layer, from 1.
        role: One of `ROLES`.
        n: Number of facts with a token of this role.
        effect: Mean restored - corrupted probability.
        low: Lower end of the 95 % interval; None for fewer than two facts.
        high: Upper end; None like `low`.
    """

    model: str
    relation: str
    restore: str
    layer: int
    role: str
    n: int
    effect: float
    low: float | None
    high: float | None


def roles_of(n_tokens: int, subject: Sequence[int], read_at: int) -> dict[str, list[int]]:
    """Return role -> positions of its tokens, for the roles that the text has.

    Args:
        n_tokens: Number of tokens of the text.
        subject: Positions of the subject's tokens, consecutive.
        read_at: Position that the answer is read at: the blank, or the last token before it.
    """
    first, last = subject[0], subject[-1]
    others = [at for at in range(n_tokens) if at != read_at]
    found = {
        EARLIER: [at for at in others if at < first],
        FIRST: [first],
        MIDDLE: list(range(first + 1, last)),
        LAST: [last],
        LATER: [at for at in others if at > last],
        BLANK: [read_at],
    }
    return {role: positions for role, positions in found.items() if positions}


def average_effects(
    rows: Iterable[dict[str, Any]], *, model: str, restore: str
) -> list[RoleEffect]:
    """Return the mean effect over the facts of a run's rows, by relation, layer and role."""
    values = grouped(
        ((row["relation"], row["layer"], row["role"]), row["effect"])
        for row in rows
        if row["effect"] is not None
    )
    found = []
    for (relation, layer, role), effects in sorted(
        values.items(), key=lambda item: (item[0][0], item[0][1], ROLES.index(item[0][2]))
    ):
        sample = mean_of_sample(np.array(effects, np.float64))
        low, high = sample.interval.low, sample.interval.high
        ends = (None, None) if np.isnan(low) else (low, high)
        found.append(
            RoleEffect(model, relation, restore, layer, role, len(effects), sample.mean, *ends)
        )
    return found
