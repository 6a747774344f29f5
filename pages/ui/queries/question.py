"""Question: models answer a question in their own words."""

import time
from dataclasses import replace
from html import escape
from typing import cast

import numpy as np
import streamlit as st

from lama_core.models.sources.catalog import find_model
from lama_core.models.sources.locations import is_here
from lama_core.queries.answer_matching import Match, match
from lama_core.queries.blank_answers import GOLD_SEPARATOR
from lama_core.queries.kind import Answer, Asked
from lama_core.queries.question import (
    DEFAULT_MODEL,
    MOST_TOKENS,
    AskRequest,
    ModelText,
    ask,
    can_generate,
)
from lama_core.queries.question_prompts import MAX_TOKENS, PromptFormat, make_prompt
from lama_core.rounding import fixed
from lama_core.runs.find import list_runs
from lama_core.views.colours import model_colours
from pages.ui.queries import widgets
from pages.ui.queries.form import DrawField, Form
from pages.ui.queries.tab import Tab
from pages.ui.shared import cache, links, predictions, screens, url_state
from pages.ui.shared.messages import counted, plain
from pages.ui.shared.model_columns import ModelColumn
from pages.ui.shared.token_strips import heat_scale, heat_strip

# Questions with their right answers; the runs of SmolLM2 have all.
EXAMPLES = (
    ("What is the capital of Norway?", "Oslo"),
    ("What is the capital of South Carolina?", "Columbia"),
    ("In which city was Pablo Picasso born?", "Málaga | Malaga"),
    ("What was the native language of Cicero?", "Latin"),
    ("Which instrument does or did Jimi Hendrix play?", "guitar"),
)
ALONE = "questions, 0-shot"  # how the name of a run's prompts without examples begins
AGAIN = "asked servers"  # in the session: request to one model -> when it was asked again
FIELD = url_state.ExampleField("question", "right_texts", lambda: EXAMPLES)
PROMPTS: dict[PromptFormat, str] = {
    "chat": "Prompt, in its chat template",
    "question and answer": "Prompt",
    "plain": "Continues",
}
# Verdict -> the class of its chip, and its text.
VERDICTS = {
    "match": (" lx-right", "✓ correct"),
    "no match": ("", "✗ wrong"),
    "no answer": ("", "no answer"),
}


def _layout(draw: DrawField) -> None:
    FIELD.start()
    widgets.draw_with_ask(draw, "question", "golds")
    widgets.draw_chips(widgets.examples_of(FIELD))
    widgets.draw_models_and_options(draw, "plain", "max_tokens", "precision")


FORM = Form(
    AskRequest,
    {
        "question": widgets.example_field(
            FIELD, "question", "Question", help="Any question, or with Options a text to continue."
        ),
        "golds": widgets.list_field(
            "golds",
            "Right answers (optional)",
            key=FIELD.golds,
            first=(),
            between=GOLD_SEPARATOR,
            unique=True,
            help=f"The names of the right answer, separated by {GOLD_SEPARATOR}. A text that gives "
            "one of them in whole words is right.",
        ),
        "models": widgets.models_field(key="generators", default=(DEFAULT_MODEL,)),
        "plain": widgets.toggle_field(
            "plain",
            "Continue the text as it is",
            help="Off: instruct models are asked with their chat template, others with "
            "`Question: ... Answer:`. On: each model continues the typed text.",
        ),
        "max_tokens": widgets.slider_field(
            "max_tokens", "Tokens per answer (at most)", 1, MOST_TOKENS, MAX_TOKENS, key="longest"
        ),
        "precision": widgets.PRECISION,
    },
    _layout,
)


def _since(request: AskRequest, name: str) -> float:
    """When this visitor last had a model's server asked again; 0 for never."""
    times: dict[AskRequest, float] = st.session_state.get(AGAIN, {})
    return times.get(replace(request, models=(name,)), 0.0)


def _draw_below(answer: Answer[AskRequest, None, ModelText], *_: object) -> None:
    """Draw the button that asks servers again, and how to read the answers."""
    servers = [one.name for one in answer.models if one.generated.made]

    def ask_again() -> None:
        times = st.session_state.setdefault(AGAIN, {})
        times |= {replace(answer.asked.request, models=(one,)): time.time() for one in servers}

    if servers:
        st.button(
            "Ask the server again",
            key="ask server",
            icon=":material/refresh:",
            on_click=ask_again,
            help="A chat server's answer is stored, and shown again for the same question. Ask "
            "again for a new one.",
        )
    _draw_legend()


def _draw_legend() -> None:
    """Draw how to read the answers."""
    st.caption(
        "Probability: the product of the tokens' probabilities, so long texts have low ones. "
        "**✓**: the text contains a right answer as whole words.",
        help="Each token is the likeliest one after the text before it; an answer ends at its "
        "first line break. If the question already contains a right answer, the text must be that "
        "answer alone.",
    )


def _draw_stored(asked: Asked[AskRequest, None]) -> None:
    """Draw the stored answer of each model that isn't installed, and a link to its run."""
    missing = [name for name in asked.request.models if not is_here(find_model(name))]
    infos = list_runs(kinds=("generation",)).intact().runs if missing else ()
    infos = tuple(info for info in infos if info.prompts.startswith(ALONE))
    for name in missing:
        run = next((info for info in infos if info.model == name), None)
        if run is None:
            continue
        rows = cache.finished_run(run).facts.dropna(subset=["answer"]).set_index("query")
        golds, question = asked.request.golds, asked.request.question.strip()
        if question not in rows.index:
            st.info(
                f"{plain(url_state.title_of(name))} has no stored answer to this question: "
                "download it, or choose an example.",
                icon=":material/inventory_2:",
            )
            continue
        row = rows.loc[[question]].iloc[0]
        with st.container(border=True):
            predictions.draw_head(
                name,
                url_state.title_of(name),
                model_colours(asked.request.models)[name],
                f"{predictions.title_of_kind(find_model(name).kind)} · stored answer",
            )
            prob = predictions.probability(np.exp(row["first_log_prob"]))
            how = run.prompts.removeprefix(ALONE).removeprefix(", ") or "chat"
            st.html(
                _said(row["answer"], match(row["answer"], golds, question) if golds else None)
                + f'<div class="lx-muted">prob. {prob}</div>'
                + _prompt(question, cast(PromptFormat, how), briefly=True)
            )
            links.draw_link(
                f"Its answers to {run.n:,} questions",
                "fact_check",
                screens.RESULTS,
                {**screens.ALL_FACTS, "runs": run.id},
                key=f"stored {name}",
            )
    if infos and len(missing) == len(asked.request.models):  # else it is below the answers
        _draw_legend()


def _prompt(question: str, how: PromptFormat, *, briefly: bool) -> str:
    """HTML of the text that a model got, as `make_prompt` makes it."""
    prompt = make_prompt(question, (), how, briefly=briefly)
    text = prompt if isinstance(prompt, str) else prompt.messages[-1].text
    return f'<div class="lx-muted">{PROMPTS[how]}: “{escape(text)}”</div>'


def _said(text: str, found: Match | None) -> str:
    """HTML of a generated text and its verdict."""
    shown, chip = escape(text) or '<span class="lx-muted">(an empty text)</span>', ""
    if found:
        style, verdict = VERDICTS[found.verdict]
        if found.right and not found.exact_match:
            verdict = "✓ contains the right answer"
        chip = f'<span class="lx-chip{style}">{verdict}</span>'
    return f'<div class="lx-sentence">{shown}</div>{chip}'


def _describe(one: ModelText) -> str:
    return predictions.join_details(one, predictions.title_of_kind(one.kind))


def _draw_text(asked: Asked[AskRequest, None], column: ModelColumn[ModelText]) -> None:
    """Draw a model's text with its verdict, probability and tokens."""
    one, colour = column.answer, column.colour
    parts, n = [_said(one.generated.text.strip(), one.match)], len(one.generated.tokens)
    if one.prob is not None:
        parts.append(
            f'<div class="lx-muted">prob. {predictions.probability(one.prob)}'
            f'<span class="{predictions.DETAIL}">, log-prob. {fixed(one.log_prob, 2)}, '
            f"{counted(n, 'token')}</span></div>"
        )
    elif np.isnan(one.log_prob):
        parts.append(
            '<div class="lx-muted">probability unknown: the server returns no log-probabilities'
            "</div>"
        )
    parts.append(_prompt(asked.request.question, one.how, briefly=False))
    parts += [f'<div class="lx-muted">{escape(note)}</div>' for note in one.notes()]
    if one.token_scores:
        strip = heat_scale(colour) + heat_strip(one.token_scores, colour)
        parts.append(f"<details><summary>Tokens</summary>{strip}</details>")
    st.html("".join(parts))


QUESTION = Tab(
    kind=ask.kind,
    name="Question",
    opens={"tab": "Question"},
    caption="Type a question. Each model that generates text answers in its own words.",
    form=FORM,
    draw=_draw_text,
    describe=_describe,
    can_answer=can_generate,
    cannot="Masked models fill blanks and don't generate text; choose a causal or encoder-decoder "
    "model such as SmolLM2 135M Instruct, or a chat server.",
    since=_since,
    per_row=3,
    language_of=lambda request: request.question,
    above=_draw_stored,
    below=_draw_below,
    exported="question",
    has_details=True,
)
