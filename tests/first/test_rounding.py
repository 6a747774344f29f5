"""Numbers as papers print them."""

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lama_core.rounding import fixed, percent, percentage, rounded

FINITE = st.floats(allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (21.95, 1, "22.0"),
        (0.5, 0, "1"),
        (-0.05, 1, "-0.1"),
        (2.675, 2, "2.68"),
        (0.125, 2, "0.13"),
        (31.14999, 1, "31.1"),
        (1234567.85, 1, "1,234,567.9"),
        (1e-300, 3, "0.000"),
    ],
)
def test_halves_round_away_from_zero(value: float, digits: int, text: str) -> None:
    assert fixed(value, digits) == text
    assert rounded(value, digits) == float(text.replace(",", ""))


def test_a_share_is_scaled_as_decimal() -> None:
    # 100 * 0.0185 is 1.8499999999999999 in floats.
    assert percent(0.0185) == "1.9"
    assert percent(439 / 2000) == "22.0"
    assert percentage(439 / 2000) == 22.0
    assert percent(439 / 2000, signed=True) == "+22.0"
    assert percent(-1 / 2000, signed=True) == "-0.1"


def test_what_rounds_to_zero_has_no_minus() -> None:
    assert [fixed(value, 1) for value in (-0.04, -0.0, 0.04)] == ["0.0"] * 3
    assert fixed(-0.05, 1) == "-0.1"
    assert percent(-0.0004) == "0.0"
    assert fixed(-0.04, 1, signed=True) == "-0.0", "a difference still says on which side it lies"


@given(FINITE, st.integers(0, 6))
def test_rounding_is_decimal_half_up(value: float, digits: int) -> None:
    told = Decimal(repr(value))
    step = Decimal(1).scaleb(-digits)
    # Halves away from zero, in whole numbers of the last decimal: no quantize, no context.
    whole, sign = divmod(abs(told), step) if abs(told) < 10**15 else (None, None)
    if whole is None:
        assert rounded(value, digits) == value
        return
    expected = (whole + (2 * sign >= step)) * step
    assert Decimal(fixed(value, digits).replace(",", "")) == expected.copy_sign(told)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_finite_number_stays_so(value: float) -> None:
    assert fixed(value, 1) == percent(value) == str(value)
    assert str(rounded(value, 1)) == str(percentage(value)) == str(value)
