"""Prefix trees of token rows: a prefix that several rows share is computed once.

A causal model reads a tree as one row. The attention mask lets each token attend only to the tokens
before it in its texts, and a token has the position that it has in its texts. Each distinct prefix
is computed once (tree attention in speculative decoding: Miao et al. 2024, SpecInfer).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

# Maximum number of tokens of a tree of short rows: larger trees share more, but attention is
# computed between all pairs of tokens.
WIDTH = 128
# A tree of long rows may be this many times as long as a row, so that several rows share it.
LONG = 4


@dataclass(frozen=True, slots=True)
class Tree:
    """A prefix tree.

    tokens: the token of each node. parents: the node of the token before each; -1 for a row's first
    token. depths: each token's position in its rows. paths: the index of each row, and the nodes of
    the row's tokens except the last one, after which no token is scored.
    """

    tokens: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)
    paths: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)

    def grow(self, number: int, row: Sequence[int], path: tuple[int, ...]) -> tuple[int, ...]:
        """Add a row whose first tokens are in the tree already; return the row's path.

        Args:
            number: Index of the row.
            row: The row's tokens.
            path: The nodes of the row's first tokens.
        """
        for token in row[len(path) : -1]:
            self.parents.append(path[-1] if path else -1)
            self.depths.append(len(path))
            path = (*path, len(self.tokens))
            self.tokens.append(token)
        self.paths.append((number, path))
        return path

    def sees(self, width: int) -> NDArray[np.bool_]:
        """Return what each token attends to, bool [width, width]; padding attends to itself."""
        seen = np.eye(width, dtype=np.bool_)
        for node, parent in enumerate(self.parents):
            if parent >= 0:
                seen[node] |= seen[parent]
        return seen


def plan_trees(rows: Sequence[Sequence[int]], max_tokens: int) -> list[Tree]:
    """Distribute rows over trees; each row is in exactly one.

    max_tokens: maximum number of tokens of a tree; a longer row gets a separate tree.
    """
    trees: list[Tree] = []
    path: tuple[int, ...] = ()
    before: Sequence[int] = ()
    for number in sorted(range(len(rows)), key=lambda number: tuple(rows[number])):
        row = rows[number]
        shared = path[: n_shared(before, row[:-1])]
        room = min(max_tokens, max(WIDTH, LONG * len(row)))
        if not trees or len(trees[-1].tokens) + len(row) - 1 - len(shared) > room:
            trees.append(Tree())
            shared = ()
        path, before = trees[-1].grow(number, row, shared), row
    return trees


def n_shared(left: Sequence[int], right: Sequence[int]) -> int:
    """Return the number of tokens that two rows both begin with."""
    return next(
        (n for n, (one, other) in enumerate(zip(left, right, strict=False)) if one != other),
        min(len(left), len(right)),
    )
