"""The probes: from the pairs of a relation, instances in which one pair is right and one wrong.

n pairs give n(n-1) instances: every pair (A, B) is the query, with every other pair (C, D) as the
positive. The negative is made by the probe:

    random-head   (C', D)            the head of a third pair, with the same tail
    random-tail   (C, D')            the same head, with the tail of a third pair
    reverse       (F, E)             of any pair (E, F) but the query, or (D, C): see `Reverse`
    type          (E, G) or (F, H)   of any two pairs (E, F) and (G, H) but the query: two heads or
                  two tails by a seeded coin, never a word of the query on that side

A relation's pairs are halved, one half to train on and one to test on. The supervised instances are
those within a half; so are the unsupervised ones, of both halves (see `Pairing`).

As in the paper, a negative may happen to be true: in a relation with several right tails, or in one
that also holds read backwards. With `strict` such negatives are never drawn.

Source: Rezaee and Camacho-Collados, sections 2.2 and 2.3.
Departure: The wrong pairs of the analogy probes
"""

import zlib
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal, get_args

import numpy as np

from lama_core.datasets.dataset import AnalogyRelation
from lama_core.errors import UserError
from lama_core.models.protocols import Pooling
from lama_core.probes.analogy.score import Normalise, Pair
from lama_core.probes.analogy.templates import DEFAULT_TEMPLATE

Setting = Literal["unsupervised", "supervised"]
SETTINGS: tuple[Setting, ...] = ("unsupervised", "supervised")
# The pairs of a relation: further tails of its heads as well, or each head's first tail alone.
Tails = Literal["several", "first"]
# Unsupervised instances: within each half of the pairs, as the supervised ones, or of all pairs.
Pairing = Literal["halves", "all"]
# What is reversed to a wrong pair: a random pair, or the right one.
Reverse = Literal["random", "positive"]
TAILS: tuple[Tails, ...] = get_args(Tails)
PAIRINGS: tuple[Pairing, ...] = get_args(Pairing)
REVERSES: tuple[Reverse, ...] = get_args(Reverse)
MIN_PAIRS = 3
HIDDEN, N_SEEDS = 100, 5  # of supervised probes
# Further tails are taken until a relation has as many: the values of the paper's Table 2 are
# multiples of 1/4900 in the relations with several tails, 2 x 50 x 49 decisions on half of 100.
MOST_PAIRS = 100


@dataclass(frozen=True, slots=True)
class Place:
    """Where a wrong pair is needed.

    others: the relation's pairs but the query and the right one. draw: uniform in [0, 1), for a
    probe that draws before the wrong pair is drawn. banned: pairs that are not wrong.
    """

    query: Pair
    right: Pair
    others: Sequence[Pair]
    draw: float
    reverse: Reverse
    banned: Set[Pair]


# The pairs of a place from which the wrong one is drawn; banned ones are removed afterwards.
Negatives = Callable[[Place], list[Pair]]


@dataclass(frozen=True, slots=True)
class Probe:
    """A way to make a wrong pair. marked: the relations that the paper marks, and the mark."""

    meaning: str
    negatives: Negatives
    marked: Literal["one_to_many", "bidirectional"] | None = None
    mark: str = ""


def _reversed(place: Place) -> list[Pair]:
    others = () if place.reverse == "positive" else place.others
    return [(tail, head) for head, tail in (place.right, *others) if tail != head]


def _same_type(place: Place) -> list[Pair]:
    """Return pairs of two words of one side: one first word, drawn, with every second word.

    The right pair is one of the pairs to draw from, as any other. A first word without a second
    one is replaced by the next.
    """
    side = 0 if place.draw < 0.5 else 1
    pairs = (place.right, *place.others)
    words = [pair[side] for pair in pairs if pair[side] != place.query[side]]
    start = int(2 * place.draw % 1 * len(words))  # whatever the side, uniform in [0, 1)
    for first in (*words[start:], *words[:start]):
        found = [(first, second) for second in words if second != first]
        if any(pair not in place.banned for pair in found):
            return found
    return []


PROBES: dict[str, Probe] = {
    "random-head": Probe(
        "the wrong pair has the head of another pair",
        lambda at: [(head, at.right[1]) for head, _ in at.others if head != at.right[0]],
        "one_to_many",
        "*",
    ),
    "random-tail": Probe(
        "the wrong pair has the tail of another pair",
        lambda at: [(at.right[0], tail) for _, tail in at.others if tail != at.right[1]],
        "one_to_many",
        "*",
    ),
    "reverse": Probe(
        "the wrong pair is a pair of the relation, reversed: any but the query, or the right one",
        _reversed,
        "bidirectional",
        "†",
    ),
    "type": Probe(
        "the wrong pair is two heads, or two tails, of any pairs but the query", _same_type
    ),
}


@dataclass(frozen=True, slots=True)
class ProbeOptions:
    """How a probe is made and decided. The paper leaves open what supervised probes depend on.

    seed: of the negatives, the limit and the split. limit: instances a relation (supervised: a
    half), drawn at random; None is all. strict: no negative that happens to be true. pairing: of
    the unsupervised probes. layer, pooling, hidden, n_seeds: of the supervised ones.
    """

    template: str = DEFAULT_TEMPLATE
    normalise: Normalise = "sum"
    seed: int = 0
    limit: int | None = None
    strict: bool = False
    tails: Tails = "several"
    pairing: Pairing = "halves"
    reverse: Reverse = "random"
    layer: int = -1
    pooling: Pooling = "mean"
    hidden: int = HIDDEN
    n_seeds: int = N_SEEDS


@dataclass(frozen=True, slots=True)
class Instance:
    """A query pair with a right and a wrong candidate pair.

    id: relation, half, and the positions of query and positive among its pairs.
    negative: None where the relation has no word to make one of; `excluded` then says why.
    """

    id: str
    relation: str
    query: Pair
    positive: Pair
    negative: Pair | None
    excluded: str | None = None


class ProbeImpossible(UserError):
    """A relation has too few pairs for a probe."""


def distinct_pairs(relation: AnalogyRelation, tails: Tails = "several") -> tuple[Pair, ...]:
    """The relation's pairs, each once: every head with its first tail, in file order.

    tails: `several` adds the second tails of all heads, the third ones, ... up to `MOST_PAIRS`.
    Departure: Relations with several tails
    """
    first = dict.fromkeys((head, answers[0]) for head, answers in relation.pairs)
    if tails == "first":
        return tuple(first)
    columns = zip_longest(*([(head, tail) for tail in answers] for head, answers in relation.pairs))
    every = dict.fromkeys(pair for column in columns for pair in column if pair)
    return tuple(every)[: max(MOST_PAIRS, len(first))]


def words_of(relations: Iterable[AnalogyRelation], tails: Tails = "several") -> tuple[str, ...]:
    """Every word of the relations' pairs, each once."""
    pairs = [pair for relation in relations for pair in distinct_pairs(relation, tails)]
    return tuple(dict.fromkeys(word for pair in pairs for word in pair))


def split_pairs(pairs: Sequence[Pair], *, seed: int, name: str) -> tuple[list[Pair], list[Pair]]:
    """Half of the pairs to train on and half to test on, drawn at random, kept in file order."""
    chosen = set(_generator(seed, name, "split").permutation(len(pairs))[: len(pairs) // 2])
    train = [pair for number, pair in enumerate(pairs) if number in chosen]
    test = [pair for number, pair in enumerate(pairs) if number not in chosen]
    return train, test


def make_probe(
    relation: AnalogyRelation,
    probe: str,
    options: ProbeOptions | None = None,
    *,
    pairs: Sequence[Pair] | None = None,
    part: str = "all",
) -> list[Instance]:
    """Return the instances of one probe of one relation: n(n-1), or as many as the limit.

    part: a name for the pairs (`train`, `test`), which the draw depends on. The same seed gives the
    same instances, and the same limit the same queries and positives in every probe.
    Raises ProbeImpossible for fewer than three pairs.
    """
    options = options or ProbeOptions()
    used = list(distinct_pairs(relation, options.tails) if pairs is None else pairs)
    if len(used) < MIN_PAIRS:
        raise ProbeImpossible(
            f"{relation.name}: no probe is possible with {len(used)} "
            f"{'pair' if len(used) == 1 else 'pairs'}; a negative needs a third one."
        )
    places = [(i, j) for i in range(len(used)) for j in range(len(used)) if i != j]
    chosen = list(range(len(places)))
    if options.limit is not None and options.limit < len(places):
        order = _generator(options.seed, relation.name, part, "limit").permutation(len(places))
        chosen = sorted(order[: options.limit].tolist())
    generator = _generator(options.seed, relation.name, part, probe)
    # One draw for every place, so that a limit doesn't change the negatives that are left.
    draws = generator.random((len(places), 2))
    true = {(head, tail) for head, tails in relation.pairs for tail in tails}
    label = relation.name if part == "all" else f"{relation.name}/{part}"
    made = []
    for at in chosen:
        i, j = places[at]
        others = [pair for number, pair in enumerate(used) if number not in (i, j)]
        banned = {used[j], *(true if options.strict else ())}
        which, before = draws[at].tolist()
        place = Place(used[i], used[j], others, before, options.reverse, banned)
        wrong = [pair for pair in PROBES[probe].negatives(place) if pair not in banned]
        negative = wrong[int(which * len(wrong))] if wrong else None
        reason = None if wrong else "no pair to make a negative of"
        name = f"{label}/{i + 1}/{j + 1}"
        made.append(Instance(name, relation.name, used[i], used[j], negative, reason))
    return made


def _generator(seed: int, *names: str) -> np.random.Generator:
    """A generator that depends on the seed and the names alone."""
    return np.random.default_rng([seed, *(zlib.crc32(name.encode()) for name in names)])
