"""Sentences as strips of tokens: the less likely a token, the stronger its colour; or, the more it
adds to an answer or takes from it.

Every token goes through `html.escape`.
"""

import math
from collections.abc import Sequence
from html import escape

from lama_core.models.base import BLANK, StatementScores, TokenScores
from lama_core.rounding import fixed

# A log-probability of this or less has the full colour: one in 160,000.
FULL = -12.0
# What adds and what takes: people who can't tell red from green can tell these.
ADDS, TAKES = "#2c86c7", "#dd5b33"
STRONGEST = 45  # percent of the model's colour, so that the text stays readable on it

CSS = """
.lx-strip { display: flex; flex-wrap: wrap; gap: 2px; margin: .15rem 0 .7rem; }
.lx-token { display: inline-flex; flex-direction: column; align-items: center; padding: .1rem .3rem;
            border-radius: 3px; line-height: 1.25; overflow-wrap: anywhere; }
.lx-token.marked { border-bottom: 2px solid currentColor; border-radius: 3px 3px 0 0; }
.lx-token small { font-size: .68rem; font-variant-numeric: tabular-nums; }
.lx-scale { display: flex; gap: .4rem; align-items: center; flex-wrap: wrap; }
.lx-scale span { display: inline-block; width: 7rem; height: .8rem; border-radius: 3px;
                 border: 1px solid color-mix(in srgb, currentColor 35%, transparent); }
.lx-pair { display: flex; gap: .5rem; align-items: baseline; flex-wrap: wrap; margin-top: .2rem; }
.lx-pair b { font-size: 1.05rem; overflow-wrap: anywhere; }
"""


def heat_scale(colour: str) -> str:
    """HTML of what the colours of a strip stand for."""
    full = f"color-mix(in srgb, {colour} {STRONGEST}%, transparent)"
    return (
        '<div class="lx-scale lx-muted">log-probability of a token: 0'
        f'<span style="background:linear-gradient(to right, transparent, {full})"></span>'
        f"{FULL:.0f} or less</div>"
    )


def heat_strip(scores: TokenScores | StatementScores, colour: str) -> str:
    """HTML of a sentence's tokens, each with its log-probability under it.

    A token that was not scored has no colour and a dot. Those of a statement's answer are
    underlined.
    """
    cells = []
    unscored, marked = "not scored: nothing stands before it", [False] * len(scores.tokens)
    if isinstance(scores, StatementScores):
        unscored, marked = "not scored", scores.in_answer.tolist()
    values = scores.log_probs.tolist()
    for token, value, inside in zip(scores.tokens, values, marked, strict=True):
        known = not math.isnan(value)
        share = STRONGEST * min(1.0, value / FULL) if known else 0.0
        shown = fixed(value, 1) if known else "·"
        hint = f"{math.exp(value):.2g}" if known else unscored
        cells.append(
            f'<span class="lx-token{" marked" * inside}" title="{escape(token)}: {hint}" '
            f'style="background:color-mix(in srgb, {colour} {share:.0f}%, transparent)">'
            f"{escape(token)}"
            f"<small>{shown}</small></span>"
        )
    return f'<div class="lx-strip">{"".join(cells)}</div>'


def shares_scale(most: float) -> str:
    """HTML of what the colours of `shares_strip` stand for; most: the largest value."""
    full = [f"color-mix(in srgb, {colour} {STRONGEST}%, transparent)" for colour in (TAKES, ADDS)]
    return (
        f'<div class="lx-scale lx-muted">takes {fixed(-most, 1, signed=True)}'
        f'<span style="background:linear-gradient(to right, {full[0]}, transparent, {full[1]})">'
        f"</span>adds {fixed(most, 1, signed=True)}</div>"
    )


def shares_strip(tokens: Sequence[str], values: Sequence[float | None], most: float) -> str:
    """HTML of a sentence's tokens, each with what it adds under it; a blank is underlined.

    values: None of a blank, or of what there was no time for: they have a dot. most: what has the
    full colour.
    """
    cells = []
    for token, value in zip(tokens, values, strict=True):
        share = 0.0 if value is None or not most else STRONGEST * min(1.0, abs(value) / most)
        colour = ADDS if value is None or value > 0 else TAKES
        shown = "·" if value is None else fixed(value, 2, signed=True)
        hint = "not tried" if value is None else f"{fixed(value, 4, signed=True)} log-probability"
        cells.append(
            f'<span class="lx-token{" marked" * (token == BLANK)}" title="{escape(token)}: {hint}" '
            f'style="background:color-mix(in srgb, {colour} {share:.0f}%, transparent)">'
            f"{escape(token)}<small>{shown}</small></span>"
        )
    return f'<div class="lx-strip">{"".join(cells)}</div>'
