"""Sentences as strips of tokens: the less likely a token, the stronger its colour; or, the more it
adds to an answer or takes from it.

Every token goes through `html.escape`.
"""

import math
from collections.abc import Sequence
from html import escape

from lama_core.models.protocols import BLANK, StatementScores, TokenScores
from lama_core.rounding import fixed

# A log-probability of this or less has the full colour: one in 160,000.
FULL = -12.0
# What adds and what takes: people who can't tell red from green can tell these.
ADDS, TAKES = "#2c86c7", "#dd5b33"
STRONGEST = 45  # percent of the model's colour, so that the text stays readable on it


def _mixed(colour: str, share: float) -> str:
    return f"color-mix(in srgb, {colour} {STRONGEST * share:.0f}%, transparent)"


def _scale(low: str, colours: Sequence[str], high: str) -> str:
    gradient = f"linear-gradient(to right, {', '.join(colours)})"
    bar = f'<span style="background:{gradient}"></span>'
    return f'<div class="lx-scale lx-muted">{low}{bar}{high}</div>'


def _token(token: str, value: str, hint: str, colour: str, marked: bool) -> str:
    """A token with its value under it; marked: underlined."""
    return (
        f'<span class="lx-token{" marked" * marked}" title="{escape(token)}: {hint}" '
        f'style="background:{colour}">{escape(token)}<small>{value}</small></span>'
    )


def heat_scale(colour: str) -> str:
    """HTML of what the colours of a strip stand for."""
    ends = ("transparent", _mixed(colour, 1))
    return _scale("log-probability of a token: 0", ends, f"{FULL:.0f} or less")


def heat_strip(scores: TokenScores | StatementScores, colour: str) -> str:
    """HTML of a sentence's tokens, each with its log-probability under it.

    A token that was not scored has no colour and a dot. Those of a statement's answer are
    underlined.
    """
    unscored, marked = "not scored: nothing stands before it", [False] * len(scores.tokens)
    if isinstance(scores, StatementScores):
        unscored, marked = "not scored", scores.in_answer.tolist()
    cells = ""
    for token, value, inside in zip(scores.tokens, scores.log_probs.tolist(), marked, strict=True):
        if math.isnan(value):
            cells += _token(token, "·", unscored, _mixed(colour, 0), inside)
        else:
            ink = _mixed(colour, min(1.0, value / FULL))
            cells += _token(token, fixed(value, 1), f"{math.exp(value):.2g}", ink, inside)
    return f'<div class="lx-strip">{cells}</div>'


def shares_scale(most: float) -> str:
    """HTML of what the colours of `shares_strip` stand for; most: the largest value."""
    takes, adds = (f"{fixed(one, 1, signed=True)}" for one in (-most, most))
    colours = (_mixed(TAKES, 1), "transparent", _mixed(ADDS, 1))
    return _scale(f"takes {takes}", colours, f"adds {adds}")


def shares_strip(tokens: Sequence[str], values: Sequence[float | None], most: float) -> str:
    """HTML of a sentence's tokens, each with what it adds under it; a blank is underlined.

    values: None of a blank, or of what there was no time for: they have a dot. most: what has the
    full colour.
    """
    cells = ""
    for token, value in zip(tokens, values, strict=True):
        if value is None:
            cells += _token(token, "·", "not tried", "transparent", token == BLANK)
        else:
            share = min(1.0, abs(value) / most) if most else 0.0
            ink = _mixed(ADDS if value > 0 else TAKES, share)
            shown, hint = (fixed(value, n, signed=True) for n in (2, 4))
            cells += _token(token, shown, f"{hint} log-probability", ink, token == BLANK)
    return f'<div class="lx-strip">{cells}</div>'
