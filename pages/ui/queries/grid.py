"""Alternatives: the words at the blank of similar sentences, as a heat map and a table."""

from collections.abc import Sequence
from html import escape
from typing import NoReturn

import pandas as pd
import streamlit as st

from lama_core.candidates.lists import OWN, OWN_WITH_FUNCTION_WORDS
from lama_core.models.protocols import KINDS
from lama_core.queries.blank_answers import marked_answer
from lama_core.queries.grid import (
    GRID_EXAMPLE,
    MAX_GROUPS,
    MAX_SENTENCES,
    N_KNOWN,
    N_SHOWN,
    GridAnswer,
    GridAsked,
    GridCell,
    GridRequest,
    ModelGrid,
    grid,
)
from lama_core.queries.sentences import n_shared
from pages.ui.queries import widgets
from pages.ui.queries.form import DrawField, Form, Values, Widget
from pages.ui.queries.grid_chart import LEAST, SCALES, draw_heat_map, is_right, shown_word
from pages.ui.queries.tab import Tab
from pages.ui.shared import links, predictions, screens, url_state
from pages.ui.shared.messages import plain
from pages.ui.shared.model_columns import ModelColumn
from pages.ui.shared.style import theme
from pages.ui.shared.tables import draw_table
from pages.ui.shared.token_strips import colour_scale

COLOURS = ("probability", "rank")
MOST_NAMED = 8  # sentences whose first words are in the line above a heat map
NO_BREAK = "\N{NO-BREAK SPACE}"
# URL parameters of this view, and those of a sentence.
OURS = (
    "tab",
    "what",
    "grid",
    "grid_gold",
    "groups",
    "grid_k",
    "grid_by",
    "all_words",
    "text",
    "gold",
)
# URL parameters of the views whose sentences are opened here.
THEIRS = ("k", "book", "look", "explain", "changed", "sentences_many", "many_find", "many_show",
          "details")  # fmt: skip
RIGHT = "grid_gold"  # key: the right answer of a sentence
ALL_WORDS = "all_words"  # key: whether the heat maps have all words
# Sentence -> the candidates that have its answers.
EXAMPLES = {
    GRID_EXAMPLE: OWN,
    "The {nurse|engineer|farmer} said that ___ was tired.": OWN_WITH_FUNCTION_WORDS,
    "The {old|young} {man|woman} worked as a ___.": OWN,
}


def _layout(draw: DrawField) -> None:
    text, right, button = st.columns(widgets.QUERY_ROWS[1], vertical_alignment="bottom")
    with text:
        draw("texts")
    with right:
        st.text_input(
            "Right answer (optional)",
            key=RIGHT,
            bind=url_state.BOUND,
            help="Marked with ✓ in the heat maps, whichever sentence it belongs to.",
        )
    with button:
        widgets.draw_ask("Compare")
    widgets.draw_chips(
        widgets.Example(text, {"grid": text, "candidates": listed})
        for text, listed in EXAMPLES.items()
    )
    widgets.draw_models_and_options(draw, "top_k", "n_groups", cloze=True)


def _choose_groups(_: Values) -> int | None:
    n = st.slider(
        "Groups of words",
        1,
        MAX_GROUPS,
        1,
        key="groups",
        bind=url_state.BOUND,
        help="Groups the words by meaning, with the model's input embeddings (Ward's clustering). "
        "1: not grouped.",
    )
    return n if n > 1 else None


FORM = Form(
    GridRequest,
    {
        "texts": widgets.list_field(
            "texts",
            "Sentence with a blank and alternatives",
            key="grid",
            first=(GRID_EXAMPLE,),
            between="\n",
            height=110,
            help=f"Alternatives in braces make several sentences, at most {MAX_SENTENCES}. Or type "
            "the sentences, one per line.",
        ),
        "models": widgets.MODELS,
        "top_k": widgets.slider_field("top_k", "Words per sentence", 3, 30, 10, key="grid_k"),
        "n_groups": Widget(_choose_groups, lambda request: {"groups": request.n_groups or 1}),
        **widgets.CLOZE_OPTIONS,
    },
    _layout,
)


def open_alternatives(texts: Sequence[str], right: str = "", *, replaces: bool = True) -> NoReturn:
    """Open sentences here that were typed in another view; the URL keeps models and options.

    Args:
        texts: The sentences.
        right: The right answer of one of them, if known.
        replaces: Whether the entry in the browser's history replaces the current one.
    """
    there = {**links.params_without((*OURS, *THEIRS)), **screens.ALTERNATIVES, RIGHT: right}
    links.go(screens.ASK, {**there, "grid": "\n".join(texts)}, replaces=replaces)


def _open(cell: GridCell) -> None:
    """Open a cell's sentence on the tab Sentence."""
    text = cell.text.replace("[MASK]", "___")
    links.go(screens.ASK, {**links.params_without(OURS), "text": text, "gold": _right()})


def _draw_grid(asked: GridAsked, column: ModelColumn[ModelGrid]) -> None:
    """Draw a model's heat map, its table, and the words that all or single sentences have."""
    found, top_k = column.answer, asked.request.top_k
    names = names_of([query.text("___") for query in asked.shared[: len(found.answers)]])
    by_rank = st.session_state.get("grid_by") == COLOURS[1]
    most = None if st.session_state.get(ALL_WORDS) else N_SHOWN
    predictions.draw_conclusion(_first_words(found, names, by_rank=by_rank))
    clicked = draw_heat_map(found, names, most, top_k=top_k, by_rank=by_rank, right=_right())
    if clicked:
        _open(clicked)
    with st.expander("As a table"):
        if len(names) > 1:
            lines = {"every sentence": found.shared}
            lines |= {f"{name} only": found.only_in(at, top_k) for at, name in enumerate(names)}
            head = f"Words among the first {top_k} of every sentence, or of one sentence only"
            listed = (
                f"<div><b>{escape(where)}:</b> {escape(', '.join(words))}</div>"
                for where, words in lines.items()
                if words
            )
            st.html(f'<div class="lx-muted">{head}</div>{"".join(listed)}')
        st.caption(plain(found.note))
        rows = list(found.cells.values())
        columns: dict[str, list[object]] = {"word": [shown_word(row, _right()) for row in rows]}
        if any(row[0].group for row in rows):
            columns["group"] = [row[0].group for row in rows]
        for number, head in enumerate(names):
            columns[head] = [
                f"{predictions.probability(cell.prob)} ({cell.rank})"
                if cell.prob is not None
                else f"not among {N_KNOWN}"
                for cell in (row[number] for row in rows)
            ]
        picked = draw_table(
            pd.DataFrame(columns), key=f"grid table {found.name}", picks="single-cell", height=400
        )
        if picked.cell and picked.cell[1] in names:
            _open(rows[picked.cell[0]][names.index(picked.cell[1])])


def _right() -> str:
    """The typed right answer of a sentence, or empty."""
    return str(st.session_state.get(RIGHT) or "")


def _first_words(found: ModelGrid, names: list[str], *, by_rank: bool) -> str:
    """The first word of each sentence as HTML, with its probability unless `by_rank`."""
    parts = []
    for name, answer in zip(names, found.answers[:MOST_NAMED], strict=False):
        blank = answer.blanks[0]
        item, beats = blank.predictions[0], blank.beaten_by
        word = escape(
            marked_answer(item.token, item.begins, is_right(item.token, _right()))
        ).replace(" ", NO_BREAK)
        prob = "" if by_rank else NO_BREAK + predictions.probability(item.prob)
        after = predictions.unranked(beats.token if beats else "")
        parts.append(f"{escape(name)}: <b>{word}</b>{prob}{after}")
    return " · ".join([*parts, *["…"] * (len(names) > MOST_NAMED)])


def names_of(texts: list[str]) -> list[str]:
    """The words that differ between the sentences; whole sentences if nothing else does."""
    words = [text.split() for text in texts]
    left = n_shared(words)
    right = n_shared([each[left:][::-1] for each in words])
    names = [" ".join(each[left : len(each) - right]) for each in words]
    return names if len(texts) > 1 and all(names) and len(set(names)) == len(names) else texts


def _draw_above(asked: GridAsked) -> None:
    """Draw the sentences that the alternatives make, and the heat maps' options and scale."""
    texts = [escape(query.text("___")) for query in asked.shared]
    shown = texts[:MOST_NAMED] + [f"and {len(texts) - MOST_NAMED} more"] * (len(texts) > MOST_NAMED)
    st.html(f"<div><b>{len(texts)} sentences:</b> {' · '.join(shown)}</div>")
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        by = url_state.pick("Colour", COLOURS, key="grid_by", label_visibility="collapsed")
        least = f"{LEAST:f}".rstrip("0") + " or less"
        low, middle = (least, "0.01") if by == COLOURS[0] else (str(N_KNOWN), "10")
        st.html(colour_scale(f"log scale: {low}", SCALES[theme()], "1", middle), width="content")
        st.toggle("All words", key=ALL_WORDS, bind=url_state.BOUND)


def _draw_below(answer: GridAnswer, *_: object) -> None:
    sizes = {model.name: model.answers[0].n_candidates for model in answer.models}
    bases = {one.name: one.answers[0].blanks[0].shown_over() for one in answer.models}
    over = ", ".join(f"{predictions.short_title(name)} over {of}" for name, of in bases.items())
    over += "; compare colours within a model" * (len(set(bases.values())) > 1)
    arrow = "→: how the model continues the word in the sentence where it ranks best. "
    arrow *= any(row[0].begins for model in answer.models for row in model.cells.values())
    st.caption(
        predictions.describe_candidates(answer.asked.candidates, sizes)
        + f" Probabilities: {plain(over)}. "
        f"Rows: the {N_SHOWN} words with the best ranks, or with All words the first "
        f"{answer.asked.request.top_k} of each sentence; in the order of the sentences where they "
        f"rank best. Bold: in the sentence's first {answer.asked.request.top_k}; empty: not in its "
        f"first {N_KNOWN}. {arrow}Click a cell to open its sentence."
    )


def _describe(found: ModelGrid) -> str:
    kind, n = KINDS[found.kind].title, len(found.cells)
    n_shown = n if st.session_state.get(ALL_WORDS) else min(n, N_SHOWN)
    shown = f"{n_shown} of {n} words shown" if n_shown < n else f"{n} words"
    return predictions.join_details(found, kind, shown)


GRID = Tab(
    kind=grid.kind,
    name="Alternatives",
    opens=screens.ALTERNATIVES,
    caption="Change a word of a sentence and see how the answers change. Write the alternatives in "
    "braces.",
    form=FORM,
    language_of=lambda request: " ".join(request.texts).replace("___", ""),
    above=_draw_above,
    draw=_draw_grid,
    describe=_describe,
    per_row=3,
    below=_draw_below,
    exported="grid",
)
