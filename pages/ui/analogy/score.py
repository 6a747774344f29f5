"""The Score tab: which pair completes the analogy best, and which tokens decide it."""

from html import escape
from typing import cast

import streamlit as st

from lama_core.errors import UserError
from lama_core.glossary import explain
from lama_core.models.cache import Precision
from lama_core.models.protocols import KINDS
from lama_core.models.sources.catalog import find_model
from lama_core.models.sources.locations import is_here
from lama_core.probes.analogy.score import (
    ModelScores,
    Normalise,
    Pair,
    ScoreAnswer,
    ScoreRequest,
    parse_pair,
)
from lama_core.probes.analogy.templates import DEFAULT_TEMPLATE
from lama_core.requests import values
from lama_core.rounding import fixed
from lama_core.scoring.shared_fields import ModelSettings
from pages.ui.analogy import templates
from pages.ui.shared import cache, history, predictions, url_state
from pages.ui.shared.colours import model_colours
from pages.ui.shared.export import draw_export
from pages.ui.shared.fetching import draw_offer
from pages.ui.shared.messages import faults_shown
from pages.ui.shared.model_columns import boxes_of
from pages.ui.shared.token_strips import heat_scale, heat_strip

FIRST_QUERY = "Paris:France"
FIRST_PAIRS = "Rome:Italy, Italy:Rome, Rome:Germany, Rome:Berlin"


def draw_score() -> None:
    """The whole tab."""
    query, pairs, names, template, normalise, precision = _ask()
    ModelSettings(models=names, precision=precision).check()
    history.note(
        ScoreRequest(
            query=":".join(query),
            pairs=tuple(":".join(pair) for pair in pairs),
            models=names,
            template=template,
            normalise=normalise,
            precision=precision,
        )
    )
    colours = model_colours(names)
    ranked = {
        "sum": "The pair with the highest total log-probability completes the analogy best.",
        "mean": "The pair with the lowest (pseudo-)perplexity completes the analogy best.",
    }[normalise]
    st.caption(
        f"{ranked} (Pseudo-)perplexity = exp(− mean log-probability of the tokens); "
        "log-probabilities are natural logarithms. The stronger a token's colour, the less likely "
        "it is where it stands; the number is its log-probability."
    )
    found: dict[str, ModelScores] = {}
    for name, box in boxes_of(names, per_row=2).items():  # a sentence needs room
        with box:
            entry = find_model(name)
            if not is_here(entry):
                predictions.draw_head(name, url_state.title_of(name), colours[name], "not here yet")
                draw_offer(entry)
                continue
            head = st.container()
            with faults_shown(), st.spinner("Scoring the sentences", show_time=True):
                found[name] = cache.pair_scores(name, precision, query, pairs, template, normalise)
            with head:
                detail = _describe(found[name]) if name in found else ""
                predictions.draw_head(name, url_state.title_of(name), colours[name], detail)
            if name in found:
                st.html(heat_scale(colours[name]))
                _draw_pairs(found[name], colours[name])
    if found:
        _draw_export(ScoreAnswer(query, template, normalise, tuple(found.values())), precision)


def _describe(scores: ModelScores) -> str:
    """A model's kind, and what its score of a sentence is called."""
    kind = KINDS[scores.kind]
    return predictions.with_how(
        kind.title, kind.measure, precision=scores.precision, device=scores.device
    )


def _ask() -> tuple[Pair, tuple[Pair, ...], tuple[str, ...], str, Normalise, Precision]:
    """The widgets of the tab."""
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
        help="Two or more pairs C:D, set apart by commas. Each is put into the template with the "
        "query pair.",
    )
    models, template, how, precise = st.columns([4, 4, 2, 2], vertical_alignment="bottom")
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
        raise UserError("No candidate pair is given: write two or more, as Rome:Italy, Italy:Rome.")
    return (
        parse_pair(query or ""),
        pairs,
        names,
        chosen,
        cast(Normalise, normalise),
        precision,
    )


def _draw_pairs(scores: ModelScores, colour: str) -> None:
    """The pairs, best first, each with its sentence as a heat strip."""
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
            '<div class="lx-muted">The time for a question was over: the last '
            f"{scores.n_left_out} pairs were not scored.</div>"
        )
    st.html("".join(parts))


def _draw_export(answer: ScoreAnswer, precision: Precision) -> None:
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
    request = ScoreRequest(
        query=":".join(answer.query),
        pairs=tuple(":".join(pair.pair) for pair in answer.models[0].pairs),
        models=tuple(model.name for model in answer.models),
        template=answer.template,
        normalise=answer.normalise,
        precision=precision,
    )
    draw_export("analogy-scores", lambda: rows, values(request), request, record=answer.to_json)
