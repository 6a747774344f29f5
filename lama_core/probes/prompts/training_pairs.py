"""Separate the facts that prompts are selected and weighted on from the test facts.

Jiang et al. 2020, section 5.1: T-REx-train does not overlap the test facts. A training pair
overlaps if a test fact of the same relation has its subject and object, ignoring case. The released
files contain a few such pairs (Bucharest, Romania of P1376). `make_split` drops such pairs or
raises an error, with a message that names them.

The released scripts divide each relation's pairs at random into 80 % training and 20 % development
data. The scripts select and fit on the 80 % (`split_dev` in `ana.py`, `run_exp.sh`,
`run_opti_direct.sh`) and do not use the development data for any decision.

Departure: Training pairs of prompts
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter

from lama_core.errors import UserError
from lama_core.types import Fact

SHOWN = 5
# The released scripts select and fit on this share of the pairs: `split = int(len(ls) * 0.8)`.
RELEASED_SHARE = 0.8


@dataclass(frozen=True, slots=True)
class Split:
    """Training and test facts of one relation. notes: Messages about excluded facts."""

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
    """Return a relation's training and test facts, without overlap.

    Args:
        relation: Name of the relation.
        train: The training pairs.
        test: The test facts.
        drop_overlap: Whether to drop training pairs that are test facts; else they are an error.
        limit: Maximum number of test facts. Training facts are limited later, after facts that the
            model can't be scored on are excluded.
        seed: Seed for choosing the test facts, as in `limited_positions`.

    Raises:
        UserError: If training pairs are missing or overlap the test facts.
    """
    if not train:
        raise UserError(
            f"{relation} has no training pairs to select and weight prompts on. Give a folder of "
            "training pairs (one P*.jsonl per relation), or omit it to train on half of the facts."
        )
    shared = overlapping_facts(train, test)
    notes: tuple[str, ...] = ()
    if shared:
        named = ", ".join(f"{fact.subject} - {fact.object}" for fact in shared[:SHOWN])
        named += f" and {len(shared) - SHOWN} more" * (len(shared) > SHOWN)
        problem = f"{relation}: {len(shared)} training pair(s) are also test facts ({named})"
        if not drop_overlap:
            raise UserError(f"{problem}. Remove them, or drop them with --drop-overlap.")
        notes = (f"{problem}; they are excluded from training.",)
        train = [fact for fact in train if fact not in shared]
        if not train:
            raise UserError(
                f"{relation}: all training pairs are also test facts. Give other training pairs."
            )
    return Split(
        tuple(train), tuple(test[number] for number in limited_positions(test, limit, seed)), notes
    )


def pairs_digest(splits: Iterable[Split]) -> str:
    """Return the SHA-256 of the training pairs of some relations, in order."""
    values = attrgetter("relation", "id", "subject", "object")
    content = [[values(fact) for fact in split.train] for split in splits]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def overlapping_facts(train: Sequence[Fact], test: Sequence[Fact]) -> tuple[Fact, ...]:
    """Return the training facts that share subject and object with a test fact, in order."""
    keys = {_key(fact) for fact in test}
    return tuple(fact for fact in train if _key(fact) in keys)


def halve(facts: Sequence[Fact]) -> tuple[tuple[Fact, ...], tuple[Fact, ...]]:
    """Return a training and a test half, divided by a hash of subject and object."""
    halves: tuple[list[Fact], list[Fact]] = ([], [])
    for fact in facts:
        halves[_hash(fact)[0] & 1].append(fact)
    return tuple(halves[0]), tuple(halves[1])


def share_of(facts: Sequence[Fact], share: float) -> tuple[Fact, ...]:
    """Return the training pairs to use, without the development data, in their order.

    These are int(share * pairs) pairs, at least one. A hash of subject and object decides, so that
    neither the order in the file nor the ids matter.
    Raises UserError unless 0 < share <= 1.
    Source: Jiang et al. 2020, released code, `split_dev` (which shuffles without a seed).
    """
    if not 0 < share <= 1:
        raise UserError(
            f"Invalid share of training pairs: {share}. Give a number above 0 and at most 1, such "
            "as 0.8."
        )
    order = sorted(range(len(facts)), key=lambda at: (_hash(facts[at]), at))
    used = set(order[: max(1, int(share * len(facts)))])
    return tuple(fact for at, fact in enumerate(facts) if at in used)


def _hash(fact: Fact) -> bytes:
    return hashlib.sha256(f"0\0{_key(fact)}".encode()).digest()


def _key(fact: Fact) -> tuple[str, str]:
    return fact.subject.casefold(), fact.object.casefold()


def limited_positions(
    facts: Sequence[Fact], limit: int | None, seed: int | None
) -> tuple[int, ...]:
    """Return the positions of at most `limit` facts, in order.

    Without a seed these are the first facts; with a seed, a hash of seed and fact chooses them.
    """
    if limit is None or len(facts) <= limit or seed is None:
        return tuple(range(len(facts)))[:limit]
    digests = [
        (hashlib.sha256(f"{seed}\0{number}\0{fact.id}".encode()).digest(), number)
        for number, fact in enumerate(facts)
    ]
    return tuple(sorted(number for _, number in sorted(digests)[:limit]))
