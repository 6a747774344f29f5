"""Tables: a grid on wide screens, a list of cards on phones; `style.css` shows one of them.

A card's title is the row's pinned columns, or else its first text. Each other column is a line of
the card; a labelled column whose name begins with another column's, such as `MODEL interval`,
continues that column's line.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import streamlit as st
from msgspec import to_builtins
from streamlit.delta_generator import DeltaGenerator

from lama_core.glossary import explain

MOST_CARDS = 100
MOST_IN_SIGHT = 13  # columns; with more, the first ones stay in sight, which makes them paler
MOST_NARROW_COLUMNS = 7  # with more, `style.css` shows a hint on narrow screens
MOST_NARROW = 16  # characters of a line's label and value, if it shares the width with another
Picks = Literal["single-row", "multi-row", "single-cell", "row-or-cell", "rows-or-cell"]
# What the grid calls the picks; cards pick one row where the grid picks rows or a cell. Without
# columns, a click on a column's title would pick a cell of its first row.
GRID_PICKS: Mapping[str, Any] = {
    "single-cell": ("single-cell", "single-column"),
    "row-or-cell": ("single-row", "single-cell", "single-column"),
    "rows-or-cell": ("multi-row", "single-cell", "single-column"),
}
CARD_PICKS = {"row-or-cell": "single-row", "rows-or-cell": "single-row"}
# Pattern in a column's title -> the term of the glossary that explains it.
TERMS = {
    "log-prob": "Log-probability",
    "mean rank": "Rank",
    "macro": "Micro and macro average",
    "P@": "P@k",
    "chance": "Chance",
    "interval|95 %": "Interval",
    "kappa": "Kappa",
    "ECE": "Expected calibration error",
    "3Cos": "3CosAdd",
    "margin": "Margin",
    "excluded": "Excluded facts",
    "candidates": "Candidates",
    "^type( of relation)?$": "Relation",
}
ANSWER = " answer"  # ends the name of a column that other columns of its model continue
_JS = (Path(__file__).parent / "cards.js").read_text(encoding="utf-8")


@dataclass(slots=True)
class CardLine:
    """A line of a card.

    Attributes:
        label: The column's label.
        value: The cell's text.
        column: The column's name.
        more: The values of columns that continue the line.
        wide: Whether the line needs the card's whole width.
    """

    label: str
    value: str
    column: str
    more: str = ""
    wide: bool = False


@dataclass(frozen=True, slots=True)
class Card:
    """A row of a table as a card."""

    title: str
    lines: list[CardLine]


@dataclass(frozen=True, slots=True)
class Picked:
    """What the user picked in a table.

    Attributes:
        rows: The numbers of the ticked rows, or else the row of the cell.
        cell: The cell as (row, column).
        ticked: Whether `rows` are ticked in the grid.
    """

    rows: tuple[int, ...] = ()
    cell: tuple[int, str] | None = None
    ticked: bool = False


def draw_table(
    table: Any,
    *,
    key: str = "",
    picks: Picks | None = None,
    on_pick: Callable[[Picked], None] | None = None,
    place: DeltaGenerator | None = None,
    n_cards: int = 5,
    **options: Any,
) -> Picked:
    """Draw a table without its index; return what the user picked.

    Args:
        table: A DataFrame, or what makes one.
        key: The widget's key, if the user can pick.
        picks: What the user can pick, if anything.
        on_pick: Called with what is picked when it changes, before the page is drawn.
        place: Where to draw it.
        n_cards: How many cards are shown until the user opens the others.
        options: Passed to `st.dataframe`.
    """
    place = place or st.container(gap=None)
    frame = table if isinstance(table, pd.DataFrame) else pd.DataFrame(table)
    given = options.get("column_config") or {}
    options["column_config"] = {**given, **explained(frame, given)}
    cards = make_cards(frame, options["column_config"], options.get("column_order"))
    shown = options.get("column_order") or frame.columns
    if len(shown) <= MOST_IN_SIGHT:
        options["column_config"] = {
            name: {**one, "pinned": None} if isinstance(one, dict) else one
            for name, one in options["column_config"].items()
        }
    data = {
        "cards": to_builtins(cards),
        "n": len(frame),
        "nShown": n_cards,
        "picks": CARD_PICKS.get(picks or "", picks),
    }
    component = st.components.v2.component("lama_cards", js=_JS, isolate_styles=False)
    with place:
        if len(shown) > MOST_NARROW_COLUMNS:
            st.html('<div class="lx-muted lx-wider">More columns: scroll to the right.</div>')
        if not picks:
            st.dataframe(frame, key=key or None, hide_index=True, **options)
            component(data=data)
            return Picked()
        cards_key = f"{key} cards"

        find_picked = partial(picked_of, n_rows=len(frame))

        def changed() -> None:
            if on_pick:
                on_pick(find_picked(st.session_state[key], st.session_state[cards_key]))

        event = st.dataframe(
            frame,
            key=key,
            hide_index=True,
            selection_mode=GRID_PICKS.get(picks, picks),
            on_select=changed if on_pick else "rerun",
            **options,
        )
        return find_picked(event, component(data=data, key=cards_key, on_picked_change=changed))


def explained(frame: pd.DataFrame, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration of columns that lack a help text, with the glossary's explanation.

    config: column -> its configuration, a label, or None if it is hidden.
    """
    found: dict[str, Any] = {}
    for name in map(str, frame.columns):
        one = config.get(name, {})
        settings = {"label": one} if isinstance(one, str) else one
        if settings is None or settings.get("help"):
            continue
        terms = (TERMS[part] for part in TERMS if re.search(part, settings.get("label") or name))
        if term := next(terms, ""):
            found[name] = {**st.column_config.Column(), **settings, "help": explain(term)}
    return found


def picked_of(event: Any, cards: Any, n_rows: int) -> Picked:
    """What was picked in the grid, or else in the cards; without rows that the table lacks."""
    cells = [(int(row), str(column)) for row, column, _ in (cards or {}).get("picked") or ()]
    found = event["selection"]
    cells = [tuple(cell) for cell in found["cells"]] or cells
    rows = tuple(found["rows"]) or tuple(row for row, _ in cells)
    cells = [cell for cell in cells if 0 <= cell[0] < n_rows]
    rows = tuple(row for row in rows if 0 <= row < n_rows)
    return Picked(rows, cells[0] if cells else None, bool(rows and found["rows"]))


def make_cards(frame: pd.DataFrame, config: Mapping[str, Any], order: Any = None) -> list[Card]:
    """Return a card per row, with the columns that the grid shows."""
    columns = [str(name) for name in (order or frame.columns)]
    columns = [name for name in columns if config.get(name, "") is not None]
    given = {name: config.get(name) or {} for name in columns}
    settings = {n: {"label": one} if isinstance(one, str) else one for n, one in given.items()}
    texts = [name for name in columns if pd.api.types.is_string_dtype(frame[name])]
    titles = [name for name in columns if settings[name].get("pinned")] or (texts or columns)[:1]
    cards = []
    for row in frame.head(MOST_CARDS).to_dict("records"):
        shown = {name: _text(row[name], settings[name]) for name in columns}
        below = {name: text for name, text in shown.items() if text and name not in titles}
        title = " · ".join(filter(None, map(shown.get, titles)))
        cards.append(Card(title, _card_lines(below, settings)))
    lines = [line for card in cards for line in card.lines]
    # Two such lines don't fit side by side.
    wide = {one.column for one in lines if one.more or len(one.label + one.value) > MOST_NARROW}
    for line in lines:
        line.wide = line.column in wide
    return cards


def _card_lines(shown: Mapping[str, str], settings: Mapping[str, dict[str, Any]]) -> list[CardLine]:
    """A line for each column; values of columns whose names continue its name are added to it.

    Of "MiniLM-MLM twin" and "MiniLM-MLM twin 95 %" the second continues the first, but the first
    isn't a part of "MiniLM-MLM".
    """
    continued = {one for one in settings for name in settings if name.startswith(f"{one} ")}
    lines: dict[str, CardLine] = {}  # by the beginning of the names of columns that continue it
    for name, text in shown.items():
        label = settings[name].get("label")
        begun = [one for one in lines if name.startswith(f"{one} ")]
        if begun and label and name not in continued and not name.endswith(ANSWER):
            first = lines[max(begun, key=len)]
            first.more += f"{', ' if first.more else ''}{label} {text}"
        else:
            lines[name.removesuffix(ANSWER)] = CardLine(label or name, text, name)
    return [*lines.values()]


def _text(value: Any, setting: Mapping[str, Any]) -> str:
    """A cell as the grid shows it; empty if it has no value."""
    form = (setting.get("type_config") or {}).get("format")
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    if pd.isna(value):
        return ""
    if isinstance(value, str):
        return value
    if value is True or value is False:
        return "yes" if value else "no"
    if form and "%" in form:
        return str(form % value)
    number = f"{value:,.4f}" if form else f"{value:.4f}"
    return number.rstrip("0").rstrip(".") if isinstance(value, float) else number.split(".")[0]
