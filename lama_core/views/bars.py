"""The chart of most views: a row for each group, with a bar and an interval for each run."""

from typing import TYPE_CHECKING, Any

from lama_core.rounding import percent
from lama_core.views.figure import Axis, Figure, said, said_interval
from lama_core.views.view import Shown

if TYPE_CHECKING:
    import pandas as pd


def share_bars(
    shown: Shown[Any, Any],
    table: "pd.DataFrame",
    by: Axis,
    *,
    measure: str,
    title: str,
    value: str = "p_at_k",
    **more: Any,
) -> Figure:
    """Return bars of shares with intervals.

    Args:
        shown: The view.
        table: Columns run, that of `by`, `value`, low, high, n.
        by: The axis of the groups.
        measure: What the shares are, such as `P@1`.
        title: What the chart shows, without the data.
        value: The column of the shares.
        more: Further fields of `Figure`.
    """
    lines = [
        said(
            f"{shown.names[line['run']]}, {line[by.column]}",
            f"{measure}: {percent(line[value])} %",
            said_interval(line["low"], line["high"]),
            f"{line['n']:,} {shown.counts}",
        )
        for line in table.to_dict("records")
    ]
    return Figure(
        shape="bars",
        frame=table.assign(said=lines),
        by=by,
        value=Axis(column=value, title=f"{measure}, % of {shown.counts}", share=True),
        names=shown.names,
        low="low",
        high="high",
        title=shown.title_of(title),
        caption=shown.caption,
        **more,
    )
