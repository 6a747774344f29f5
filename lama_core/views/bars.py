"""The chart of most views: a row for each group, with a bar and an interval for each run."""

from typing import Any

import pandas as pd

from lama_core.views.conclusions import as_share
from lama_core.views.figure import Axis, Figure, right_title, said, said_interval
from lama_core.views.view import Shown


def share_bars(
    shown: Shown[Any, Any],
    table: pd.DataFrame,
    by: Axis,
    *,
    title: str,
    **more: Any,
) -> Figure:
    """Return bars of P@k with intervals.

    Args:
        shown: The view.
        table: Columns run, that of `by`, p_at_k, low, high, n.
        by: The axis of the groups.
        title: What the chart shows, without the data.
        more: Further fields of `Figure`.
    """
    k = shown.request.k
    return Figure(
        shape="bars",
        frame=table.assign(
            said=[
                said(
                    f"{shown.names[line['run']]}, {line[by.column]}",
                    f"P@{k}: {as_share(line['p_at_k'])}",
                    said_interval(line["low"], line["high"]),
                    f"{line['n']:,} {shown.counts}",
                )
                for line in table.to_dict("records")
            ]
        ),
        by=by,
        value=Axis(column="p_at_k", title=right_title(k), share=True),
        names=shown.names,
        low="low",
        high="high",
        title=shown.title_of(title),
        caption=shown.caption,
        **more,
    )
