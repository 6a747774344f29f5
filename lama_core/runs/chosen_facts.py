"""Chosen facts: any set of facts as a short text, and runs restricted to them.

    text   a part for each run that the facts are taken from, joined by dots
    part   a bit for each fact of that run, in the order of its rows, deflated, in base64 for URLs;
           then `mark_of` the run, 8 characters. So the text never ends in a dash, which some
           programs don't take for a part of a link.

The text has at most about a character for each six facts of the data, and few if few facts are
chosen. The same text has the same facts on every machine that has these runs, whose rows never
change. A restricted run keeps all its rows, so that ranks and answers are those of the whole run;
rows of other facts are excluded, and not counted as excluded.
"""

import os
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path

import numpy as np

from lama_core.errors import UserError
from lama_core.files import read_file
from lama_core.rounding import counted
from lama_core.runs.alignment import column_of_words
from lama_core.runs.find import list_runs
from lama_core.runs.info import FACT_KINDS, Run

OUTSIDE = "not one of the chosen facts"  # why a restricted run excludes a row
MARK = 8  # characters of a run's mark
BEGINNING = "eN"  # of every text: the first bytes of zlib's format in base64
DAMAGED = "The text of the chosen facts is incomplete or damaged: copy the whole link again."


def mark_of(run: str) -> str:
    """Return a short hash of a run's id, for URLs."""
    return blake2b(run.encode(), digest_size=MARK // 2).hexdigest()


def text_of(runs: Iterable[Run], facts: Iterable[str]) -> str:
    """Return chosen facts of these runs as a text. facts: their ids."""
    left, parts = set(facts), []
    for run in runs:
        known = _facts_of_run(run)
        if left.isdisjoint(known):
            continue
        bits = np.packbits([fact in left for fact in known]).tobytes()
        packed = urlsafe_b64encode(zlib.compress(bits, 9)).decode().rstrip("=")
        parts.append(packed + mark_of(run.info.id))
        left.difference_update(known)
    return ".".join(parts)


@lru_cache(maxsize=64)
def facts_of(text: str) -> frozenset[str]:
    """Return the ids of the facts of a text; see `text_of`.

    Raises:
        UserError: If the text is damaged, or a run that it names isn't on this machine.
    """
    runs = {mark_of(info.id): info for info in list_runs(kinds=FACT_KINDS)}
    found: set[str] = set()
    for part in text.split("."):
        info = runs.get(part[-MARK:])
        if info is None:
            raise UserError(
                "The chosen facts are from a run that isn't on this machine. Open the link where "
                "it was made, or choose the facts again on Wrong answers."
            )
        known = _facts_of_run(Run(info))
        n_bytes = -(-len(known) // 8)
        try:
            packed = urlsafe_b64decode(part[:-MARK] + "=" * (-len(part[:-MARK]) % 4))
            unpacking = zlib.decompressobj()
            bits = unpacking.decompress(packed, n_bytes + 1)
        except (ValueError, zlib.error) as error:
            raise UserError(DAMAGED) from error
        if len(bits) != n_bytes or not unpacking.eof or unpacking.unused_data:
            raise UserError(DAMAGED)
        chosen = np.unpackbits(np.frombuffer(bits, np.uint8), count=len(known))
        found.update(known[at] for at in np.flatnonzero(chosen))
    return frozenset(found)


def only_facts(runs: Sequence[Run], text: str) -> list[Run]:
    """Return the runs restricted to chosen facts, without runs that have none of them.

    Args:
        runs: The runs.
        text: Of `text_of`, or the name of a file with an id on each line; "" is all facts.

    Raises:
        UserError: If there is no such file, the text is damaged, or no run has any of the facts.
    """
    if not text:
        return list(runs)
    if os.path.isfile(text):
        lines = read_file(Path(text)).decode("utf-8-sig", "replace").splitlines()
        facts = frozenset(filter(None, map(str.strip, lines)))
    elif not text.startswith(BEGINNING):
        raise UserError(f"There is no file {text!r} with the ids of facts.")
    else:
        facts = facts_of(text)
    found = [restrict(run, text, facts) for run in runs]
    found = [run for run in found if run.info.relations]
    if not found:
        raise UserError(f"None of the {counted(len(facts), 'chosen fact')} is in these runs.")
    return found


def restrict(run: Run, text: str, facts: frozenset[str]) -> Run:
    """Return a run restricted to these facts; it has only their relations, perhaps none.

    text: what `RunInfo.only` becomes.
    """
    inside = run.column("fact_id").isin(facts).to_numpy()
    counts, codes, names = run.counted, run.codes("relation"), run.words_of("relation")
    tallies = [
        np.bincount(codes[inside & part], minlength=len(names)) for part in (counts, ~counts)
    ]
    numbers = {name: (int(n), int(out)) for name, n, out in zip(names, *tallies, strict=True)}
    relations = tuple(
        replace(one, n=numbers[one.name][0], n_excluded=numbers[one.name][1])
        for one in run.info.relations
        if any(numbers.get(one.name, ()))
    )
    info = replace(
        run.info,
        only=text,
        n=int((inside & counts).sum()),
        n_excluded=int((inside & ~counts).sum()),
        relations=relations,
    )
    reasons = [*run.words_of("excluded"), OUTSIDE]
    excluded = np.where(inside, run.codes("excluded"), len(reasons) - 1)
    changed = {**run.changed, "excluded": column_of_words(excluded, reasons)}
    return replace(run, info=info, changed=changed)


def _facts_of_run(run: Run) -> list[str]:
    return list(dict.fromkeys(run.column("fact_id")))
