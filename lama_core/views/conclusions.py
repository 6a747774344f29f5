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


def listed(
    names: Mapping[str, str],
    values: "Mapping[str, float] | pd.Series[Any]",
    write: Callable[[float], str] = as_share,
    others: "Mapping[str, float] | pd.Series[Any] | None" = None,
) -> str:
    """Return the values of runs in the order of the choice: `13.4 % (A), 17.2 % (B)`.

    Of many runs, the lowest and the highest value are listed: `13.4 % (A) to 17.2 % (B)`.

    Args:
        names: Run id -> its name for readers, in the order of the choice.
        values: Run id -> its value; NaN is omitted.
        write: Writes a value.
        others: Run id -> a second share, which follows the first: `13.4 against 17.2 % (A)`.
    """
    given = {str(run): float(value) for run, value in values.items() if value == value}
    runs, said = [run for run in names if run in given], ", "
    if len(runs) > MOST_NAMED:
        runs, said = [min(runs, key=given.__getitem__), max(runs, key=given.__getitem__)], " to "
    texts = {run: write(given[run]) for run in runs}
    if others is not None:
        texts = {run: f"{percent(given[run])} against {as_share(others[run])}" for run in runs}
    return said.join(f"{text} ({names[run]})" for run, text in texts.items())
