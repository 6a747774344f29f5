"""The probes: from the pairs of a relation, instances in which one pair is right and one wrong.

A relation with n pairs gives n(n-1) instances: every pair (A, B) is the query, with every other
pair (C, D) as the positive. The negative is made from the positive, by the probe:

    random-head   (C', D)   the head of a third pair, with the same tail
    random-tail   (C, D')   the same head, with the tail of a third pair
    reverse       (D, C)
    type          (C, C') or (D, D'), heads or tails by a seeded coin

Source: Rezaee and Camacho-Collados, sections 2.2 and 2.3. Where the paper leaves a choice: its
formula for the random probe, (h_j, t_i), could be read as keeping the query's own tail, but a
classifier would then find every negative by the word that stands twice, and its random probe is the
hardest; so the third pair is neither the query nor the positive, which is why a probe needs three
pairs. "A random tuple reversed" is the positive itself, reversed: over all instances every pair is
reversed equally often, and both candidates hold the same words.

As in the paper, a negative differs from the positive in its word only: in a relation with several
right tails it may happen to be true as well. With `strict` such negatives are never drawn.
"""

import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from lama_core.datasets.base import AnalogyRelation
from lama_core.errors import UserError
from lama_core.models.base import Pooling
from lama_core.probes.analogy.score import Normalise, Pair
from lama_core.probes.analogy.supervised import HIDDEN, N_SEEDS
from lama_core.probes.analogy.templates import DEFAULT_TEMPLATE

Setting = Literal["unsupervised", "supervised"]
SETTINGS: tuple[Setting, ...] = ("unsupervised", "supervised")
MIN_PAIRS = 3


@dataclass(frozen=True, slots=True)
class Probe:
    """A way to make a wrong pair. A new one is a row in `PROBES`.

    meaning: for people. negatives: from the other pairs of the relation, the positive and a coin,
    what a negative is drawn from. marked: the relations that the paper marks, and the mark.
    """

    meaning: str
    negatives: Callable[[Sequence[Pair], Pair, bool], list[Pair]]
    marked: Literal["one_to_many", "bidirectional"] | None = None
    mark: str = ""


PROBES: dict[str, Probe] = {
    "random-head": Probe(
        "the wrong pair has the head of another pair",
        lambda others, right, _: [(head, right[1]) for head, _ in others if head != right[0]],
        "one_to_many",
        "*",
    ),
    "random-tail": Probe(
        "the wrong pair has the tail of another pair",
        lambda others, right, _: [(right[0], tail) for _, tail in others if tail != right[1]],
        "one_to_many",
        "*",
    ),
    "reverse": Probe(
        "the wrong pair is the right one, reversed",
        lambda _, right, __: [(right[1], right[0])] if right[0] != right[1] else [],
        "bidirectional",
        "†",
    ),
    "type": Probe(
        "the wrong pair is two heads, or two tails",
        lambda others, right, heads: [
            (right[0 if heads else 1], word)
            for pair in others
            if (word := pair[0 if heads else 1]) != right[0 if heads else 1]
        ],
    ),
}


@dataclass(frozen=True, slots=True)
class ProbeOptions:
    """How a probe is made and decided. The paper leaves open what supervised probes depend on.

    seed: of the negatives, the limit and the split. limit: instances a relation (supervised: a
    half), drawn at random; None is all. strict: no negative that happens to be true.
    layer, pooling, hidden, n_seeds: of the supervised probe.
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

    id: relation and the positions of query and positive among the relation's pairs.
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


def distinct_pairs(relation: AnalogyRelation) -> tuple[Pair, ...]:
    """The relation's pairs with their usual tail, in file order, each once."""
    return tuple(dict.fromkeys((head, tails[0]) for head, tails in relation.pairs))


def words_of(relations: Iterable[AnalogyRelation]) -> tuple[str, ...]:
    """Every word of the relations' pairs, each once."""
    pairs = [pair for relation in relations for pair in distinct_pairs(relation)]
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
    *,
    seed: int = 0,
    limit: int | None = None,
    strict: bool = False,
    pairs: Sequence[Pair] | None = None,
    part: str = "all",
) -> list[Instance]:
    """The instances of one probe of one relation: n(n-1), or `limit` of them drawn at random.

    pairs: the pairs to use, by default all of the relation's. part: a name for them (`train`,
    `test`), which the draw depends on. The same seed gives the same instances, whatever other
    relations are probed; and the same limit the same queries and positives in every probe.
    Raises ProbeImpossible for fewer than three pairs.
    """
    used = list(distinct_pairs(relation) if pairs is None else pairs)
    if len(used) < MIN_PAIRS:
        raise ProbeImpossible(
            f"{relation.name}: no probe is possible with {len(used)} "
            f"{'pair' if len(used) == 1 else 'pairs'}; a negative needs a third one."
        )
    right = {(head, tail) for head, tails in relation.pairs for tail in tails}
    places = [(i, j) for i in range(len(used)) for j in range(len(used)) if i != j]
    chosen = list(range(len(places)))
    if limit is not None and limit < len(places):
        drawn = _generator(seed, relation.name, part, "limit").permutation(len(places))[:limit]
        chosen = sorted(drawn.tolist())
    generator = _generator(seed, relation.name, part, probe)
    # One draw for every place, so that a limit doesn't change the negatives that are left.
    draws = generator.random((len(places), 2))
    return [
        _instance(relation.name, probe, used, right, places[at], draws[at], strict, part)
        for at in chosen
    ]


def _instance(
    relation: str,
    probe: str,
    pairs: Sequence[Pair],
    right: set[Pair],
    place: tuple[int, int],
    draw: np.ndarray,
    strict: bool,
    part: str,
) -> Instance:
    i, j = place
    positive = pairs[j]
    others = [pair for number, pair in enumerate(pairs) if number not in place]
    options = PROBES[probe].negatives(others, positive, bool(draw[1] < 0.5))
    wrong = {positive} | (right if strict else set())
    options = [option for option in options if option not in wrong]
    label = relation if part == "all" else f"{relation}/{part}"
    name = f"{label}/{i + 1}/{j + 1}"
    if not options:
        return Instance(name, relation, pairs[i], positive, None, "no pair to make a negative of")
    negative = options[int(draw[0] * len(options))]
    return Instance(name, relation, pairs[i], positive, negative)


def _generator(seed: int, *names: str) -> np.random.Generator:
    """A generator that depends on the seed and the names alone."""
    return np.random.default_rng([seed, *(zlib.crc32(name.encode()) for name in names)])
