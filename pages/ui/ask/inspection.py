"""Look inside: under the answers to a sentence, how each model comes to its own.

The answer after each layer, what each token adds to it, and what it is when a word is changed: each
is computed when it is opened.
"""

from dataclasses import replace
from html import escape
from itertools import zip_longest
from typing import Any

import streamlit as st

from lama_core import glossary
from lama_core.errors import UserError
from lama_core.probes.cloze.inspection import (
    AS_NEEDED,
    FOLLOWED,
    METHODS,
    Inside,
    InsideAnswer,
    InspectRequest,
    ModelAttribution,
)
from lama_core.probes.cloze.query import (
    SEVERAL_GOLDS,
    ClozeRequest,
    ModelAnswer,
    check_gold,
)
from lama_core.requests import values
from lama_core.rounding import fixed
from lama_core.scoring.blanks import parse_query
from lama_core.types import Query
from pages.ui.shared import cache, predictions, url_state
from pages.ui.shared.export import Rows, draw_export, made_with
from pages.ui.shared.messages import faults_shown, plain
from pages.ui.shared.model_columns import Column, ask_each
from pages.ui.shared.token_strips import shares_scale, shares_strip

LAYERS, WORDS, CHANGED = "Layers", "Which words mattered", "What if"
BY_ITSELF, STEPS = "as needed", ("8", "50", "100", "200", "400", "1000")
EXAMPLES_FROM = "starter"  # the data that example changes take names from
CHANGED_OF = "the text that was changed"
Columns = dict[str, Column[Inside]]


def draw_inside(text: str, gold: str, choice: url_state.ClozeChoice) -> None:
    """The choice of what is looked at, and that."""
    look = st.segmented_control(
        "Look inside",
        (LAYERS, WORDS, CHANGED),
        default=None,
        key="look",
        bind=url_state.BOUND,
        help=glossary.explain("Look inside"),
    )
    if not look:
        return
    with faults_shown():
        {LAYERS: _draw_layers, WORDS: _draw_words, CHANGED: _draw_changed}[look](text, gold, choice)


def _request(text: str, gold: str, choice: url_state.ClozeChoice, **asked: Any) -> InspectRequest:
    """What is asked: the settings above, without those of words that are rescored."""
    settings = choice.settings
    given: dict[str, Any] = {
        "models": settings.models,
        "precision": settings.precision,
        "candidates": settings.candidates,
        "top_k": choice.top_k,
        "gold": gold or None,
    }
    request = InspectRequest(text, **given | asked)
    request.check()
    return request


def _look(request: InspectRequest) -> Columns:
    """A column a model, filled as each is done."""

    def ask(name: str, here: tuple[str, ...]) -> Inside:
        return cache.inside(replace(request, models=here), name)

    def said(inside: Inside) -> str:
        part = inside.parts[0]
        return predictions.with_how(
            predictions.title_of_kind(part.kind), precision=part.precision, device=part.device
        )

    return ask_each(request.models, ask, said, per_row=2)


def _draw_layers(text: str, gold: str, choice: url_state.ClozeChoice) -> None:
    request = _request(text, gold, choice, lens="layers")
    columns = _look(request)
    from pages.ui.ask.layers import draw_layers

    for name, column in columns.items():
        if column.answer.layers:
            with column.place.container():
                draw_layers(column.answer.layers, url_state.title_of(name))
    if columns:
        st.caption(
            "A layer's answer is the hidden state at the blank after it, through the model's own "
            "head; after the last layer it is the model's answer. Ranks are among the candidates: "
            "the bluer, the nearer to 1. Log-probabilities are over the model's whole vocabulary."
        )
        _draw_export("layers", request, columns)


def _draw_words(text: str, gold: str, choice: url_state.ClozeChoice) -> None:
    left, middle, right = st.columns([2, 2, 2], vertical_alignment="bottom")
    method = url_state.pick(
        "By", METHODS, key="by_method", place=left, help=glossary.explain("Erasure and gradients")
    )
    explain = _choose_explained(middle)
    steps = BY_ITSELF
    if method == "gradients":
        steps = right.select_slider(
            "Steps",
            (BY_ITSELF, *STEPS),
            value=BY_ITSELF,
            key="steps",
            bind=url_state.BOUND,
            help=f"Points of the integral. {BY_ITSELF.capitalize()}: {AS_NEEDED}, while the time "
            "for a query lasts.",
        )
    request = _request(
        text,
        gold,
        choice,
        lens="tokens",
        method=method,
        answer=explain or None,
        steps=None if steps == BY_ITSELF else int(steps),
    )
    columns = _look(request)
    for column in columns.values():
        found = column.answer.attribution
        if found:
            with column.place.container():
                _draw_attribution(found)
    if columns:
        st.caption(
            "Blue tokens add to the answer's log-probability (natural logarithm), orange ones take "
            "from it; the number under a token says how much."
        )
        _draw_export("words", request, columns)


def _draw_attribution(found: ModelAttribution) -> None:
    """A model's sentence with its tokens coloured, the check of the sum, and the table."""
    most = max((abs(value) for value in found.values if value is not None), default=0.0)
    st.html(
        f"<div>Log-prob. of <b>{escape(found.word)}</b>: {fixed(found.log_prob, 3)}</div>"
        + shares_scale(most)
        + shares_strip(found.tokens, found.values, most)
    )
    for note in filter(None, (*found.notes, found.completeness())):
        st.caption(plain(note))
    with st.expander("As a table"):
        st.dataframe(
            {
                "token": list(found.tokens),
                "adds": [
                    "" if value is None else fixed(value, 3, signed=True) for value in found.values
                ],
            },
            hide_index=True,
        )


def _choose_explained(place: "st.delta_generator.DeltaGenerator | None" = None) -> str:
    """The answer that is followed; empty for each model's own first."""
    typed = (place or st).text_input(
        FOLLOWED.capitalize(),
        key="explain",
        bind=url_state.BOUND,
        placeholder="each model's first answer",
    )
    return " ".join((typed or "").split())


def _draw_changed(text: str, gold: str, choice: url_state.ClozeChoice) -> None:
    example = _example_of_change(text)
    if st.session_state.get(CHANGED_OF, text) != text:
        st.session_state["changed"] = example  # another sentence is asked now
    st.session_state[CHANGED_OF] = text
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    changed = left.text_input(
        "The sentence with other words",
        example,
        key="changed",
        bind=url_state.BOUND,
        help="Change any word of the sentence to see how the answers change.",
    )
    explain = _choose_explained(right)
    check_gold(explain, FOLLOWED)
    query, other = parse_query(text), parse_query(changed or "")
    if explain and SEVERAL_GOLDS in explain:
        raise UserError(f"The {FOLLOWED} is one word: leave out {SEVERAL_GOLDS}.")

    def ask(name: str, here: tuple[str, ...]) -> tuple[ModelAnswer, ModelAnswer]:
        settings = replace(choice.settings, models=here)

        def answer(one: Query, word: str) -> ModelAnswer:
            return cache.cloze_answer(
                settings, name, one.text(), word, choice.top_k, choice.renormalise
            )

        word = explain or answer(query, gold).blanks[0].predictions[0].token
        before, after = (
            answer(one, word + SEVERAL_GOLDS * (one.n_blanks - 1)) for one in (query, other)
        )
        return before, after

    def said(found: tuple[ModelAnswer, ModelAnswer]) -> str:
        return predictions.describe(found[1])

    columns = ask_each(choice.settings.models, ask, said, per_row=2)
    for column in columns.values():
        with column.place.container():
            st.html(_before_and_after(*column.answer))
    if columns:
        st.caption(
            "Probabilities are as above. The log-probability of the answer that is followed, after "
            "less before, says what the change adds to it."
        )
        settings = replace(choice.settings, models=tuple(columns))
        more = {"top_k": choice.top_k, "gold": explain or None, "renormalise": choice.renormalise}
        texts = dict.fromkeys((text, changed or ""))
        requests = tuple(ClozeRequest(**values(settings) | more, text=one) for one in texts)
        answers = {name: column.answer for name, column in columns.items()}
        asked = {"before": values(requests[0]), "after": values(requests[-1])}
        made = made_with(asked, [after for _, after in answers.values()])
        draw_export("what-if", lambda: _changed_rows(answers), made, requests)


def _example_of_change(text: str) -> str:
    """The text with its longest name that the starter facts know changed to another such name.

    Unchanged where it has none.
    """
    starter = cache.dataset_of(EXAMPLES_FROM)
    known = [
        (len(fact.subject), fact.subject, relation.name)
        for relation in starter.relations
        for fact in starter.facts_of(relation.name)
        if fact.subject[:1].isupper() and fact.subject in text
    ]
    if not known:
        return text
    _, name, relation_name = max(known)
    others = (fact.subject for fact in starter.facts_of(relation_name))
    return text.replace(name, next((one for one in others if one != name), name))


def _before_and_after(before: ModelAnswer, after: ModelAnswer) -> str:
    """HTML of a model's words side by side, and of the one that is followed."""
    one, other = before.blanks[0], after.blanks[0]
    rows = [
        f'<tr><td class="rank">{rank}</td>'
        + "".join(
            f'<td class="word">{escape(item.token)}</td>'
            f'<td class="num">{predictions.probability(item.prob)}</td>'
            if item
            else "<td></td><td></td>"
            for item in pair
        )
        + "</tr>"
        for rank, pair in enumerate(zip_longest(one.predictions, other.predictions), start=1)
    ]
    table = (
        '<table class="lx"><thead><tr><th>#</th><th>before</th><th class="num">prob.</th>'
        '<th>after</th><th class="num">prob.</th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
    )
    golds = [blank.gold for blank in (one, other) if blank.gold]
    if len(golds) < 2:
        return table
    ranks = [f"{gold.shown_log_prob()} (rank {gold.rank:,})" for gold in golds]
    values = [gold.log_prob for gold in golds]
    change = ""
    if values[0] is not None and values[1] is not None:
        change = f": <b>{fixed(values[1] - values[0], 2, signed=True)}</b>"
    return table + (
        f'<div class="lx-gold">Log-prob. of <b>{escape(golds[0].word)}</b>: {escape(ranks[0])} '
        f"before, {escape(ranks[1])} after{change}</div>"
    )


def _changed_rows(answers: dict[str, tuple[ModelAnswer, ModelAnswer]]) -> Rows:
    """A row a model, a sentence and an answer."""
    return [
        {
            "model": name,
            "sentence": when,
            "text": blank.asked,
            "rank": item.rank,
            "word": item.token,
            "prob": item.prob,
            "log_prob": item.log_prob,
            "followed": blank.gold.word if blank.gold else None,
            "followed_rank": blank.gold.rank if blank.gold else None,
            "followed_log_prob": blank.gold.log_prob if blank.gold else None,
        }
        for name, pair in answers.items()
        for when, answer in zip(("before", "after"), pair, strict=True)
        for blank in answer.blanks[:1]
        for item in blank.predictions
    ]


def _draw_export(name: str, request: InspectRequest, columns: Columns) -> None:
    """What can be taken away: the rows, and the command."""
    asked = replace(request, models=tuple(columns))
    looked = tuple(column.answer for column in columns.values())
    answer = InsideAnswer(asked, parse_query(request.text).text(), looked)
    parts = [part for one in looked for part in one.parts]
    made = made_with(values(asked), parts)
    draw_export(name, answer.rows, made, asked, record=answer.to_json)
