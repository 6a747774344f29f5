"""The heat map of a grid."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from lama_core.queries.blank_answers import marked_answer
from lama_core.queries.grid import N_KNOWN, GridCell, ModelGrid
from lama_core.texts import word_key
from lama_core.views.figure import Axis, Figure
from lama_core.views.vega import between
from pages.ui.shared.figures import draw_figure
from pages.ui.shared.predictions import probability, short_title

ROW = 26  # pixels


@dataclass(frozen=True, slots=True)
class HeatMapLook:
    """How a heat map looks.

    Attributes:
        scale: The colours of unlikely and likely words.
        least: The probability with the colour of unlikely words.
        top_k: The greatest rank of bold numbers.
        by_rank: Whether the colour shows the rank instead of the probability.
        most_rows: The largest number of words; None for all words.
        right: The right answer of a sentence, whose row is marked; or empty.
    """

    scale: tuple[str, str]
    least: float
    top_k: int
    by_rank: bool
    most_rows: int | None
    right: str = ""


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


def is_right(word: str, right: str) -> bool | None:
    """True for the right answer; None for other words, which other sentences can need."""
    return True if right.strip() and word_key(word) == word_key(right) else None


def shown_word(row: Sequence[GridCell], right: str) -> str:
    """The word of a row, the longer word that it begins, and ✓ if it is the right answer."""
    return marked_answer(row[0].word, row[0].begins, is_right(row[0].word, right))


def draw_heat_map(found: ModelGrid, names: list[str], look: HeatMapLook) -> GridCell | None:
    """Draw the heat map of a model's words; return the clicked cell.

    names: the names of the sentences.
    """
    rows = shown_rows(found, look.most_rows)
    figure = grid_figure(rows, names, look, short_title(found.name))
    line = draw_figure(figure, {}, f"grid {found.name}", most=ROW * len(rows), legend=False)
    return None if line is None else rows[int(line["row"])][line["sentence"]]


def grid_figure(
    rows: list[tuple[GridCell, ...]], names: list[str], look: HeatMapLook, title: str
) -> Figure:
    """Return the heat map: a row for each word, a column for each sentence.

    Cells of words whose rank isn't known have no colour and no number. title: the model's.
    """
    least = math.log10(1 / N_KNOWN if look.by_rank else look.least)
    cells = []
    for at, row in enumerate(rows):
        for number, cell in enumerate(row):
            tone, text, ink = least, "", ""
            if cell.rank is not None and cell.prob is not None:
                tone = math.log10(1 / cell.rank if look.by_rank else max(cell.prob, look.least))
                text = f"{cell.rank}" if look.by_rank else probability(cell.prob)
                ink = between(look.scale, 1 - tone / least)
            known = f"rank {cell.rank}" if cell.rank else f"not among the first {N_KNOWN}"
            prob = f", probability {probability(cell.prob)}" if cell.prob is not None else ""
            said = f"{names[number]}\n{cell.word}: {known}{prob}"
            strong = (cell.rank or math.inf) <= look.top_k
            cells.append((str(at), number, tone, text, ink, strong, said))
    columns = ["row", "sentence", "tone", "text", "ink", "strong", "said"]
    shown = "ranks" if look.by_rank else "probabilities"
    words = [shown_word(row, look.right) for row in rows]
    groups = [row[0].group for row in rows]
    words = [
        word if of is None else f"{of} · {word}" for of, word in zip(groups, words, strict=True)
    ]
    return Figure(
        shape="heat map",
        frame=pd.DataFrame(cells, columns=columns),
        by=Axis(column="sentence", title="", ticks=dict(enumerate(names)), on_top=True),
        value=Axis(column="tone", title=shown),
        series="row",
        names={str(at): word for at, word in enumerate(words)},
        text="text",
        strong="strong",
        cell="ink",
        title=f"{title}: {shown}",
    )
