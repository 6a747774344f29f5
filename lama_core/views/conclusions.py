"""Parts of the sentences that say what a view shows (`View.conclusion`)."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from lama_core.rounding import percent

if TYPE_CHECKING:
    import pandas as pd

MOST_NAMED = 3  # runs that a sentence names


def as_share(value: float) -> str:
    """Return a share in percent: `17.2 %`; NaN is `undefined`."""
    return f"{percent(value)} %" if value == value else "undefined"


def with_interval(value: float, low: float, high: float) -> str:
    """Return a share with its interval, if it has one: `17.2 % (16.6 to 17.9)`."""
    return as_share(value) + (f" ({percent(low)} to {percent(high)})" if low == low else "")


def listed(
    names: Mapping[str, str],
    values: "Mapping[str, float] | pd.Series[Any]",
    write: Callable[[float], str] = as_share,
    *,
    lowest_first: bool = False,
) -> str:
    """Return the values of runs, best first: `17.2 % (A), 13.4 % (B)`.

    Of many runs, the best two and the last are listed.

    Args:
        names: Run id -> its name for readers.
        values: Run id -> its value; NaN is omitted.
        write: Writes a value.
        lowest_first: Whether small values are good.
    """
    known = [(str(run), float(value)) for run, value in values.items() if value == value]
    known.sort(key=lambda one: one[1], reverse=not lowest_first)
    shown = [f"{write(value)} ({names[run]})" for run, value in known]
    if len(shown) > MOST_NAMED:
        shown = [*shown[: MOST_NAMED - 1], "...", shown[-1]]
    return ", ".join(shown)
