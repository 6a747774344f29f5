"""Numbers as papers print them: halves round away from zero, so that 21.95 is 22.0.

A number is rounded as its shortest decimal text, which is what people read: the float 21.95 lies a
little below 21.95, and Python's own formats make 21.9 of it.
"""

import math
from decimal import ROUND_HALF_UP, Context, Decimal

_CONTEXT = Context(prec=400, rounding=ROUND_HALF_UP)  # digits of the largest float, and to spare


def rounded(value: float, digits: int) -> float:
    """A number with so many decimals; what is infinite or no number stays as it is."""
    return float(_rounded(Decimal(repr(float(value))), digits)) if math.isfinite(value) else value


def fixed(value: float, digits: int, *, signed: bool = False) -> str:
    """A number as text with so many decimals, thousands apart: `1,234.5`. signed: with its plus."""
    return _text(Decimal(repr(float(value))), digits, signed=signed)


def percent(share: float, digits: int = 1, *, signed: bool = False) -> str:
    """A share as text in per cent, without the sign: 0.2195 is `22.0`."""
    return _text(100 * Decimal(repr(float(share))), digits, signed=signed)


def percentage(share: float, digits: int = 1) -> float:
    """A share in per cent with so many decimals: 0.2195 is 22.0. What is no number stays so."""
    if not math.isfinite(share):
        return share
    return float(_rounded(100 * Decimal(repr(float(share))), digits))


def _rounded(value: Decimal, digits: int) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-digits), context=_CONTEXT)


def _text(value: Decimal, digits: int, *, signed: bool) -> str:
    if not value.is_finite():
        return str(float(value))
    # Without the plus a zero has no minus either; with it, the sign says on which side it lies.
    return f"{_rounded(value, digits):{'+' if signed else 'z'},}"
