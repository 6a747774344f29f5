"""The heat map of a grid, imported only when it is drawn: the chart library is slow to import."""

import math
import textwrap
from dataclasses import dataclass
from html import escape

import pandas as pd

from lama_core.queries.grid import N_KNOWN, GridCell, ModelGrid
from pages.ui.shared import charts
from pages.ui.shared.predictions import probability, short_title

MOST_LARGE = 5  # sentences; more have tilted names and smaller numbers
LINE = 8  # letters in a line of a sentence's name


@dataclass(frozen=True, slots=True)
class HeatMapLook:
    """How a heat map looks.

    Attributes:
        scale: The colours of unlikely and likely words.
        least: The probability with the colour of unlikely words.
        top_k: The greatest rank of bold numbers.
        by_rank: Whether the colour shows the rank instead of the probability.
        most_rows: The largest number of words; None for all words.
    """

    scale: tuple[str, str]
    least: float
    top_k: int
    by_rank: bool
    most_rows: int | None


def _place(row: tuple[GridCell, ...]) -> tuple[int, int, int]:
    """A row's group, and the sentence where the word ranks best with its rank there."""
    rank, sentence = min((cell.rank or N_KNOWN + 1, cell.sentence) for cell in row)
    return row[0].group or 0, sentence, rank


def shown_rows(found: ModelGrid, most: int | None) -> list[tuple[GridCell, ...]]:
    """The rows of the words with the best ranks, in the order of their best sentences.

    most: the largest number of rows; None for all.
    """
    best = sorted(found.cells.values(), key=lambda row: _place(row)[2])[:most]
    return sorted(best, key=_place)


def draw_heat_map(found: ModelGrid, names: list[str], look: HeatMapLook) -> GridCell | None:
    """Draw the heat map of a model's words; return the clicked cell.

    names: the names of the sentences.
    """
    rows, by_rank = shown_rows(found, look.most_rows), look.by_rank

    def tone(cell: GridCell) -> float | None:
        if cell.rank is None or cell.prob is None:
            return None
        return -math.log10(cell.rank) if by_rank else math.log10(max(cell.prob, look.least))

    def text(cell: GridCell) -> str:
        if cell.rank is None or cell.prob is None:
            return ""
        shown = f"{cell.rank}" if by_rank else probability(cell.prob)
        return f"<b>{shown}</b>" if cell.rank <= look.top_k else shown

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
        colorscale=list(zip((0, 1), look.scale, strict=True)),
        zmin=math.log10(1 / N_KNOWN if by_rank else look.least),
        zmax=0,
        textfont_color=charts.ink(),
        textfont_size=13 if len(names) <= MOST_LARGE else 9,
        showscale=False,
        hoverinfo="skip",  # the marks of `add_clicks` have texts
    )
    cells = [
        {"column": number, "row": at, "hover": hover(at, number)}
        for at in range(len(rows))
        for number in range(len(names))
    ]
    charts.add_clicks(figure, pd.DataFrame(cells), ("row", "column"))
    ends = [-0.5, len(names) - 0.5]
    figure.update(
        hoverdistance=60,
        yaxis_range=charts.rows_down(rows),
        xaxis={"side": "top", "range": ends, "autotickangles": [30, 90]},
        height=60 + 22 * len(rows),
    )
    if len(names) <= MOST_LARGE:
        lines = [textwrap.wrap(charts.short_label(name), LINE) for name in names]
        shown = ["<br>".join(map(escape, each)) for each in lines]
        figure.update(xaxis={"ticktext": shown, "tickangle": 0})
    title = f"{short_title(found.name)}: {'ranks' if by_rank else 'probabilities'}"
    clicked = charts.draw_chart(figure, f"grid {found.name}", title=title)
    if not clicked:
        return None
    at, number = clicked[0]["customdata"]
    return rows[at][number]
