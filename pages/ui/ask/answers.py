"""Answers: typed words and phrases of any length, ranked by the score of the filled sentence."""

from dataclasses import replace
from functools import partial
from html import escape

import streamlit as st

from lama_core.glossary import explain
from lama_core.models.cache import Precision
from lama_core.models.protocols import HIDINGS, KINDS, Hiding, Kind
from lama_core.queries.answers import (
    MAX_RANKED,
    ModelRanking,
    RankAnswer,
    RankedAnswer,
    RankRequest,
)
from lama_core.rounding import fixed
from lama_core.scoring.statement_scores import AGGREGATES, PARTS, TOKENS_OF, shown_tokens
from pages.ui.queries import history, pins
from pages.ui.shared import cache, predictions, url_state
from pages.ui.shared.export import draw_answer_export
from pages.ui.shared.messages import plain
from pages.ui.shared.model_columns import Column, draw_language_note, query_models, reserve_line
from pages.ui.shared.token_strips import heat_scale, heat_strip

# Sentence, answers, right answer.
EXAMPLES = (
    (
        "The capital of Brazil is ___.",
        ("Brasília", "Rio de Janeiro", "São Paulo", "Buenos Aires"),
        "Brasília",
    ),
    (
        "Don Quixote was written by ___.",
        ("Miguel de Cervantes", "William Shakespeare", "Gabriel García Márquez"),
        "Miguel de Cervantes",
    ),
    ("The First World War began in ___.", ("1914", "1918", "1939"), "1914"),
    (
        "Insulin is made in the ___.",
        ("pancreas", "liver", "adrenal glands", "thyroid gland"),
        "pancreas",
    ),
)
MOST_SHOWN = 20


def draw_ranking() -> None:
    """Draw the view Answers to a blank."""
    st.caption(
        "Type a sentence with a blank, and your own answers of any length. Each model ranks them "
        "by the likelihood of the filled sentence."
    )
    request = _draw_form()
    request.check()
    history.add_entry(request)
    gold = request.asked()[2]

    draw_language_note(request.text, request.models)
    line = reserve_line("ranking")
    columns = query_models(
        request.models,
        lambda name, _: cache.ranked_answers(request, name),
        lambda ranking: describe(ranking.kind, ranking.precision, ranking.device),
    )
    for column in columns.values():
        with column.place.container():
            st.html(_table(column, request, gold))
    firsts = {
        name: column.answer.answers[0].answer
        for name, column in columns.items()
        if column.answer.answers[0].rank
    }
    line.html(f"<div>{predictions.describe_first_answers(firsts, gold or '')}</div>")
    if columns:
        statement = next(iter(columns.values())).answer.answers[0].statement
        st.caption(
            "Probability: softmax of the scores over the answers that the model has tokens for. "
            f"Log-probabilities are natural logarithms, the {request.aggregate} over "
            f"{TOKENS_OF[request.part]} (“{plain(statement)}”). For each token's log-probability, "
            "hover over an answer or open Tokens."
        )
        request = replace(request, models=tuple(columns))
        answer = RankAnswer(request, tuple(column.answer for column in columns.values()))
        pin = partial(pins.draw_pin, request, key="answers pin")
        draw_answer_export("answers", answer, request, pin)


def _draw_form() -> RankRequest:
    text, answers, right = EXAMPLES[0]
    left, more = st.columns([3, 2], gap="medium")
    with left:
        sentence = st.text_input(
            "Sentence with one blank",
            text,
            key="statement",
            bind=url_state.BOUND,
            help="Write ___ (three underscores), [MASK], <mask> or [Y] where the answer is "
            "missing. The first letter is scored as a capital.",
        )
        typed = st.text_area(
            "Answers, one per line",
            "\n".join(answers),
            key="answers",
            bind=url_state.BOUND,
            height=130,
            help=f"Words or phrases, at most {MAX_RANKED}.",
        )
    lines = (" ".join(line.split()) for line in (typed or "").splitlines())
    given = tuple(filter(None, lines))
    with more:
        gold = _choose_gold(list(dict.fromkeys(given)), right)
        names = url_state.choose_models()
        with st.container(horizontal=True):
            with st.popover("Examples", icon=":material/lightbulb:"):
                _draw_examples()
            with st.popover("Options", icon=":material/tune:"):
                part = url_state.pick(
                    "Tokens that count", PARTS, key="part", help=explain("Tokens that count")
                )
                aggregate = url_state.pick(
                    "Log-probabilities", AGGREGATES, key="aggregate", help=explain("Sum and mean")
                )
                hiding, precision = choose_hiding()
    return RankRequest(
        text=sentence or "",
        answers=given,
        gold=gold,
        models=names,
        part=part,
        aggregate=aggregate,
        hiding=hiding,
        precision=precision,
    )


def _choose_gold(answers: list[str], first: str) -> str | None:
    """Draw the choice of the right answer, which is cleared if that answer was removed."""
    url_state.drop_stale("right_answer", (None, *answers))
    return st.selectbox(
        "Right answer (optional)",
        answers,
        key="right_answer",
        bind=url_state.BOUND,
        index=answers.index(first) if first in answers else None,
        placeholder="The right one of the answers",
        help="Highlighted; its rank and margin are shown. The margin is its log-probability minus "
        "that of the best other answer.",
    )


def _draw_examples() -> None:
    def take(text: str, answers: tuple[str, ...], right: str) -> None:
        st.session_state["statement"] = text
        st.session_state["answers"] = "\n".join(answers)
        st.session_state["right_answer"] = right

    for text, *rest in EXAMPLES:
        st.button(plain(text), key=text, type="tertiary", on_click=take, args=(text, *rest))


def choose_hiding() -> tuple[Hiding, Precision]:
    """Draw the choice of which tokens are masked with a scored token, and of the precision."""
    hiding = url_state.pick(
        "Hidden with a token", HIDINGS, key="hiding", help=explain("Masked together with a token")
    )
    return hiding, url_state.choose_precision()


def describe(kind: Kind, precision: str, device: str) -> str:
    """A model's kind, and how it scores a token, in words."""
    sees_both = KINDS[kind].sees_both
    how = "each token hidden in turn" if sees_both else "each token given those before it"
    return predictions.join_details(KINDS[kind].title, how, precision=precision, device=device)


def _table(column: Column[ModelRanking], request: RankRequest, gold: str | None) -> str:
    """HTML of a model's ranking with bars, the gold answer's rank, and each answer's tokens."""
    ranking, colour = column.answer, column.colour
    rows = [_row(one, colour, gold) for one in ranking.answers]
    head = (
        f'<thead><tr><th>#</th><th>answer</th><th class="num" colspan="2">prob. of '
        f'{sum(one.rank is not None for one in ranking.answers)} answers</th><th class="num">'
        f"{'log-prob.' if request.aggregate == 'sum' else 'mean log-prob.'}</th></tr></thead>"
    )
    table = f'<table class="lx">{head}<tbody>{"".join(rows[:MOST_SHOWN])}</tbody></table>'
    if rest := rows[MOST_SHOWN:]:
        table += (
            f"<details><summary>{len(rest)} more</summary>"
            f'<table class="lx">{head}<tbody>{"".join(rest)}</tbody></table></details>'
        )
    notes = "".join(f'<div class="lx-muted">{escape(one)}</div>' for one in ranking.notes(gold))
    strips = "".join(
        f'<div class="lx-pair"><b>{escape(one.answer)}</b></div>{heat_strip(one.tokens, colour)}'
        for one in ranking.answers[:MOST_SHOWN]
    )
    tokens = f"<details><summary>Tokens</summary>{heat_scale(colour)}{strips}</details>"
    return f"{table}{_margin_line(ranking, gold)}{notes}{tokens}"


def _row(one: RankedAnswer, colour: str, gold: str | None) -> str:
    known = one.rank is not None
    score = fixed(one.score, 2) if one.score is not None else "no tokens"
    prob = predictions.probability(one.prob) if known else ""
    hint = "\n".join(shown_tokens(one.tokens, answer=True))
    return (
        f'<tr class="{"gold" if one.answer == gold else ""}" title="{escape(hint)}">'
        f'<td class="rank">{one.rank or ""}</td><td class="word">{escape(one.answer)}</td>'
        f'<td class="bar"><div style="width:{100 * one.prob:.2f}%;background:{colour}"></div></td>'
        f'<td class="num">{prob}</td><td class="num muted">{score}</td></tr>'
    )


def _margin_line(ranking: ModelRanking, gold: str | None) -> str:
    """The gold answer's rank and margin; without a gold answer, the lead of the first answer."""
    margin = ranking.margin
    if gold is None:
        if margin is None:
            return ""
        return f'<div class="lx-gold">The first answer leads by {fixed(margin, 2)}.</div>'
    found = ranking.find(gold)
    if found is None:
        return ""
    n = sum(one.rank is not None for one in ranking.answers)
    place = (
        f"rank <b>{found.rank}</b> of {n}"
        if found.rank
        else "no rank, as this model has no tokens for it"
    )
    by = f", margin {fixed(margin, 2, signed=True)}" if margin is not None else ""
    hint = "margin: its log-probability minus that of the best other answer"
    return (
        f'<div class="lx-gold" title="{hint}">Right answer <b>{escape(gold)}</b>: {place}{by}</div>'
    )
