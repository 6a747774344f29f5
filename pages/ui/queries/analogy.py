"""The view Solve: three words and a blank, each model's answers, and vector arithmetic."""

from collections.abc import Sequence
from html import escape
from itertools import zip_longest
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from lama_core.errors import UserError
from lama_core.queries.analogy import (
    AnalogyAsked,
    Solution,
    SolveRequest,
    VectorAnswer,
    analogy,
)
from lama_core.queries.analogy_templates import SLOTS, AnalogyQuestion
from lama_core.queries.kind import Answer
from lama_core.rounding import fixed
from pages.ui.queries import widgets
from pages.ui.queries.form import DrawField, Form, Widget
from pages.ui.queries.tab import Tab
from pages.ui.shared import predictions, screens, url_state
from pages.ui.shared.messages import plain
from pages.ui.shared.model_columns import Column, reserve_line

BLANK = "___"
# Query pair and candidate pair; the last word is the gold answer.
EXAMPLES = (
    ("Paris", "France", "Rome", "Italy"),
    ("Tokyo", "Japan", "Paris", "France"),
    ("king", "queen", "man", "woman"),
    ("walk", "walked", "play", "played"),
    ("big", "bigger", "small", "smaller"),
    ("dog", "puppy", "cat", "kitten"),
    ("happy", "unhappy", "able", "unable"),
    ("Einstein", "physicist", "Mozart", "composer"),
    ("hot", "cold", "high", "low"),
    ("one", "two", "first", "second"),
)
KEYS = [slot.lower() for slot in SLOTS]


def _follow() -> None:
    """Set the right answer to that of an example with the given words, or else to nothing."""
    words = [st.session_state.get(key) or "" for key in KEYS]
    at = SLOTS.index(st.session_state.get("blank") or "D")
    words[at] = ""
    known = {(*one[:at], "", *one[at + 1 :]): one[at] for one in EXAMPLES}
    st.session_state[KEYS[at]] = known.get(tuple(words), "")


def _draw_words(_: Any) -> tuple[str, ...]:
    """Draw the four words and the place of the blank; return the words, with `BLANK` there."""
    blank_slot = st.session_state.get("blank") or st.query_params.get("blank") or "D"
    words = []
    with st.container(key="analogy-words"):
        fields = st.columns([3, 3, 3, 3, 3.6], gap="small", vertical_alignment="bottom")
    for slot, first, field in zip(SLOTS, EXAMPLES[0], fields, strict=False):
        is_blank = slot == blank_slot
        word = field.text_input(
            f"{slot}: blank" if is_blank else slot,
            first,
            key=slot.lower(),
            bind=url_state.BOUND,
            on_change=None if is_blank else _follow,
            placeholder="right answer (optional)" if is_blank else "",
            help="The model doesn't see this word. Type the right answer to see its rank, or "
            "leave the field empty."
            if is_blank
            else None,
        )
        words.append(word or "")
    with fields[4]:
        chosen = url_state.pick(
            "Blank",
            SLOTS,
            key="blank",
            first="D",
            help="The word that the models predict: A is to B as C is to D.",
        )
    at = SLOTS.index(chosen or "D")
    return tuple(BLANK if number == at else word for number, word in enumerate(words))


def _write_words(request: SolveRequest) -> dict[str, Any]:
    """The URL parameters of the four words and of the place of the blank."""
    if len(request.text) != len(SLOTS) or request.text.count(BLANK) != 1:
        raise UserError(f"an analogy has four words; write one of them as {BLANK}.")
    at = request.text.index(BLANK)
    words = [request.gold if number == at else word for number, word in enumerate(request.text)]
    return dict(zip(KEYS, words, strict=True)) | {"blank": SLOTS[at]}


def _typed_gold(values: Any) -> str | None:
    """The word that the visitor typed at the blank."""
    at = values["text"].index(BLANK)
    return (st.session_state.get(KEYS[at]) or "").strip() or None


def _example(words: tuple[str, str, str, str]) -> widgets.Example:
    """A worked example, which fills in the four words."""
    a, b, c, d = words
    values = dict(zip(KEYS, words, strict=True)) | {"blank": "D"}
    return widgets.Example(f"{a} : {b} :: {c} : {d}", values)


def _layout(draw: DrawField) -> None:
    draw("text")
    draw("gold")
    models, template, more = st.columns([4, 4, 3], vertical_alignment="bottom")
    with models:
        draw("models")
    with template:
        draw("template")
    with more, st.container(horizontal=True, vertical_alignment="center"):
        widgets.draw_examples(map(_example, EXAMPLES), scrolls=True)
        with st.popover("Options", icon=":material/tune:"):
            draw("keep_query_words")
            draw("top_k")
            widgets.draw_cloze_options(draw)


FORM = Form(
    SolveRequest,
    {
        "text": Widget(_draw_words, _write_words),
        "gold": Widget(_typed_gold, lambda _: {}),
        "models": widgets.MODELS,
        "template": widgets.template_field("to-as", "template"),
        "keep_query_words": widgets.toggle_field(
            "keep_query_words",
            "Include the given words as candidates",
            key="keep",
            help="Off: the three given words are removed from the candidates, as is usual for "
            "vector arithmetic since Mikolov et al. 2013. On: you see whether a model just "
            "repeats a given word.",
        ),
        "top_k": widgets.TOP_K,
        **widgets.CLOZE_OPTIONS,
    },
    _layout,
)


def _draw_above(asked: AnalogyAsked) -> list[DeltaGenerator]:
    """Draw the sentence; return a placeholder for a line about the answers."""
    blank = '<b aria-label="blank">&nbsp;?&nbsp;</b>'
    text = blank.join(escape(part) for part in asked.shared.query.parts)
    st.html(f'<div class="lx-sentence">{text}</div>')
    return [reserve_line("solve")]


def _draw_solution(_: AnalogyAsked, column: Column[Solution]) -> None:
    """Draw a model's answers, and those of vector arithmetic."""
    predictions.draw_answers(column.answer.answer.blanks[0], column.colour)
    _draw_arithmetic(column.answer.baselines)


def _draw_arithmetic(answers: tuple[VectorAnswer, ...]) -> None:
    """Draw the answers of vector arithmetic on a model's input embeddings, a column per method."""
    if not answers:
        return
    rows = []
    lists = (answer.predictions for answer in answers)
    for rank, items in enumerate(zip_longest(*lists), start=1):
        cells = (
            f'<td class="word">{escape(item.token)}</td>'
            f'<td class="num muted">{fixed(item.score, 2)}</td>'
            if item
            else "<td></td><td></td>"
            for item in items
        )
        rows.append(f'<tr><td class="rank">{rank}</td>{"".join(cells)}</tr>')
    heads = "".join(f'<th>{answer.method}</th><th class="num">score</th>' for answer in answers)
    ranks = [
        f"{answer.method} {answer.gold_rank:,}"
        for answer in answers
        if answer.gold_rank is not None
    ]
    gold = (
        f'<div class="lx-muted">Rank of the right answer: {", ".join(ranks)}</div>' if ranks else ""
    )
    st.html(
        '<div class="lx-muted" title="Blank at D: 3CosAdd = cos(x, B - A + C), '
        '3CosMul = cos(x, B) cos(x, C) / cos(x, A)">'
        "Baseline: vector arithmetic on the model's input embeddings</div>"
        f'<table class="lx lx-small"><thead><tr><th>#</th>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>{gold}"
    )


def _draw_below(
    answer: Answer[SolveRequest, AnalogyQuestion, Solution], lines: Sequence[DeltaGenerator]
) -> None:
    """Draw the models' first answers in one line, and what was ranked."""
    with lines[0]:
        predictions.draw_first_answers([one.answer for one in answer.models], 0)
    candidates = answer.asked.candidates
    size = "each model's whole vocabulary"
    if candidates.words is not None:
        size = f"{len(candidates.words):,} words"
    removed = "" if answer.asked.request.keep_query_words else ", without the given words"
    st.caption(f"Ranked: {size} ({plain(candidates.name)}){removed}.")


ANALOGY = Tab(
    kind=analogy.kind,
    name="Analogy",
    opens=screens.ANALOGIES,
    caption="",
    form=FORM,
    above=_draw_above,
    draw=_draw_solution,
    describe=lambda one: predictions.describe(one.answer),
    below=_draw_below,
    exported="analogy",
)
