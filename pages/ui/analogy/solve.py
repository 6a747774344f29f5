"""The view Solve: three words and a blank, each model's answers, and vector arithmetic."""

from dataclasses import dataclass, replace
from html import escape
from itertools import zip_longest

import streamlit as st

from lama_core.queries.analogy import ARITHMETIC_METHODS, Solution, SolveRequest, VectorAnswer
from lama_core.queries.analogy_templates import SLOTS, AnalogyQuestion, make_analogy_question
from lama_core.queries.blank_answers import ClozeAnswer
from lama_core.requests import field_values
from lama_core.rounding import fixed
from pages.ui.analogy import templates
from pages.ui.queries import history, pins
from pages.ui.queries.widgets import template_field
from pages.ui.shared import cache, predictions, url_state
from pages.ui.shared.export import draw_export
from pages.ui.shared.messages import plain
from pages.ui.shared.model_columns import query_models, reserve_line

DEFAULT_TEMPLATE = "to-as"
FIRST = templates.EXAMPLES[0]


@dataclass(frozen=True, slots=True)
class FormInput:
    """The form's values: `gold` is the word typed at the blank, or empty."""

    question: AnalogyQuestion
    gold: str
    keep: bool
    choice: url_state.ClozeChoice

    def request(self, models: tuple[str, ...]) -> SolveRequest:
        """The request that gives the same answers on the command line."""
        return SolveRequest(
            **field_values(self.choice.settings) | {"models": models},
            text=tuple(word or "___" for word in self.question.words or ()),
            template=self.question.template,
            keep_query_words=self.keep,
            top_k=self.choice.top_k,
            gold=self.gold or None,
            renormalise=self.choice.renormalise,
        )


TEMPLATE = template_field(DEFAULT_TEMPLATE, "template")


def draw_solve() -> None:
    """Draw the view."""
    given = _draw_form()
    given.choice.settings.check()
    history.add_entry(given.request(tuple(given.choice.settings.models)))
    blank = '<b aria-label="blank">&nbsp;?&nbsp;</b>'
    text = blank.join(escape(part) for part in given.question.query.parts)
    st.html(f'<div class="lx-sentence">{text}</div>')
    solutions = _draw_columns(given)
    if solutions:
        _draw_export(given, solutions)


def _draw_form() -> FormInput:
    blank_slot = st.session_state.get("blank") or st.query_params.get("blank") or "D"
    words = []
    with st.container(key="analogy-words"):
        fields = st.columns([3, 3, 3, 3, 3.6], gap="small", vertical_alignment="bottom")
    for slot, first, field in zip(SLOTS, FIRST, fields, strict=False):
        is_blank = slot == blank_slot
        words.append(
            field.text_input(
                f"{slot}: blank" if is_blank else slot,
                first,
                key=slot.lower(),
                bind=url_state.BOUND,
                placeholder="right answer (optional)" if is_blank else "",
                help="The model doesn't see this word. Type the right answer to see its rank, or "
                "leave the field empty."
                if is_blank
                else None,
            )
        )
    with fields[4]:
        chosen = url_state.pick(
            "Blank",
            SLOTS,
            key="blank",
            first="D",
            help="The word that the models predict: A is to B as C is to D.",
        )
    at = SLOTS.index(chosen or "D")
    models, template, more = st.columns([4, 4, 3], vertical_alignment="bottom")
    with models:
        names = url_state.choose_models()
    with template:
        how = TEMPLATE.draw({})
    with more, st.container(horizontal=True, vertical_alignment="center"):
        with st.popover("Examples", icon=":material/lightbulb:"):
            templates.draw_examples()
        with st.popover("Options", icon=":material/tune:"):
            keep = st.toggle(
                "Include the given words as candidates",
                key="keep",
                bind=url_state.BOUND,
                help="Off: the three given words are removed from the candidates, as is usual for "
                "vector arithmetic since Mikolov et al. 2013. On: you see whether a model just "
                "repeats a given word.",
            )
            choice = url_state.choose_cloze_options(names)
    gold = (words[at] or "").strip()
    known = [None if number == at else word or "" for number, word in enumerate(words)]
    return FormInput(make_analogy_question(known, how), gold, bool(keep), choice)


def _draw_columns(given: FormInput) -> tuple[Solution, ...]:
    """Draw a column per model: its answers, or a download button."""
    choice = given.choice

    def query_model(name: str, installed: tuple[str, ...]) -> Solution:
        settings = replace(choice.settings, models=installed)
        return cache.solution(
            settings, name, given.question, given.gold, given.keep, choice.top_k, choice.renormalise
        )

    line = reserve_line("solve")
    columns = query_models(
        choice.settings.models,
        query_model,
        lambda solution: predictions.describe(solution.cloze.models[0]),
    )
    answers = tuple(column.answer.cloze.models[0] for column in columns.values())
    with line:
        predictions.draw_first_answers(answers, 0)
    for column in columns.values():
        with column.place.container():
            blank = column.answer.cloze.models[0].blanks[0]
            predictions.draw_answers(blank, column.colour)
            _draw_arithmetic(column.answer.baselines)
    return tuple(column.answer for column in columns.values())


def _draw_arithmetic(answers: tuple[VectorAnswer, ...]) -> None:
    """Draw the answers of vector arithmetic on a model's input embeddings, a column per method."""
    if not answers:
        return
    rows = []
    lists = (answer.predictions for answer in answers)
    for rank, items in enumerate(zip_longest(*lists), start=1):
        cells = (
            f'<td class="word">{escape(item.token)}</td>'
            f'<td class="num muted">{fixed(item.score, 2)}</td>'
            if item
            else "<td></td><td></td>"
            for item in items
        )
        rows.append(f'<tr><td class="rank">{rank}</td>{"".join(cells)}</tr>')
    heads = "".join(f'<th>{answer.method}</th><th class="num">score</th>' for answer in answers)
    ranks = [
        f"{answer.method} {answer.gold_rank:,}"
        for answer in answers
        if answer.gold_rank is not None
    ]
    gold = (
        f'<div class="lx-muted">Rank of the right answer: {", ".join(ranks)}</div>' if ranks else ""
    )
    st.html(
        '<div class="lx-muted" title="Blank at D: 3CosAdd = cos(x, B - A + C), '
        '3CosMul = cos(x, B) cos(x, C) / cos(x, A)">'
        "Baseline: vector arithmetic on the model's input embeddings</div>"
        f'<table class="lx lx-small"><thead><tr><th>#</th>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>{gold}"
    )


def _draw_export(given: FormInput, solutions: tuple[Solution, ...]) -> None:
    """Draw the export: CSV, the JSON of `analogy solve --json`, and the command."""
    first = solutions[0]
    whole = Solution(
        first.question,
        ClozeAnswer(
            first.cloze.text,
            first.cloze.candidates,
            tuple(solution.cloze.models[0] for solution in solutions),
        ),
        tuple(answer for solution in solutions for answer in solution.baselines),
        first.note,
    )
    request = given.request(tuple(model.name for model in whole.cloze.models))
    made = {**field_values(request), "methods": list(ARITHMETIC_METHODS)}
    n_words = first.cloze.candidates.words
    size = "each model's whole vocabulary" if n_words is None else f"{len(n_words):,} words"
    removed = "" if given.keep else ", without the given words"
    st.caption(f"Ranked: {size} ({plain(first.cloze.candidates.name)}){removed}.")
    draw_export(
        "analogy",
        whole.rows,
        made,
        request,
        record=whole.to_json,
        more=lambda: pins.draw_pin(request, key="analogy pin"),
    )
