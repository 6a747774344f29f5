"""The heat map of a grid, imported only when it is drawn: the chart library is slow to import."""

import math
from html import escape

import pandas as pd

from lama_core.queries.grid import N_KNOWN, GridCell, ModelGrid
from pages.ui.shared import charts
from pages.ui.shared.predictions import probability, short_title

MOST_ROWS = 12


def _best_rank(row: tuple[GridCell, ...]) -> int:
    return min(cell.rank or N_KNOWN + 1 for cell in row)


def shown_rows(found: ModelGrid, *, every: bool) -> list[tuple[GridCell, ...]]:
    """The rows of the `MOST_ROWS` words with the best ranks, or of all words, in their order."""
    rows = list(found.cells.values())
    best = rows if every else sorted(rows, key=_best_rank)[:MOST_ROWS]
    return [row for row in rows if row in best]


def draw_heat_map(
    found: ModelGrid,
    names: list[str],
    scale: tuple[str, str],
    least: float,
    *,
    by_rank: bool,
    every: bool,
) -> GridCell | None:
    """Draw the heat map of a model's words; return the clicked cell.

    Args:
        found: The grid.
        names: The names of the sentences.
        scale: The colours of unlikely and likely words.
        least: The probability with the colour of unlikely words.
        by_rank: Whether the colour shows the rank instead of the probability.
        every: Whether it has all words.
    """
    rows = shown_rows(found, every=every)

    def tone(cell: GridCell) -> float | None:
        if cell.rank is None or cell.prob is None:
            return None
        return -math.log10(cell.rank) if by_rank else math.log10(max(cell.prob, least))

    def text(cell: GridCell) -> str:
        if cell.rank is None or cell.prob is None:
            return ""
        return f"{cell.rank}" if by_rank else probability(cell.prob)

    def hover(at: int, number: int) -> str:
        cell = rows[at][number]
        known = f"rank {cell.rank}" if cell.rank else f"not among the first {N_KNOWN}"
        prob = f", probability {probability(cell.prob)}" if cell.prob is not None else ""
        return f"{escape(names[number])}<br>{escape(cell.word)}: {known}{prob}"

    words = [
        f"{row[0].group} · {row[0].word}" if row[0].group is not None else row[0].word
        for row in rows
    ]
    figure = charts.heat_map(
        [[tone(cell) for cell in row] for row in rows],
        [[text(cell) for cell in row] for row in rows],
        ("", words),
        ("", names),
        colorscale=list(zip((0, 1), scale, strict=True)),
        zmin=math.log10(1 / N_KNOWN if by_rank else least),
        zmax=0,
        textfont_color=charts.ink(),
        showscale=False,
    )
    cells = [
        {"column": number, "row": at, "hover": hover(at, number)}
        for at in range(len(rows))
        for number in range(len(names))
    ]
    charts.add_clicks(figure, pd.DataFrame(cells), "column", "row", ("row", "column"))
    figure.update_yaxes(autorange="reversed")
    figure.update_xaxes(side="top")
    figure.update_layout(height=120 + 22 * len(rows))
    title = f"{short_title(found.name)}: {'ranks' if by_rank else 'probabilities'}"
    clicked = charts.draw_chart(figure, f"grid {found.name}", title=title)
    if not clicked:
        return None
    at, number = clicked[0]["customdata"]
    return rows[at][number]
