"""Inspect, below the answers to a sentence: where a model's answer comes from.

Shows the answer after each layer, the contribution of each token, causal traces and the parts of
the answer's logit. Each view is computed when it is opened; a trace after a click. An edited
sentence is compared with the others on the tab Several.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from html import escape
from operator import itemgetter
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from lama_core import glossary
from lama_core.datasets.library.installed import STARTER
from lama_core.models.protocols import TracedPart
from lama_core.queries.cloze import ClozeRequest
from lama_core.queries.inspect import inspect
from lama_core.queries.kind import Answer, Asked
from lama_core.queries.lenses.lens import TRACKED_ANSWER, LensResult
from lama_core.queries.lenses.table import LENSES, InspectRequest
from lama_core.queries.lenses.tokens import AS_NEEDED, ATTRIBUTION_METHODS, ModelAttribution
from lama_core.rounding import fixed
from pages.ui.queries.grid import open_alternatives
from pages.ui.queries.layers import draw_layers
from pages.ui.queries.lens_charts import draw_logit, draw_trace
from pages.ui.queries.tab import describe_kind
from pages.ui.shared import cache, links, predictions, url_state
from pages.ui.shared.export import draw_answer_export
from pages.ui.shared.messages import errors_shown, plain
from pages.ui.shared.model_columns import query_models
from pages.ui.shared.tables import draw_table
from pages.ui.shared.token_strips import shares_scale, shares_strip

EDIT = "Edit a word"
RESTORED: dict[str, TracedPart] = {"states": "states", "attention": "attention", "MLP": "mlp"}
TRACED = "traced"  # in the session: the request whose trace the user wants to see
AS_MANY_AS_NEEDED, STEPS = "as needed", ("8", "50", "100", "200", "400", "1000")


def draw_inspection(text: str, asked: ClozeRequest) -> None:
    """Draw the choice of a view, and the chosen view."""
    views = {
        lens.title: VIEWS.get(name, partial(_draw_other, name)) for name, lens in LENSES.items()
    }
    view = st.segmented_control(
        "Inspect: where does an answer come from?",
        (*views, EDIT),
        default=None,
        key="look",
        bind=url_state.BOUND,
        help=glossary.explain("Inspect"),
    )
    if not view:
        return
    if view == EDIT:
        name, other = _known_name(text)
        edited = st.query_params.get("changed") or (text.replace(name, other) if name else text)
        open_alternatives(list(dict.fromkeys((text, edited))), replaces=links.is_new_url())
    with errors_shown():
        views[view](text, asked)


def _request(text: str, asked: ClozeRequest, **lens: Any) -> InspectRequest:
    """A checked request with the form's settings that apply to an inspection."""
    request = InspectRequest(
        text,
        models=asked.models,
        precision=asked.precision,
        candidates=asked.candidates,
        top_k=asked.top_k,
        gold=asked.gold,
        **lens,
    )
    request.check()
    return request


def _draw_lens(
    request: InspectRequest,
    draw: Callable[[Any, str], None],
    *,
    file_name: str = "",
) -> None:
    """Draw the lens's caption, a column per model with its result, and the export.

    `draw` gets a model's result and the model's title; `file_name` defaults to the lens's name.
    """
    lens = LENSES[request.lens]
    st.caption(QUESTIONS.get(lens.name, lens.caption), help=lens.caption)
    columns = query_models(
        request.models,
        lambda name, here: cache.answer(inspect.kind, replace(request, models=here), name),
        describe_kind,
        per_row=3,
        draw=lambda column: draw(column.answer, predictions.short_title(column.answer.name)),
    )
    if columns:
        request = replace(request, models=tuple(columns))
        asked = Asked(request, cache.prepared(inspect.kind, request))
        answer = Answer(inspect.kind, asked, tuple(column.answer for column in columns.values()))
        draw_answer_export(file_name or request.lens, answer, request)


def _draw_other(name: str, text: str, asked: ClozeRequest) -> None:
    """Draw a lens that has no drawing here: its table."""
    _draw_lens(_request(text, asked, lens=name), _draw_rows)


def _draw_rows(found: LensResult, _: str) -> None:
    draw_table(found.rows())
    for note in found.remarks():
        st.caption(plain(note))


def _draw_words(text: str, asked: ClozeRequest) -> None:
    left, middle, right = st.columns([2, 2, 2], vertical_alignment="bottom")
    method = url_state.pick(
        "By",
        ATTRIBUTION_METHODS,
        key="by_method",
        place=left,
        help=glossary.explain("Erasure and gradients"),
    )
    tracked = _choose_tracked(middle, text)
    steps = AS_MANY_AS_NEEDED
    if method == "gradients":
        steps = right.select_slider(
            "Steps",
            (AS_MANY_AS_NEEDED, *STEPS),
            value=AS_MANY_AS_NEEDED,
            key="steps",
            bind=url_state.BOUND,
            help=f"Points of the integral. {AS_MANY_AS_NEEDED.capitalize()}: {AS_NEEDED}, within "
            "the time limit of a query.",
        )
    _draw_lens(
        _request(
            text,
            asked,
            lens="tokens",
            method=method,
            answer=tracked,
            steps=None if steps == AS_MANY_AS_NEEDED else int(steps),
        ),
        _draw_attribution,
        file_name="words",
    )


def _draw_attribution(found: ModelAttribution, _: str) -> None:
    """Draw a model's sentence with coloured tokens, the check of their sum, and a table."""
    most = max((abs(value) for value in found.values if value is not None), default=0.0)
    predictions.draw_conclusion(_most_added(found))
    st.html(
        f"<div>Log-prob. of <b>{escape(found.word)}</b>: {fixed(found.log_prob, 3)}</div>"
        + shares_scale(most)
        + shares_strip(found.tokens, found.values, most)
    )
    for note in found.remarks():
        st.caption(plain(note))
    with st.expander("As a table"):
        draw_table(
            {
                "token": list(found.tokens),
                "adds": [
                    "" if value is None else fixed(value, 3, signed=True) for value in found.values
                ],
            },
        )


def _most_added(found: ModelAttribution) -> str:
    """The token that changes the answer's log-probability most, as HTML; empty if none is known."""
    both = zip(found.values, found.tokens, strict=True)
    changes = [(abs(value), value, token) for value, token in both if value is not None]
    if not changes:
        return ""
    _, value, token = max(changes, key=itemgetter(0))
    return (
        f"<b>{escape(token)}</b> {'raises' if value >= 0 else 'lowers'} the log-probability of "
        f"<b>{escape(found.word)}</b> most: {fixed(value, 2, signed=True)}."
    )


def _draw_trace(text: str, asked: ClozeRequest) -> None:
    left, middle, right = st.columns(3, vertical_alignment="bottom")
    name, _ = _known_name(text)
    subject = left.text_input(
        "Subject",
        # Streamlit warns of a default next to a value that was just set.
        "" if url_state.follow_query(text, {"subject": name}) else name,
        key="subject",
        bind=url_state.BOUND,
        help="The words of the sentence whose embeddings get noise.",
    )
    tracked = _choose_tracked(middle, text)
    restored = url_state.pick(
        "Restore",
        tuple(RESTORED),
        key="restore",
        place=right,
        help=glossary.explain("Causal trace"),
    )
    if not (subject or "").strip():
        st.caption("Type the subject: the words of the sentence that get noise.")
        return
    request = _request(
        text,
        asked,
        lens="trace",
        subject=subject,
        answer=tracked,
        restore=RESTORED[restored],
    )
    if st.button("Trace", type="primary", icon=":material/play_arrow:"):
        st.session_state[TRACED] = request
    if st.session_state.get(TRACED) != request:
        st.caption(
            f"Press Trace: each model runs {request.draws} times for each layer and token, within "
            "the time limit of a query."
        )
        return
    _draw_lens(request, draw_trace)


def _draw_logit(text: str, asked: ClozeRequest) -> None:
    left, right, _ = st.columns([2, 2, 2], vertical_alignment="bottom")
    tracked = _choose_tracked(left, text)
    url_state.follow_query(text, {"against": ""})
    against = right.text_input(
        "Minus the logit of",
        key="against",
        bind=url_state.BOUND,
        placeholder="no other answer",
        help="Another answer: the parts of its logit are subtracted.",
    )
    other = " ".join((against or "").split()) or None
    _draw_lens(_request(text, asked, lens="logit", answer=tracked, against=other), draw_logit)


def _choose_tracked(place: DeltaGenerator, text: str) -> str | None:
    """Draw the field for the answer to track; None means each model's first answer."""
    url_state.follow_query(text, {"explain": ""})
    typed = place.text_input(
        TRACKED_ANSWER.capitalize(),
        key="explain",
        bind=url_state.BOUND,
        placeholder="each model's first answer",
    )
    return " ".join((typed or "").split()) or None


def _known_name(text: str) -> tuple[str, str]:
    """The longest starter subject in the text, and another subject of the same relation.

    Both are empty if the text contains no starter subject.
    """
    starter = cache.dataset_of(STARTER)
    known = [
        (len(fact.subject), fact.subject, relation.name)
        for relation in starter.relations
        for fact in starter.facts_of(relation.name)
        if fact.subject[:1].isupper() and fact.subject in text
    ]
    if not known:
        return "", ""
    _, name, relation_name = max(known)
    others = [fact.subject for fact in starter.facts_of(relation_name) if fact.subject != name]
    return name, min(others, key=lambda other: len(other.split()), default=name)


# What a lens answers; its caption is the help text.
QUESTIONS = {
    "layers": "What would the model answer after each of its layers?",
    "tokens": "Which words raise (blue) or lower (red) the log-probability of the answer?",
    "trace": "How much does noise on the subject change the answer's probability, and which layer "
    "and token bring it back?",
    "logit": "Which parts of the model add most to the answer's score, its logit?",
}
# The lenses with drawings; other lenses are drawn as tables.
VIEWS = {
    "layers": lambda text, asked: _draw_lens(_request(text, asked, lens="layers"), draw_layers),
    "tokens": _draw_words,
    "trace": _draw_trace,
    "logit": _draw_logit,
}
