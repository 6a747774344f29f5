"""Which texts share a beginning that is worth computing once.

Rows of tokens are seen as a tree; a group is a branch whose beginning is computed once for all its
rows, where that saves tokens over both its parent and its parts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

# A pass of its own for a short beginning costs more than it saves.
MIN_SHARED = 3


@dataclass(frozen=True, slots=True)
class Group:
    """Rows that share their first `n_shared` tokens; each has at least one token more.

    members: indices of the rows. A row on its own shares nothing with others: n_shared is 0.
    """

    n_shared: int
    members: tuple[int, ...]


def plan_shared(rows: Sequence[Sequence[int]]) -> list[Group]:
    """The groups of rows, every row in exactly one, for the fewest tokens computed."""
    order = sorted(range(len(rows)), key=lambda number: tuple(rows[number]))
    common = [_common(rows[left], rows[right]) for left, right in pairwise(order)]
    return _groups(rows, order, common, 0, len(order))


def _common(left: Sequence[int], right: Sequence[int]) -> int:
    """How many tokens two rows share at the beginning, so that each has one more."""
    limit = min(len(left), len(right)) - 1
    number = 0
    while number < limit and left[number] == right[number]:
        number += 1
    return max(number, 0)


def _groups(
    rows: Sequence[Sequence[int]],
    order: Sequence[int],
    common: Sequence[int],
    first: int,
    end: int,
) -> list[Group]:
    """The best groups of the sorted rows first..end: one for all, or those of its branches."""
    if end - first <= 0:
        return []
    if end - first == 1:
        return [Group(0, (order[first],))]
    shared = min(common[first : end - 1])
    bounds = [
        first,
        *(number + 1 for number in range(first, end - 1) if common[number] == shared),
        end,
    ]
    parts: list[Group] = []
    for left, right in pairwise(bounds):
        parts += _groups(rows, order, common, left, right)
    if shared < MIN_SHARED:
        return parts
    whole = Group(shared, tuple(order[first:end]))
    return [whole] if _cost(rows, [whole]) <= _cost(rows, parts) else parts


def _cost(rows: Sequence[Sequence[int]], groups: Sequence[Group]) -> int:
    """Tokens that are computed."""
    return sum(
        group.n_shared + sum(len(rows[number]) - group.n_shared for number in group.members)
        for group in groups
    )
