"""Texts that a server refuses: the others are scored, and these are excluded with its reason.

Only the server knows which texts it refuses, so this shows when they are scored. The table of a
part has a row for each of its queries; those of refused texts have the reason in `REFUSED`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lama_core.errors import TextRefusedError
from lama_core.scoring.preparation import Prepared, as_prepared
from lama_core.scoring.top_answers import ROW, to_table

REFUSED = "refused"
Item = TypeVar("Item")
Value = TypeVar("Value")


def score_accepted(
    score: Callable[[Sequence[Item]], Value], items: Sequence[Item]
) -> Iterator[tuple[Sequence[Item], Value | TextRefusedError]]:
    """Yield some of the items with `score`'s value for them, in order, until none is left.

    Items are scored together; if the server refuses one of their texts, in halves. An item that is
    refused alone comes with the refusal.
    """
    try:
        found: Value | TextRefusedError = score(items)
    except TextRefusedError as refusal:
        if len(items) > 1:
            half = len(items) // 2
            yield from score_accepted(score, items[:half])
            yield from score_accepted(score, items[half:])
            return
        found = refusal
    yield items, found


def join_rows(scored: Sequence[tuple[Sequence[int], pa.Table | TextRefusedError]]) -> pa.Table:
    """Return the rows of a part: queries and what `score_accepted` yields for them."""
    tables = []
    for queries, table in scored:
        if isinstance(table, TextRefusedError):
            rows = np.zeros(len(queries), ROW)
            rows["query"] = queries
            table = to_table(rows).append_column(
                REFUSED, pa.array([table.excluded] * len(queries), pa.string())
            )
        tables.append(table)
    return pa.concat_tables(tables, promote_options="default")


def exclude_refused(
    prepared: Prepared, segments: Sequence[int], tables: Sequence[pa.Table], model_name: str
) -> tuple[Prepared, list[pa.Table]]:
    """Return the questions, those with a refused text excluded, and the tables without them.

    Args:
        prepared: The questions and segments.
        segments: The segment of each table.
        tables: The rows of each part. One whose rows are all refused can lack columns.
        model_name: The model's name.

    Raises:
        NoFactCounts: If no question remains.
    """
    questions, kept = list(prepared.questions), list(tables)
    for number, (segment, table) in enumerate(zip(segments, tables, strict=True)):
        if REFUSED not in table.column_names:
            continue
        is_scored = pc.is_null(table[REFUSED])
        for row in table.filter(pc.invert(is_scored)).select(["query", REFUSED]).to_pylist():
            at = int(prepared.segments[segment].rows[row["query"]])
            questions[at] = replace(questions[at], excluded=row[REFUSED])
        kept[number] = table.filter(is_scored)
    left = prepared.segments if any(len(table) for table in kept) else ()
    return as_prepared(questions, left, model_name), kept
