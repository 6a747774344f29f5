"""Verdicts on generated texts that users override with tags.

A text is right if whole words of it are a right answer (see `generation.matching`). The tag
`judged right` or `judged wrong` replaces this verdict in figures that are computed with
`with_verdicts`: this changes P@1, but not the measures of the texts (exact match, contains, token
F1, no answer). No other figure depends on tags.
"""

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from lama_core.runs.facts_table import UNRANKED
from lama_core.runs.info import Run
from lama_core.runs.tags import VERDICTS, read_tags


def overridden(run: Run) -> Mapping[int, bool]:
    """Return the verdicts that the user overrode: row of `Run.facts` -> whether the text is right.

    Excluded rows, rows with both tags and runs that rank answers have no verdicts of the user.
    """
    tags = read_tags(run.info) if run.info.generates else {}
    if not tags:
        return {}
    names = ("fact_id", "prompt")
    rows = zip(*(run.column(name).tolist() for name in names), run.counted, strict=True)
    found = {}
    for at, (fact, prompt, counts) in enumerate(rows):
        verdicts = [VERDICTS[tag] for tag in tags.get((fact, prompt), ()) if tag in VERDICTS]
        if counts and len(verdicts) == 1:
            found[at] = verdicts[0]
    return found


def with_verdicts(run: Run) -> Run:
    """Return the run with its ranks changed by the user's verdicts; unchanged without verdicts."""
    verdicts = overridden(run)
    if not verdicts:
        return run
    rows = list(verdicts)
    changed = dict(run.changed)
    for name in ("rank_raw", "rank_filtered"):
        ranks = run.column(name).to_numpy(copy=True)
        ranks[rows] = [1 if verdicts[row] else UNRANKED for row in rows]
        changed[name] = pa.chunked_array([pa.array(ranks, from_pandas=True)])
    return replace(run, changed=changed)
