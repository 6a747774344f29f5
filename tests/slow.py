"""Which of a test's parameters are in the default run."""

from collections.abc import Iterable
from typing import Any

import pytest


def slow_but(kept: Iterable[Any], values: Iterable[Any]) -> list[Any]:
    """The values as parameters, marked `slow` unless they are among the kept ones."""
    kept = list(kept)
    several, slow = isinstance(next(iter(kept)), tuple), pytest.mark.slow
    return [
        value if value in kept else pytest.param(*(value if several else (value,)), marks=slow)
        for value in values
    ]
