"""Question: models answer a question in their own words."""

import time
from functools import partial
from html import escape

import numpy as np
import streamlit as st

from lama_core.api.generation import (
    DEFAULT_MODEL,
    GOLD_SEPARATOR,
    MAX_TOKENS,
    MOST_TOKENS,
    AskAnswer,
    AskRequest,
    ModelText,
    can_generate,
)
from lama_core.rounding import fixed
from pages.ui.queries import history, pins
from pages.ui.shared import cache, predictions, url_state
from pages.ui.shared.export import draw_answer_export
from pages.ui.shared.messages import counted, plain
from pages.ui.shared.model_columns import Column, draw_language_note, query_models
from pages.ui.shared.token_strips import heat_scale, heat_strip

# Questions with their right answers.
EXAMPLES = (
    ("What is the capital of Norway?", "Oslo"),
    ("Who wrote Don Quixote?", "Miguel de Cervantes | Cervantes"),
    ("What is the largest planet of the solar system?", "Jupiter"),
    ("Which language do most people speak in Brazil?", "Portuguese"),
    ("In which year did the First World War begin?", "1914"),
    ("Is a whale a fish or a mammal?", "mammal"),
)
FIELD = url_state.ExampleField("question", "right_texts", lambda: EXAMPLES)
PROMPTS = {
    "chat": "asked with its chat template",
    "question and answer": "asked with “Question: … Answer:”",
    "plain": "continues the text",
}
MARKS = {"match": "✓ ", "no match": "✗ "}


def draw_question() -> None:
    """Draw the tab Question."""
    st.caption(
        "Type a question. Each model answers in its own words; the text is compared with the right "
        "answers."
    )
    request, fills_only = _draw_form()
    if not request.models:
        _draw_not_asked(fills_only)
        return
    request.check()
    history.add_entry(request)
    draw_language_note(request.question, request.models)
    columns = query_models(
        request.models,
        lambda name, _: cache.generated_text(
            request, name, _asked_again().get((request, name), 0.0)
        ),
        _describe,
        per_row=3,
    )
    for column in columns.values():
        with column.place.container():
            st.html(_answer(column))
    _draw_again(request, [name for name, one in columns.items() if one.answer.generated.made])
    _draw_not_asked(fills_only)
    if columns:
        st.caption(
            "Each token is the likeliest one after the text before it; an answer ends at its first "
            "line break. Probability: the product of its tokens' probabilities, so long texts have "
            "low ones. **Match**: whole words of the text are a right answer; one that stands in "
            "the question counts only if it is the whole text."
        )
        answer = AskAnswer(request, tuple(column.answer for column in columns.values()))
        pin = partial(pins.draw_pin, request, key="question pin")
        draw_answer_export("question", answer, request, pin)


def _asked_again() -> dict[tuple[AskRequest, str], float]:
    """When this visitor last had a server asked again, by request and model."""
    times: dict[tuple[AskRequest, str], float] = st.session_state.setdefault("asked servers", {})
    return times


def _draw_again(request: AskRequest, names: list[str]) -> None:
    """Draw the button that asks these models' servers again; nothing without names."""

    def ask_again() -> None:
        _asked_again().update({(request, name): time.time() for name in names})

    if names:
        st.button(
            "Ask the server again",
            key="ask server",
            icon=":material/refresh:",
            on_click=ask_again,
            help="A chat server's answer is stored, and shown again for the same question. Ask "
            "again for a new one.",
        )


def _draw_form() -> tuple[AskRequest, tuple[str, ...]]:
    """Draw the form; return the request to the models that generate, and the other models."""
    FIELD.start()
    text, right = st.columns([3, 1], vertical_alignment="bottom")
    question = FIELD.type(
        text, "Question", help="Any question, or with Options a text to continue."
    )
    typed = right.text_input(
        "Right answers (optional)",
        key=FIELD.golds,
        bind=url_state.BOUND,
        help=f"The names of the right answer, separated by {GOLD_SEPARATOR}. A text that gives "
        "one of them in whole words is right.",
    )
    models, more = st.columns([3, 1], vertical_alignment="bottom")
    with models:
        names = url_state.choose_models(key="generators", default=(DEFAULT_MODEL,))
    with more, st.container(horizontal=True):
        with st.popover("Examples", icon=":material/lightbulb:"):
            FIELD.draw_examples()
        with st.popover("Options", icon=":material/tune:"):
            is_plain = st.toggle(
                "Continue the text as it is",
                key="plain",
                bind=url_state.BOUND,
                help="Off: instruct models are asked with their chat template, others with "
                "`Question: ... Answer:`. On: each model continues the typed text.",
            )
            longest = st.slider(
                "Tokens per answer (at most)",
                1,
                MOST_TOKENS,
                MAX_TOKENS,
                key="longest",
                bind=url_state.BOUND,
            )
            precision = url_state.choose_precision()
    golds = filter(None, (" ".join(gold.split()) for gold in (typed or "").split(GOLD_SEPARATOR)))
    asked = tuple(name for name in names if can_generate(name))
    request = AskRequest(
        question=question,
        golds=tuple(dict.fromkeys(golds)),
        plain=is_plain,
        max_tokens=longest,
        models=asked,
        precision=precision,
    )
    return request, tuple(name for name in names if name not in asked)


def _draw_not_asked(names: tuple[str, ...]) -> None:
    """Name the chosen models that fill blanks but don't generate text."""
    if names:
        titles = ", ".join(map(predictions.short_title, names))
        st.info(
            f"Not asked: {plain(titles)}. Masked models fill blanks and don't generate text; "
            "choose a causal or encoder-decoder model, or a chat server.",
            icon=":material/block:",
        )


def _describe(one: ModelText) -> str:
    details = (predictions.title_of_kind(one.kind), PROMPTS[one.how])
    return predictions.join_details(*details, precision=one.precision, device=one.device)


def _answer(column: Column[ModelText]) -> str:
    """HTML of a model's text with its verdict, probability and tokens."""
    one, colour = column.answer, column.colour
    text, n = one.generated.text.strip(), len(one.generated.tokens)
    shown = escape(text) if text else '<span class="lx-muted">(an empty text)</span>'
    parts = [f'<div class="lx-sentence">{shown}</div>']
    if one.match:
        verdict = one.match.verdict
        parts.append(f'<span class="lx-chip">{MARKS.get(verdict, "")}{verdict}</span>')
    if one.prob is not None:
        parts.append(
            f'<div class="lx-muted">prob. {predictions.probability(one.prob)}, log-prob. '
            f"{fixed(one.log_prob, 2)}, {counted(n, 'token')}</div>"
        )
    elif np.isnan(one.log_prob):
        parts.append(
            '<div class="lx-muted">probability unknown: the server returns no log-probabilities'
            "</div>"
        )
    parts += [f'<div class="lx-muted">{escape(note)}</div>' for note in one.notes()]
    if scores := one.token_scores:
        strip = heat_strip(scores, colour)
        parts.append(f"<details><summary>Tokens</summary>{heat_scale(colour)}{strip}</details>")
    return "".join(parts)
