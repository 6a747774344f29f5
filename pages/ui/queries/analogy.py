"""The view Solve: three words and a blank, each model's answers, and vector arithmetic."""

import re
from collections.abc import Sequence
from html import escape
from itertools import zip_longest
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from lama_core.errors import UserError
from lama_core.glossary import explain
from lama_core.grouping import grouped
from lama_core.queries.analogy import (
    AnalogyAsked,
    Solution,
    SolveRequest,
    analogy,
)
from lama_core.queries.analogy_templates import SLOTS, AnalogyQuestion
from lama_core.queries.kind import Answer
from lama_core.rounding import fixed
from lama_core.texts import word_key
from pages.ui.queries import widgets
from pages.ui.queries.form import DrawField, Form, Widget
from pages.ui.queries.outside_candidates import draw_outside_candidates
from pages.ui.queries.tab import Tab
from pages.ui.shared import predictions, screens, url_state
from pages.ui.shared.model_columns import ModelColumn, reserve_line

BLANK, MISSING = "___", "?"
# Analogies; the last word is the gold answer. The first ones are always shown: MiniLM-MLM and its
# twin have the first answer right, and one of them the others.
EXAMPLES = (
    "Paris : France :: Rome : Italy",
    "man : king :: woman : queen",
    "day : week :: month : year",
    "big : bigger :: small : smaller",
    "Tokyo : Japan :: Paris : France",
    "Portugal : Lisbon :: Sweden : Stockholm",
    "hot : cold :: high : low",
    "big : large :: small : little",
    "quick : quickly :: slow : slowly",
    "happy : unhappy :: able : unable",
    "teach : teacher :: write : writer",
    "know : knowing :: think : thinking",
    "student : students :: year : years",
    "walk : walked :: play : played",
)
# The best template for MiniLM-MLM and its twin, with which the tab opens.
OPENING = "rel-same"
IN_WORDS = re.compile(r"(.+?) is to (.+?) as (.+?) is to (.+?)\.?")


def read_words(line: str) -> tuple[str, ...]:
    """The four words of an analogy, with `BLANK` for a question mark or three underscores.

    Raises:
        UserError: If the line doesn't have four words, one of them missing.
    """
    if spoken := IN_WORDS.fullmatch(line.strip()):
        words = list(spoken.groups())
    else:
        words = [word for pair in line.split("::") for word in re.split(r"\s:\s|:", pair)]
    words = [BLANK if word.strip() in (MISSING, BLANK) else word.strip() for word in words]
    if len(words) != len(SLOTS) or words.count(BLANK) != 1 or not all(words):
        raise UserError("Write an analogy as A : B :: C : ?, with a question mark for one word.")
    return tuple(words)


FIELD = url_state.ExampleField(
    "solve",
    "solution",
    lambda: [(f"{line.rpartition(' ')[0]} {MISSING}", line.split()[-1]) for line in EXAMPLES],
)


def _line_params(request: SolveRequest) -> dict[str, Any]:
    """The URL parameters of the line."""
    if len(request.text) != len(SLOTS) or request.text.count(BLANK) != 1:
        raise UserError(f"an analogy has four words; write one of them as {BLANK}.")
    a, b, c, d = (MISSING if word == BLANK else word for word in request.text)
    return {FIELD.texts: f"{a} : {b} :: {c} : {d}"}


def _layout(draw: DrawField) -> None:
    widgets.open_with_template("template", OPENING, FIELD.texts)
    FIELD.start()
    line, right, button = st.columns([5, 1.9, 1.3], vertical_alignment="bottom")
    with right:
        draw("gold")
    with button:
        widgets.draw_ask("Solve")
    examples = widgets.examples_of(FIELD)
    widgets.draw_chips(examples[:4])
    widgets.draw_models_and_options(
        draw,
        "template",
        "keep_query_words",
        "top_k",
        cloze=True,
        more=lambda _: widgets.draw_examples(
            examples, caption="Pairs of facts, meanings and forms of words."
        ),
    )
    with line:
        draw("text")


FORM = Form(
    SolveRequest,
    {
        "text": Widget(
            lambda _: read_words(
                FIELD.type(
                    "Analogy",
                    help="Type or paste four words, with a question mark for the one that the "
                    "models predict: A : B :: C : ?",
                )
            ),
            _line_params,
        ),
        "gold": widgets.typed_gold_field(
            key=FIELD.golds,
            help="The models don't see this word. Its rank is shown for every model.",
        ),
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
    """Draw the analogy in words; return a placeholder for the verdict and the first answers."""
    a, b, c, d = (
        predictions.BLANK if word == BLANK else escape(word) for word in asked.request.text
    )
    st.html(f'<div class="lx-sentence">{a} is to {b} as {c} is to {d}</div>')
    return [reserve_line("solve")]


def _draw_solution(asked: AnalogyAsked, column: ModelColumn[Solution]) -> None:
    """Draw a model's answers, and those of vector arithmetic."""
    blank, answers = column.answer.answer.blanks[0], column.answer.baselines
    predictions.draw_answers(blank, column.colour, asked.request.candidates)
    if not answers:
        return
    gold, marks = word_key(asked.request.gold or ""), ("{}", "<b>{} ✓</b>")
    rows = []
    for rank, items in enumerate(zip_longest(*(one.predictions for one in answers)), start=1):
        cells = (
            '<td class="word">'
            f"{marks[word_key(item.token) == gold].format(escape(item.token))}</td>"
            f'<td class="num muted {predictions.DETAIL}">{fixed(item.score, 2)}</td>'
            if item
            else f'<td></td><td class="{predictions.DETAIL}"></td>'
            for item in items
        )
        rows.append(f'<tr><td class="rank">{rank}</td>{"".join(cells)}</tr>')
    heads = "".join(
        f'<th>{answer.method}</th><th class="num {predictions.DETAIL}">score</th>'
        for answer in answers
    )
    ranks = [
        f"{answer.method} {answer.gold_rank:,}"
        for answer in answers
        if answer.gold_rank is not None
    ]
    line = (
        f'<div class="lx-muted {predictions.DETAIL}">Rank of the right answer: '
        f"{', '.join(ranks)}</div>"
    ) * bool(ranks)
    st.html(
        "<details><summary>Vector arithmetic</summary>"
        '<div class="lx-muted">On the model\'s input embeddings</div>'
        f'<table class="lx lx-small"><thead><tr><th>#</th>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>{line}</details>"
    )


def _verdict(models: Sequence[Solution], gold: str) -> str:
    """HTML: in how many models the right answer is first, in the sentence and by arithmetic."""
    first = sum(one.answer.blanks[0].is_right is True for one in models)
    text = f"Models with <b>{escape(gold)}</b> first: "
    text += f"<b>{first} of {len(models)}</b> in the sentence"
    ranks = grouped((each.method, each.gold_rank) for one in models for each in one.baselines)
    counts: dict[str, str] = {
        how: f"<b>{each.count(1)} of {len(each)}</b>" for how, each in ranks.items()
    }
    if len(counts) > 1 == len(set(counts.values())):
        counts = {"both formulas": counts.popitem()[1]}
    arithmetic = " and ".join(f"{count} ({method})" for method, count in counts.items())
    return f"{text}, by vector arithmetic {arithmetic}." if counts else f"{text}."


def _draw_below(
    answer: Answer[SolveRequest, AnalogyQuestion, Solution],
    lines: Sequence[DeltaGenerator],
    _: object,
) -> None:
    """Draw the verdict, the models' first answers in one line, and what was ranked."""
    request = answer.asked.request
    answers = [one.answer for one in answer.models]
    with lines[0].container(gap="xsmall"):
        if request.gold:
            predictions.draw_conclusion(_verdict(answer.models, request.gold))
        else:
            predictions.draw_first_answers({one.name: one.blanks[0] for one in answers})
        asked = predictions.with_blank(answer.asked.shared.query.parts, "___")
        st.html(f'<div class="lx-muted">Sentence: {asked}</div>')
        with st.container(horizontal=True, vertical_alignment="center"):
            draw_outside_candidates("analogy", answers, 0)
    st.caption(
        predictions.describe_candidates(
            answer.asked.candidates,
            {one.name: one.n_candidates for one in answers},
            without="" if request.keep_query_words else ", without the given words",
        )
    )


ANALOGY = Tab(
    kind=analogy.kind,
    name="Analogy",
    opens=screens.ANALOGIES,
    caption="A is to B as C is to which word? Each model answers in a sentence, and by vector "
    "arithmetic.",
    help=explain("3CosAdd"),
    form=FORM,
    above=_draw_above,
    draw=_draw_solution,
    describe=lambda one: predictions.describe(one.answer),
    below=_draw_below,
    exported="analogy",
    has_details=True,
)
