"""The view Score: which pair completes the analogy best, and which tokens decide it."""

from dataclasses import replace
from html import escape
from typing import cast

import streamlit as st

from lama_core.api.queries import DEFAULT_TEMPLATE, ModelSettings
from lama_core.errors import UserError
from lama_core.glossary import explain
from lama_core.models.protocols import KINDS
from lama_core.queries.pairs import (
    ModelScores,
    Normalise,
    ScoreAnswer,
    ScoreRequest,
    parse_pair,
)
from lama_core.requests import field_values
from lama_core.rounding import fixed
from pages.ui.analogy import templates
from pages.ui.shared import cache, history, predictions, url_state
from pages.ui.shared.export import draw_export
from pages.ui.shared.model_columns import query_models
from pages.ui.shared.token_strips import heat_scale, heat_strip

FIRST_QUERY = "Paris:France"
FIRST_PAIRS = "Rome:Italy, Italy:Rome, Rome:Germany, Rome:Berlin"


def draw_score() -> None:
    """Draw the view."""
    request = _draw_form()
    ModelSettings(models=request.models, precision=request.precision).check()
    history.add_entry(request)
    query, pairs = parse_pair(request.query), tuple(map(parse_pair, request.pairs))
    best = {
        "sum": "The pair with the highest total log-probability completes the analogy best.",
        "mean": "The pair with the lowest (pseudo-)perplexity completes the analogy best.",
    }[request.normalise]
    st.caption(
        f"{best} (Pseudo-)perplexity = exp(− mean log-probability of the tokens); "
        "log-probabilities are natural logarithms. The stronger a token's colour, the less likely "
        "the token; the number is its log-probability."
    )

    def query_model(name: str, _: tuple[str, ...]) -> ModelScores:
        return cache.pair_scores(
            name, request.precision, query, pairs, request.template, request.normalise
        )

    columns = query_models(
        request.models, query_model, _describe, per_row=3
    )  # a sentence needs room
    for column in columns.values():
        with column.place.container():
            st.html(heat_scale(column.colour))
            _draw_pairs(column.answer, column.colour)
    if columns:
        models = tuple(column.answer for column in columns.values())
        answer = ScoreAnswer(query, request.template, request.normalise, models)
        scored = tuple(":".join(pair.pair) for pair in models[0].pairs)  # within the time limit
        _draw_export(answer, replace(request, models=tuple(columns), pairs=scored))


def _describe(scores: ModelScores) -> str:
    """A model's kind, and its measure of a sentence, such as perplexity."""
    kind = KINDS[scores.kind]
    return predictions.join_details(
        kind.title, kind.measure, precision=scores.precision, device=scores.device
    )


def _draw_form() -> ScoreRequest:
    left, right = st.columns([1, 3], vertical_alignment="bottom")
    query = left.text_input(
        "Query pair",
        FIRST_QUERY,
        key="query",
        bind=url_state.BOUND,
        help="Two words with a colon between them: A:B.",
    )
    typed = right.text_input(
        "Candidate pairs",
        FIRST_PAIRS,
        key="pairs",
        bind=url_state.BOUND,
        help="Two or more pairs C:D, separated by commas. Each is scored in the template together "
        "with the query pair.",
    )
    models, template, how, precise = st.columns([5, 4, 2, 2.4], vertical_alignment="bottom")
    with models:
        names = url_state.choose_models()
    with template:
        chosen = templates.choose_template(DEFAULT_TEMPLATE, templates.SCORE_TEMPLATE)
    with how:
        normalise = url_state.pick(
            "Log-probabilities", ("sum", "mean"), key="normalise", help=explain("Score of a pair")
        )
    with precise:
        precision = url_state.choose_precision()
    pairs = tuple(parse_pair(text) for text in (typed or "").split(",") if text.strip())
    if not pairs:
        raise UserError("No candidate pairs. Write two or more, such as Rome:Italy, Italy:Rome.")
    return ScoreRequest(
        query=":".join(parse_pair(query or "")),
        pairs=tuple(map(":".join, pairs)),
        models=names,
        template=chosen,
        normalise=cast(Normalise, normalise),
        precision=precision,
    )


def _draw_pairs(scores: ModelScores, colour: str) -> None:
    """Draw the pairs, best first, each with its sentence as a heat strip."""
    measure = KINDS[scores.kind].measure
    parts = []
    for pair in scores.ranked:
        head, tail = map(escape, pair.pair)
        values = (
            f"total log-prob. {fixed(pair.total, 2)}",
            f"{measure} {pair.mean_perplexity:,.3g} (mean over {pair.n_scored:,} tokens)",
        )
        parts.append(
            f'<div class="lx-pair"><span class="lx-muted">{pair.rank}</span><b>{head} : {tail}</b>'
            + "".join(f'<span class="lx-muted">{value}</span>' for value in values)
            + f"</div>{heat_strip(pair.tokens, colour)}"
        )
    if scores.n_left_out:
        parts.append(
            f'<div class="lx-muted">Time limit reached: the last {scores.n_left_out} pairs were '
            "not scored.</div>"
        )
    st.html("".join(parts))


def _draw_export(answer: ScoreAnswer, request: ScoreRequest) -> None:
    rows = [
        {
            "model": model.name,
            "rank": pair.rank,
            "head": pair.pair[0],
            "tail": pair.pair[1],
            "measure": KINDS[model.kind].measure,
            "log_prob": pair.total,
            "n_tokens": pair.n_scored,
            "mean_perplexity": pair.mean_perplexity,
            "ranked_by": f"{answer.normalise} of log-probabilities",
            "precision": model.precision,
            "device": model.device,
            "sentence": pair.sentence,
        }
        for model in answer.models
        for pair in model.ranked
    ]
    draw_export(
        "analogy-scores", lambda: rows, field_values(request), request, record=answer.to_json
    )
