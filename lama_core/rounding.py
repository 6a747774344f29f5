"""Numbers rounded as in papers: halves away from zero, so that 21.95 becomes 22.0.

A number is rounded from its shortest decimal text. Python's formats round the float itself and give
21.9, because the float 21.95 is slightly smaller than the number 21.95.
"""

import math
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Context, Decimal

_CONTEXT = Context(prec=400, rounding=ROUND_HALF_UP)  # more digits than the largest float has


def rounded(value: float, digits: int) -> float:
    """Return a number rounded to `digits` decimals; infinite values and NaN are unchanged."""
    return float(_rounded(Decimal(repr(float(value))), digits)) if math.isfinite(value) else value


def fixed(value: float, digits: int, *, signed: bool = False) -> str:
    """Return a number as text with `digits` decimals, such as `1,234.5`; signed: with a plus."""
    return _text(Decimal(repr(float(value))), digits, signed=signed)


def percent(share: float, digits: int = 1, *, signed: bool = False) -> str:
    """Return a share as text in percent, without the percent sign: 0.2195 gives `22.0`."""
    return _text(100 * Decimal(repr(float(share))), digits, signed=signed)


def percentage(share: float, digits: int = 1) -> float:
    """Return a share in percent, rounded: 0.2195 gives 22.0; infinite values and NaN stay."""
    if not math.isfinite(share):
        return share
    return float(_rounded(100 * Decimal(repr(float(share))), digits))


def counted(n: int, noun: str) -> str:
    """Return a number with its noun: `1 fact`, `2,000 facts`, `3 queries`."""
    return f"{n:,} {noun if n == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """Return a noun's plural: `facts`, `queries`."""
    return f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"


def few(names: Sequence[str], most: int = 3) -> str:
    """Return the first names, and how many more there are: `A, B, C and 2 more`."""
    return ", ".join(names[:most]) + f" and {len(names) - most:,} more" * (len(names) > most)


def _rounded(value: Decimal, digits: int) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-digits), context=_CONTEXT)


def _text(value: Decimal, digits: int, *, signed: bool) -> str:
    if not value.is_finite():
        return str(float(value))
    # Unsigned, -0.0 is printed without its minus (z). Signed, the minus is kept: -0.04 gives -0.0.
    return f"{_rounded(value, digits):{'+' if signed else 'z'},}"
