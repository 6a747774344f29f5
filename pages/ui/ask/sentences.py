"""Whole sentences, such as minimal pairs, scored token by token."""

from dataclasses import replace
from html import escape

import streamlit as st

from lama_core.queries.sentences import (
    MAX_SENTENCES,
    ModelSentences,
    ScoredSentence,
    SentencesAnswer,
    SentencesRequest,
)
from lama_core.rounding import fixed
from lama_core.scoring.statement_scores import shown_tokens
from pages.ui.ask.answers import choose_hiding, describe
from pages.ui.queries import history
from pages.ui.shared import cache, url_state
from pages.ui.shared.export import Rows, draw_answer_export
from pages.ui.shared.messages import plain
from pages.ui.shared.model_columns import Column, draw_language_note, query_models
from pages.ui.shared.token_strips import heat_scale, heat_strip

# The acceptable sentence of each pair comes first.
EXAMPLES = (
    ("The keys to the cabinet are on the table.", "The keys to the cabinet is on the table."),
    ("The pilots that the senator likes laugh.", "The pilots that the senator likes laughs."),
    ("No student has ever read the book.", "Some student has ever read the book."),
    ("She put the cup on the table.", "She put on the table."),
)


def draw_sentences() -> None:
    """Draw the view Whole sentences."""
    st.caption(
        "Type two or more sentences, such as a right one and a wrong one. Each model scores them "
        "token by token. Tokens that the sentences don't share are underlined."
    )
    request = _draw_form()
    request.check()
    history.add_entry(request)
    draw_language_note(" ".join(request.texts), request.models)
    columns = query_models(
        request.models,
        lambda name, _: cache.scored_sentences(request, name),
        lambda found: describe(found.kind, found.precision, found.device),
        per_row=3,  # a sentence needs room
    )
    for column in columns.values():
        with column.place.container():
            st.html(_strips(column))
    if columns:
        st.caption(
            "Log-probabilities are natural logarithms. The stronger a token's colour, the less "
            "likely the token. Every token lowers the sum, so compare sentences of different "
            "lengths by their mean."
        )
        request = replace(request, models=tuple(columns))
        answer = SentencesAnswer(request, tuple(column.answer for column in columns.values()))
        draw_answer_export("sentences", answer, request, rows=lambda: _rows(answer))


def _draw_form() -> SentencesRequest:
    typed = st.text_area(
        "Sentences, one per line",
        "\n".join(EXAMPLES[0]),
        key="sentences",
        bind=url_state.BOUND,
        height=110,
        help=f"Two to {MAX_SENTENCES} sentences; they are scored exactly as typed.",
    )
    models, more = st.columns([3, 1], vertical_alignment="bottom")
    with models:
        names = url_state.choose_models()
    with more, st.container(horizontal=True):
        with st.popover("Examples", icon=":material/lightbulb:"):
            _draw_examples()
        with st.popover("Options", icon=":material/tune:"):
            hiding, precision = choose_hiding()
    texts = tuple(line for line in (typed or "").splitlines() if line.strip())
    return SentencesRequest(texts=texts, models=names, hiding=hiding, precision=precision)


def _draw_examples() -> None:
    def take(texts: tuple[str, ...]) -> None:
        st.session_state["sentences"] = "\n".join(texts)

    for texts in EXAMPLES:
        st.button(
            plain(texts[0]),
            key=texts[0],
            type="tertiary",
            on_click=take,
            args=(texts,),
            help=plain(texts[1]),
        )


def _strips(column: Column[ModelSentences]) -> str:
    """HTML of a model's sentences as strips of tokens, each below its sum and mean."""
    found, colour = column.answer, column.colour
    best = found.likeliest()
    parts = [heat_scale(colour)]
    for one in found.sentences:
        parts.append(
            f'<div class="lx-pair"><b>{_values(one)}</b><span class="lx-muted">'
            f"{_minus_first(one, found)}</span>"
            + '<span class="lx-chip">likeliest</span>' * (one is best)
            + f"</div>{heat_strip(one.tokens, colour)}"
        )
    parts += [f'<div class="lx-muted">{escape(note)}</div>' for note in found.notes()]
    return "".join(parts)


def _values(one: ScoredSentence) -> str:
    if one.total is None or one.mean is None:
        return one.fault
    n = f"{one.n_scored:,} tokens"
    return f"log-prob. {fixed(one.total, 2)}, mean {fixed(one.mean, 2)} over {n}"


def _minus_first(one: ScoredSentence, found: ModelSentences) -> str:
    if one is found.sentences[0] or one.difference is None or one.mean_difference is None:
        return ""
    total, mean = (fixed(value, 2, signed=True) for value in (one.difference, one.mean_difference))
    return f"compared with the first: {total}, mean {mean}"


def _rows(answer: SentencesAnswer) -> Rows:
    return [
        {
            "model": model.name,
            "sentence": one.text,
            "sum": one.total,
            "mean": one.mean,
            "n_tokens": one.n_scored,
            "difference": one.difference,
            "mean_difference": one.mean_difference,
            "tokens": "  ".join(shown_tokens(one.tokens)),
            "precision": model.precision,
            "device": model.device,
        }
        for model in answer.models
        for one in model.sentences
    ]
