"""Rows of tokens as trees: what stands behind the same tokens in several rows is computed once.

A tree goes through a left-to-right model as one row whose mask lets each token see those before it
in its own texts alone, at its place in them. So neither length nor the number of branches matters:
what is computed is each different beginning once (what speculative decoding calls tree attention:
Miao et al. 2024, SpecInfer).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

# Tokens of a tree: more share more, and each of them looks at all the others.
WIDTH = 128
# A tree of long rows may be so many times as long as one, for what they share to be worth a tree.
LONG = 4
# Cells of the masks of trees that are computed together, each its width squared: 64 MB in fp32.
# A row that no such tree holds is computed whole, which takes no mask.
MASKS_PER_PASS = 1 << 24


@dataclass(frozen=True, slots=True)
class Tree:
    """Tokens, each behind its parent; -1 is the parent of a row's first token.

    paths: the number of each row in it, and the node of each of its tokens but the last, behind
    which nothing is asked.
    """

    tokens: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)
    paths: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)

    def grow(self, number: int, row: Sequence[int], path: tuple[int, ...]) -> tuple[int, ...]:
        """The path of a row that goes on from the end of a path."""
        for token in row[len(path) : -1]:
            self.parents.append(path[-1] if path else -1)
            self.depths.append(len(path))
            path = (*path, len(self.tokens))
            self.tokens.append(token)
        self.paths.append((number, path))
        return path

    def sees(self, width: int) -> NDArray[np.bool_]:
        """Which tokens each one sees, bool [width, width]; padding sees itself."""
        seen = np.eye(width, dtype=np.bool_)
        for node, parent in enumerate(self.parents):
            if parent >= 0:
                seen[node] |= seen[parent]
        return seen


def plan_trees(rows: Sequence[Sequence[int]], max_tokens: int) -> list[Tree]:
    """The trees of rows, every row in exactly one.

    max_tokens: of a tree; a row that is longer has a tree of its own.
    """
    trees: list[Tree] = []
    path: tuple[int, ...] = ()
    before: Sequence[int] = ()
    for number in sorted(range(len(rows)), key=lambda number: tuple(rows[number])):
        row = rows[number]
        shared = path[: _common(before, row)]
        room = min(max_tokens, max(WIDTH, LONG * len(row)))
        if not trees or len(trees[-1].tokens) + len(row) - 1 - len(shared) > room:
            trees.append(Tree())
            shared = ()
        path, before = trees[-1].grow(number, row, shared), row
    return trees


def padded(values: Sequence[int], width: int) -> list[int]:
    """The values, filled up with zeros; nothing that counts sees padding."""
    return [*values, *[0] * (width - len(values))]


def _common(left: Sequence[int], right: Sequence[int]) -> int:
    """How many tokens two rows share at the beginning, so that the right one has one more."""
    limit = min(len(left), len(right) - 1)
    number = 0
    while number < limit and left[number] == right[number]:
        number += 1
    return number
