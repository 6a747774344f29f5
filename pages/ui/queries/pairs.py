"""The view Score: which pair completes the analogy best, and which tokens decide it."""

import re
from html import escape

import streamlit as st

from lama_core.glossary import explain
from lama_core.models.protocols import KINDS
from lama_core.queries.analogy_templates import DEFAULT_TEMPLATE
from lama_core.queries.kind import Answer, Asked
from lama_core.queries.pairs import (
    NORMALISATIONS,
    ModelScores,
    PairSentences,
    ScoreRequest,
    score_analogies,
)
from lama_core.rounding import counted, fixed
from pages.ui.queries import widgets
from pages.ui.queries.form import DrawField, Form, Widget
from pages.ui.queries.tab import Tab
from pages.ui.shared import predictions, screens, url_state
from pages.ui.shared.model_columns import ModelColumn
from pages.ui.shared.token_strips import heat_scale, heat_strip

BEST = {
    "sum": "The pair with the highest sum of log-probabilities is the model's choice.",
    "mean": "The pair with the lowest {measure} is the model's choice.",
}
# Query pair, and pairs that could complete the analogy; the right one comes first.
EXAMPLES = (
    ("Paris:France", "Rome:Italy, Italy:Rome, Rome:Germany, Rome:Berlin"),
    ("big:bigger", "small:smaller, smaller:small, small:big, small:tiny"),
    ("hot:cold", "high:low, low:high, high:tall, high:mountain"),
    ("walk:walked", "play:played, played:play, play:plays, play:game"),
)
GOLDS = {query: pairs.partition(",")[0] for query, pairs in EXAMPLES}


# With it, MiniLM-MLM and its twin choose the right pair of the first example.
OPENING = "to-what"


def _layout(draw: DrawField) -> None:
    widgets.open_with_template("score_template", OPENING, "query", "pairs", "right_pair")
    widgets.draw_with_ask(draw, "query", "pairs", "gold", label="Score")
    widgets.draw_chips(
        widgets.Example(query, {"query": query, "pairs": pairs, "right_pair": GOLDS[query]}, pairs)
        for query, pairs in EXAMPLES
    )
    widgets.draw_models_and_options(draw, "template", "normalise", "precision")


FORM = Form(
    ScoreRequest,
    {
        "query": Widget(
            lambda _: st.text_input(
                "Query pair",
                EXAMPLES[0][0],
                key="query",
                bind=url_state.BOUND,
                help="Two words with a colon between them: A:B.",
            ),
            widgets.kept("query"),
        ),
        "pairs": widgets.list_field(
            "pairs",
            "Candidate pairs",
            first=EXAMPLES[0][1].split(", "),
            between=", ",
            help="Two or more pairs C:D, separated by commas. Each is scored in the template "
            "together with the query pair.",
        ),
        "gold": widgets.gold_field(
            "query",
            "pairs",
            "Right pair (optional)",
            key="right_pair",
            golds=GOLDS,
            help="Marked with ✓; each model's first pair is marked as correct or wrong.",
        ),
        "models": widgets.MODELS,
        "template": widgets.template_field(DEFAULT_TEMPLATE, "score_template"),
        "normalise": widgets.choice_field(
            "normalise", "Log-probabilities", NORMALISATIONS, help=explain("Score of a pair")
        ),
        "precision": widgets.PRECISION,
    },
    _layout,
)


def _describe(scores: ModelScores) -> str:
    """A model's kind, and its measure of a sentence, such as perplexity."""
    kind = KINDS[scores.kind]
    return predictions.join_details(scores, kind.title, kind.measure)


def _draw_pairs(
    asked: Asked[ScoreRequest, PairSentences], column: ModelColumn[ModelScores]
) -> None:
    """Draw the pairs, best first, each with its sentence as a heat strip."""
    scores, gold = column.answer, asked.shared.gold
    measure = KINDS[scores.kind].measure
    if scores.ranked:
        first, *others = [escape("\u00a0:\u00a0".join(pair.pair)) for pair in scores.ranked]
        mark = predictions.MARKS[scores.ranked[0].pair == gold if gold else None]
        before = f", before {others[0]}" if others else ""
        predictions.draw_conclusion(f"Ranks <b>{first}</b>{mark} first{before}.")
    parts = [heat_scale(column.colour)]
    for pair in scores.ranked:
        head, tail = map(escape, pair.pair)
        tail += " ✓" * (pair.pair == gold)
        parts.append(
            f'<div class="lx-pair"><span class="lx-muted">{pair.rank}</span><b>{head} : {tail}</b>'
            f'<span class="lx-muted">{KINDS[scores.kind].total} {fixed(pair.log_prob, 2)}</span>'
            f'<span class="lx-muted">{measure} {_three_digits(pair.mean_perplexity)}, '
            f"{counted(pair.n_tokens, 'token')}</span></div>"
            f"{heat_strip(pair.tokens, column.colour)}"
        )
    if scores.n_left_out:
        parts.append(
            f'<div class="lx-muted">Time limit reached: the last {scores.n_left_out} pairs were '
            "not scored.</div>"
        )
    st.html("".join(parts))


def _three_digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _draw_caption(answer: Answer[ScoreRequest, PairSentences, ModelScores], *_: object) -> None:
    measures = {KINDS[one.kind].measure for one in answer.models}
    measure = measures.pop() if len(measures) == 1 else "(pseudo-)perplexity"
    capital = re.sub(r"[a-z]", lambda found: found[0].upper(), measure, count=1)
    text = (
        BEST[answer.asked.request.normalise].format(measure=measure)
        + f" {capital} = exp(− mean log-probability of the tokens); log-probabilities are natural "
        "logarithms. The stronger a token's colour, the less likely the token; the number is its "
        "log-probability."
    )
    if any(KINDS[one.kind].sees_both for one in answer.models):
        text += (
            " Pseudo-log-likelihood: the sum of the tokens' log-probabilities, each token hidden "
            "in turn."
        )
    if any(one.kind == "causal" for one in answer.models):
        text += (
            " ·: a causal model's first token, which perplexity doesn't count. (*Only these "
            "answers* scores it after a token for the start of a text.)"
        )
    st.caption(text)


PAIRS = Tab(
    kind=score_analogies.kind,
    name="Score analogies",
    opens={**screens.ANALOGIES, "analogy": "Score"},
    caption="Type an analogy's first pair, and pairs that could complete it. Each model scores the "
    "sentence that a template makes from both pairs.",
    form=FORM,
    draw=_draw_pairs,
    describe=_describe,
    per_row=3,  # a sentence needs room
    below=_draw_caption,
    exported="analogy-scores",
)
