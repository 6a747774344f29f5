"""Analogy probes: instances with a query pair, a right and a wrong candidate pair.

n pairs of a relation give n(n-1) instances: each pair (A, B) is the query pair once with each other
pair (C, D) as the positive. The probe makes the negative:

    random-head   (C', D)            head of a third pair, same tail
    random-tail   (C, D')            same head, tail of a third pair
    reverse       (F, E)             from any pair (E, F) except the query
    type          (E, G) or (F, H)   from two pairs (E, F) and (G, H) except the query: two heads or
                  two tails (drawn with the seed), none equal to the query's head or tail

The pairs of a relation are split into a training and a test half, and all pairs of an instance are
from the same half. Unsupervised probes use both halves.

As in the paper, a negative may be true by chance, in a relation with several right tails or in a
symmetric one. With `strict` such negatives are never drawn.

Source: Rezaee and Camacho-Collados, sections 2.2 and 2.3.
Departure: The wrong pairs of the analogy probes
"""

import zlib
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from itertools import permutations, zip_longest
from typing import Literal

import numpy as np

from lama_core.datasets.dataset import AnalogyRelation, Pair
from lama_core.errors import UserError
from lama_core.models.protocols import Pooling
from lama_core.queries.analogy_templates import DEFAULT_TEMPLATE
from lama_core.queries.pairs import Normalise

Setting = Literal["unsupervised", "supervised"]
SETTINGS: tuple[Setting, ...] = ("unsupervised", "supervised")
MIN_PAIRS = 3
HIDDEN, N_SEEDS = 100, 5  # hidden units and classifiers of supervised probes
# Further tails are added up to this number of pairs. In relations with several tails, the values of
# the paper's Table 2 are multiples of 1/4900: 2 x 50 x 49 decisions on half of 100 pairs.
MOST_PAIRS = 100


@dataclass(frozen=True, slots=True)
class Draft:
    """An instance without its negative.

    Attributes:
        right: The positive.
        others: The relation's pairs except query and positive.
        draw: Random number in [0, 1); probe `type` draws the side and the first word with it.
        banned: Pairs that must not be the negative.
    """

    query: Pair
    right: Pair
    others: Sequence[Pair]
    draw: float
    banned: Set[Pair]


@dataclass(frozen=True, slots=True)
class Probe:
    """A way to make a negative.

    Attributes:
        meaning: Explanation for users.
        negatives: Returns the pairs to draw the negative from; banned ones are removed afterwards.
        marked: Name of the field that is true for relations that the paper's tables mark.
        mark: The mark in the paper's tables.
    """

    meaning: str
    negatives: Callable[[Draft], list[Pair]]
    marked: Literal["one_to_many", "bidirectional"] | None = None
    mark: str = ""


def _same_type(draft: Draft) -> list[Pair]:
    """Return pairs of two heads or of two tails: one drawn word with each of the other words.

    The words are those of all pairs except the query, without words that equal the query's. If
    every pair with the drawn word is banned, the next word is used instead.
    """
    side = 0 if draft.draw < 0.5 else 1
    words = [pair[side] for pair in (draft.right, *draft.others) if pair[side] != draft.query[side]]
    start = int(2 * draft.draw % 1 * len(words))  # 2 * draw % 1 is uniform given the side
    for first in (*words[start:], *words[:start]):
        found = [(first, second) for second in words if second != first]
        if any(pair not in draft.banned for pair in found):
            return found
    return []


PROBES: dict[str, Probe] = {
    "random-head": Probe(
        "the wrong pair has the head of another pair",
        lambda draft: [
            (head, draft.right[1]) for head, _ in draft.others if head != draft.right[0]
        ],
        "one_to_many",
        "*",
    ),
    "random-tail": Probe(
        "the wrong pair has the tail of another pair",
        lambda draft: [
            (draft.right[0], tail) for _, tail in draft.others if tail != draft.right[1]
        ],
        "one_to_many",
        "*",
    ),
    "reverse": Probe(
        "the wrong pair is a reversed pair: any pair except the query pair",
        lambda draft: [(tail, head) for head, tail in (draft.right, *draft.others) if tail != head],
        "bidirectional",
        "†",
    ),
    "type": Probe(
        "the wrong pair is two heads or two tails, of any pairs except the query pair", _same_type
    ),
}


@dataclass(frozen=True, slots=True)
class ProbeOptions:
    """How a probe is made and decided. The paper does not specify the supervised options.

    `layer`, `pooling`, `hidden` (number of hidden units) and `n_seeds` (number of classifiers) are
    for supervised probes.

    Attributes:
        template: Name or text of the analogy template.
        normalise: Sum or mean of the tokens' log-probabilities.
        seed: Seed of the negatives, the limit and the split.
        limit: Instances per relation (supervised: per half), drawn at random; None uses all.
        strict: Whether to exclude negatives that are true by chance.
    """

    template: str = DEFAULT_TEMPLATE
    normalise: Normalise = "sum"
    seed: int = 0
    limit: int | None = None
    strict: bool = False
    layer: int = -1
    pooling: Pooling = "mean"
    hidden: int = HIDDEN
    n_seeds: int = N_SEEDS


@dataclass(frozen=True, slots=True)
class Instance:
    """A query pair with a right and a wrong candidate pair.

    id: Relation, half, and the positions (from 1) of query and positive among the half's pairs.
    negative: The wrong pair; None if the probe can't make one, with the reason in `excluded`.
    """

    id: str
    relation: str
    query: Pair
    positive: Pair
    negative: Pair | None
    excluded: str | None = None


class ProbeImpossible(UserError):
    """Raised if a relation has too few pairs for a probe."""


def distinct_pairs(relation: AnalogyRelation) -> tuple[Pair, ...]:
    """Return the relation's distinct pairs: every head with its first tail, in file order.

    The second tails of all heads follow, then the third ones, ..., up to `MOST_PAIRS` pairs.
    Departure: Relations with several tails
    """
    columns = zip_longest(*([(head, tail) for tail in tails] for head, tails in relation.pairs))
    every = dict.fromkeys(pair for column in columns for pair in column if pair)
    n_first = len({(head, tails[0]) for head, tails in relation.pairs})
    return tuple(every)[: max(MOST_PAIRS, n_first)]


def words_of(relations: Iterable[AnalogyRelation]) -> tuple[str, ...]:
    """Return the distinct words of the relations' pairs."""
    pairs = (pair for relation in relations for pair in distinct_pairs(relation))
    return tuple(dict.fromkeys(word for pair in pairs for word in pair))


def split_pairs(pairs: Sequence[Pair], *, seed: int, name: str) -> tuple[list[Pair], list[Pair]]:
    """Return a random training and test half of the pairs, each in file order."""
    chosen = set(_generator(seed, name, "split").permutation(len(pairs))[: len(pairs) // 2])
    train = [pair for number, pair in enumerate(pairs) if number in chosen]
    return train, [pair for number, pair in enumerate(pairs) if number not in chosen]


def make_probe(
    relation: AnalogyRelation,
    probe: str,
    options: ProbeOptions,
    *,
    pairs: Sequence[Pair],
    part: str,
) -> list[Instance]:
    """Return the instances of one probe of one relation: n(n-1) for n pairs, at most the limit.

    The same seed gives the same instances. With the same seed and limit, all probes have the same
    query pairs and positives.

    Args:
        relation: The relation.
        probe: Name of the probe.
        options: The options.
        pairs: The pairs of a half of the relation, at least three.
        part: Name of the half, `train` or `test`; the random draws depend on it.
    """
    positions = list(permutations(range(len(pairs)), 2))
    chosen = list(range(len(positions)))
    if options.limit is not None and options.limit < len(positions):
        order = _generator(options.seed, relation.name, part, "limit").permutation(len(positions))
        chosen = sorted(order[: options.limit].tolist())
    # Drawn for all instances, so that a limit doesn't change the negatives of the chosen instances.
    draws = _generator(options.seed, relation.name, part, probe).random((len(positions), 2))
    true = {(head, tail) for head, tails in relation.pairs for tail in tails}
    instances = []
    for number in chosen:
        i, j = positions[number]
        others = [pair for at, pair in enumerate(pairs) if at not in (i, j)]
        banned = {pairs[j], *(true if options.strict else ())}
        negative_draw, probe_draw = draws[number].tolist()
        draft = Draft(pairs[i], pairs[j], others, probe_draw, banned)
        wrong = [pair for pair in PROBES[probe].negatives(draft) if pair not in banned]
        negative = wrong[int(negative_draw * len(wrong))] if wrong else None
        reason = None if wrong else "no pair to make a negative of"
        name = f"{relation.name}/{part}/{i + 1}/{j + 1}"
        instances.append(Instance(name, relation.name, pairs[i], pairs[j], negative, reason))
    return instances


def _generator(seed: int, *names: str) -> np.random.Generator:
    """Return a generator that depends only on the seed and the names."""
    return np.random.default_rng([seed, *(zlib.crc32(name.encode()) for name in names)])
