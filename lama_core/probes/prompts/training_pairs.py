"""The facts that prompts are chosen and weighted on, kept apart from those they are tested on.

Jiang et al. 2020, section 5.1: T-REx-train has no overlap with the test facts. A training pair
overlaps when a test fact of the same relation has its subject and object, in any case. The released
files hold a few such pairs (Bucharest, Romania of P1376); they are refused by name, or dropped by
name where the caller says so.

The released scripts divide each relation's pairs at random into 80 % training and 20 % development
data, and select and fit on the 80 % (`split_dev` in `ana.py`, `run_exp.sh`, `run_opti_direct.sh`);
the development data decide nothing there.

Departure: Training pairs of prompts
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter

from lama_core.errors import UserError
from lama_core.probes.plan import check_limit
from lama_core.types import Fact

SHOWN = 5
# Of given pairs, what the released scripts select and fit on: `split = int(len(ls) * 0.8)`.
RELEASED_SHARE = 0.8


@dataclass(frozen=True, slots=True)
class Split:
    """Training and test facts of one relation. notes: what was left out, in sentences."""

    train: tuple[Fact, ...]
    test: tuple[Fact, ...]
    notes: tuple[str, ...] = ()


def make_split(
    relation: str,
    train: Sequence[Fact],
    test: Sequence[Fact],
    *,
    drop_overlap: bool = False,
    limit: int | None = None,
    seed: int | None = None,
) -> Split:
    """The facts to use of a relation, training pairs that are test facts taken out or refused.

    limit, seed: at most so many test facts, as in `draw`. Training facts are limited later, among
        those that count for the model.
    Raises UserError when there are no training pairs, when one overlaps the test facts and
    `drop_overlap` is false, or when the limit is not positive.
    """
    check_limit(limit)
    if not train:
        raise UserError(
            f"{relation} has no training pairs, so prompts can't be chosen or weighted: give "
            "a folder of training pairs (one P*.jsonl a relation), or split the facts in two."
        )
    shared = overlap(train, test)
    notes: tuple[str, ...] = ()
    if shared:
        named = ", ".join(f"{fact.subject} - {fact.object}" for fact in shared[:SHOWN])
        named += f" and {len(shared) - SHOWN} more" * (len(shared) > SHOWN)
        what = f"{relation}: {len(shared)} training pair(s) are test facts too ({named})"
        if not drop_overlap:
            raise UserError(f"{what}: take them out, or drop them with --drop-overlap.")
        notes = (f"{what}; they are left out of training.",)
        train = [fact for fact in train if fact not in shared]
        if not train:
            raise UserError(f"{relation}: every training pair is a test fact: none is left.")
    return Split(tuple(train), tuple(test[number] for number in draw(test, limit, seed)), notes)


def pairs_digest(splits: Iterable[Split]) -> str:
    """SHA-256 of the training pairs of some relations, by content and order."""
    names = attrgetter("relation", "id", "subject", "object")
    content = [[names(fact) for fact in split.train] for split in splits]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def overlap(train: Sequence[Fact], test: Sequence[Fact]) -> tuple[Fact, ...]:
    """The training facts whose subject and object a test fact has too, in their order."""
    known = {_key(fact) for fact in test}
    return tuple(fact for fact in train if _key(fact) in known)


def halve(facts: Sequence[Fact], *, seed: int = 0) -> tuple[tuple[Fact, ...], tuple[Fact, ...]]:
    """Return facts as a training and a test half, by a hash of subject and object."""
    halves: tuple[list[Fact], list[Fact]] = ([], [])
    for fact in facts:
        halves[_hash(fact, seed)[0] & 1].append(fact)
    return tuple(halves[0]), tuple(halves[1])


def take_share(
    facts: Sequence[Fact], share: float, *, seed: int = 0
) -> tuple[tuple[Fact, ...], tuple[Fact, ...]]:
    """Divide training pairs into those that count and development data.

    The pairs are ordered by a hash of subject and object, so that neither their order in the file
    nor their ids decide. Both parts keep the order of the file.

    Args:
        share: Above 0, at most 1; int(share * pairs) count, and at least one.

    Raises:
        UserError: If the share is out of its range.
    Source: Jiang et al. 2020, released code, `split_dev` (which shuffles without a seed).
    """
    if not 0 < share <= 1:
        raise UserError(
            f"The share of training pairs is {share}: give one above 0 and at most 1, such as 0.8."
        )
    order = sorted(range(len(facts)), key=lambda at: (_hash(facts[at], seed), at))
    counted = set(order[: max(1, int(share * len(facts)))])
    train, development = (
        tuple(fact for at, fact in enumerate(facts) if (at in counted) is counts)
        for counts in (True, False)
    )
    return train, development


def _hash(fact: Fact, seed: int) -> bytes:
    return hashlib.sha256(f"{seed}\0{_key(fact)}".encode()).digest()


def _key(fact: Fact) -> tuple[str, str]:
    return fact.subject.casefold(), fact.object.casefold()


def draw(facts: Sequence[Fact], limit: int | None, seed: int | None) -> tuple[int, ...]:
    """Positions of at most `limit` facts, in order: the first, or by the seed's hashes."""
    if limit is None or len(facts) <= limit:
        return tuple(range(len(facts)))
    if seed is None:
        return tuple(range(limit))
    digests = [
        (hashlib.sha256(f"{seed}\0{number}\0{fact.id}".encode()).digest(), number)
        for number, fact in enumerate(facts)
    ]
    return tuple(sorted(number for _, number in sorted(digests)[:limit]))
