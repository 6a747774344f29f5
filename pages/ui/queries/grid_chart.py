"""The heat map of a grid."""

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

from lama_core.queries.blank_answers import marked_answer
from lama_core.queries.grid import N_KNOWN, GridCell, ModelGrid
from lama_core.texts import word_key
from lama_core.views.figure import Axis, Figure
from lama_core.views.vega import between
from pages.ui.shared.figures import draw_figure
from pages.ui.shared.predictions import probability, short_title
from pages.ui.shared.style import theme

ROW = 26  # pixels
LEAST = 1e-4  # the probability with the colour of unlikely words
# Theme -> colours of unlikely and likely words, the same for all models. The page's text colour is
# readable on both, and likely words differ most from the page.
SCALES = {"light": ("#eaf3fb", "#5ba4e3"), "dark": ("#1a2733", "#1f6aa5")}


def _place(row: tuple[GridCell, ...]) -> tuple[int, int, int]:
    """A row's group, and the sentence where the word ranks best with its rank there."""
    rank, sentence = min((cell.rank or N_KNOWN + 1, cell.sentence) for cell in row)
    return row[0].group or 0, sentence, rank


def is_right(word: str, right: str) -> bool | None:
    """True for the right answer; None for other words, which other sentences can need."""
    return True if right.strip() and word_key(word) == word_key(right) else None


def shown_word(row: Sequence[GridCell], right: str) -> str:
    """The word of a row, the longer word that it begins, and ✓ if it is the right answer."""
    return marked_answer(row[0].word, row[0].begins, is_right(row[0].word, right))


def draw_heat_map(
    found: ModelGrid, names: list[str], most: int | None, **options: Any
) -> GridCell | None:
    """Draw the heat map of a model's words; return the clicked cell.

    The words are those with the best ranks, in the order of their best sentences.

    Args:
        found: The model's words.
        names: The names of the sentences.
        most: The largest number of words; None for all words.
        options: Of `grid_figure`.
    """
    best = sorted(found.cells.values(), key=lambda row: _place(row)[2])[:most]
    rows = sorted(best, key=_place)
    figure = grid_figure(rows, names, short_title(found.name), **options)
    line = draw_figure(figure, {}, f"grid {found.name}", most=ROW * len(rows), legend=False)
    return None if line is None else rows[int(line["row"])][line["sentence"]]


def grid_figure(
    rows: list[tuple[GridCell, ...]],
    names: list[str],
    title: str,
    *,
    top_k: int,
    by_rank: bool,
    right: str = "",
) -> Figure:
    """Return the heat map: a row for each word, a column for each sentence.

    Cells of words whose rank isn't known have no colour and no number.

    Args:
        rows: The cells of each word.
        names: The names of the sentences.
        title: The model's.
        top_k: The greatest rank of bold numbers.
        by_rank: Whether the colour shows the rank instead of the probability.
        right: The right answer of a sentence, whose row is marked; or empty.
    """
    least = math.log10(1 / N_KNOWN if by_rank else LEAST)
    cells, scale = [], SCALES[theme()]
    for at, row in enumerate(rows):
        for number, cell in enumerate(row):
            tone, text, ink = least, "", ""
            if cell.rank is not None and cell.prob is not None:
                tone = math.log10(1 / cell.rank if by_rank else max(cell.prob, LEAST))
                text = f"{cell.rank}" if by_rank else probability(cell.prob)
                ink = between(scale, 1 - tone / least)
            said = f"{names[number]}\n{cell.word}: "
            said += f"rank {cell.rank}" if cell.rank else f"not among the first {N_KNOWN}"
            said += f", probability {probability(cell.prob)}" if cell.prob is not None else ""
            strong = (cell.rank or math.inf) <= top_k
            cells.append((str(at), number, tone, text, ink, strong, said))
    columns = ["row", "sentence", "tone", "text", "ink", "strong", "said"]
    shown = "ranks" if by_rank else "probabilities"
    groups = ["" if row[0].group is None else f"{row[0].group} · " for row in rows]
    return Figure(
        shape="heat map",
        frame=pd.DataFrame(cells, columns=columns),
        by=Axis(column="sentence", title="", ticks=dict(enumerate(names)), on_top=True),
        value=Axis(column="tone", title=shown),
        series="row",
        names={str(at): groups[at] + shown_word(row, right) for at, row in enumerate(rows)},
        text="text",
        strong="strong",
        cell="ink",
        title=f"{title}: {shown}",
    )
