"""Sentences as strips of coloured tokens.

The colour shows how unlikely a token is, or how much it raises or lowers an answer's
log-probability. All tokens are escaped with `html.escape`.
"""

import math
from collections.abc import Sequence
from html import escape

from lama_core.models.protocols import BLANK, StatementScores, TokenScores
from lama_core.rounding import fixed

# Log-probabilities of this value (a probability of 1 in 160,000) or less have the full colour.
FULL = -12.0
# Colours for raising and lowering that people with red-green blindness can tell apart.
ADDS, TAKES = "#2c86c7", "#dd5b33"


def _mixed(colour: str, share: float) -> str:
    # At most 45 percent of the model's colour, so that the text stays readable on it.
    return f"color-mix(in srgb, {colour} {45 * share:.0f}%, transparent)"


def colour_scale(low: str, colours: Sequence[str], high: str, middle: str = "") -> str:
    """HTML of a bar of colours between the texts of its ends. middle: the text on the bar."""
    gradient = f"linear-gradient(to right, {', '.join(colours)})"
    return (
        f'<div class="lx-scale"><div class="lx-muted">{low}</div>'
        f'<span style="background:{gradient}">{middle}</span>'
        f'<div class="lx-muted">{high}</div></div>'
    )


def _token(token: str, value: str, hint: str, colour: str, marked: bool) -> str:
    """HTML of a token with its value below. marked: whether it is underlined."""
    return (
        f'<span class="lx-token{" marked" * marked}" title="{escape(token)}: {hint}" '
        f'style="background:{colour}">{escape(token)}<small>{value}</small></span>'
    )


def _strip(cells: Sequence[str]) -> str:
    """HTML of a strip whose last token, usually a full stop, is never alone in its line."""
    last = "".join(cells[-2:])
    return f'<div class="lx-strip">{"".join(cells[:-2])}<span class="lx-end">{last}</span></div>'


def heat_scale(colour: str) -> str:
    """HTML of the colour scale of `heat_strip`."""
    return colour_scale(
        "log-probability of a token: 0",
        ("transparent", _mixed(colour, 1)),
        f"{FULL:.0f} or less",
    )


def heat_strip(scores: TokenScores | StatementScores, colour: str) -> str:
    """HTML of a sentence's tokens, each with its log-probability (natural) below.

    Tokens without a score have a dot and no colour. The tokens of a statement's answer are
    underlined.
    """
    unscored, marked = "not scored: it has no left context", [False] * len(scores.tokens)
    if isinstance(scores, StatementScores):
        unscored, marked = "not scored", scores.in_answer.tolist()
    cells: list[str] = []
    for token, value, inside in zip(scores.tokens, scores.log_probs.tolist(), marked, strict=True):
        if math.isnan(value):
            cells.append(_token(token, "·", unscored, _mixed(colour, 0), inside))
        else:
            hint, ink = f"probability {math.exp(value):.2g}", _mixed(colour, min(1.0, value / FULL))
            cells.append(_token(token, fixed(value, 1), hint, ink, inside))
    return _strip(cells)


def shares_scale(most: float) -> str:
    """HTML of the colour scale of `shares_strip`. most: the largest absolute value."""
    colours = (_mixed(TAKES, 1), "transparent", _mixed(ADDS, 1))
    return colour_scale(
        f"lowers {fixed(-most, 1, signed=True)}", colours, f"raises {fixed(most, 1, signed=True)}"
    )


def shares_strip(tokens: Sequence[str], values: Sequence[float | None], most: float) -> str:
    """HTML of a sentence's tokens, each with its effect on the answer below; blanks are underlined.

    Args:
        tokens: The tokens.
        values: Each token's effect on the log-probability (natural). None for blanks and for
            tokens that the time limit excluded; these have a dot.
        most: The absolute value with the full colour.
    """
    cells: list[str] = []
    for token, value in zip(tokens, values, strict=True):
        if value is None:
            cells.append(_token(token, "·", "no value", "transparent", token == BLANK))
        else:
            ink = _mixed(ADDS if value > 0 else TAKES, min(1.0, abs(value) / (most or 1.0)))
            shown, hint = (fixed(value, n, signed=True) for n in (2, 4))
            cells.append(_token(token, shown, f"{hint} log-probability", ink, token == BLANK))
    return _strip(cells)
