"""The Solve tab: three words and a blank, every model's answers, vector arithmetic beside them."""

from dataclasses import dataclass, replace
from html import escape

import streamlit as st

from lama_core.probes.analogy.solve import METHODS, Solution, SolveRequest, VectorAnswer
from lama_core.probes.analogy.templates import SLOTS, Question, ask_for
from lama_core.probes.cloze.query import ClozeAnswer
from lama_core.requests import values
from lama_core.rounding import fixed
from pages.ui.analogy import templates
from pages.ui.shared import cache, history, pins, predictions, url_state
from pages.ui.shared.export import draw_export
from pages.ui.shared.messages import plain
from pages.ui.shared.model_columns import ask_each, reserve_line

DEFAULT_TEMPLATE = "to-as"
FIRST = templates.EXAMPLES[0]


@dataclass(frozen=True, slots=True)
class Asked:
    """What the tab asks. gold: the word in the blank's field, or an empty string."""

    question: Question
    gold: str
    keep: bool
    choice: url_state.ClozeChoice

    def request(self, models: tuple[str, ...]) -> SolveRequest:
        """What gives the same from a terminal."""
        return SolveRequest(
            **values(self.choice.settings) | {"models": models},
            text=tuple(word or "___" for word in self.question.words or ()),
            template=self.question.template,
            keep_query_words=self.keep,
            top_k=self.choice.top_k,
            gold=self.gold or None,
            renormalise=self.choice.renormalise,
        )


def draw_solve() -> None:
    """The whole tab."""
    asked = _ask()
    asked.choice.settings.check()
    history.note(asked.request(tuple(asked.choice.settings.models)))
    blank = '<b aria-label="blank">&nbsp;?&nbsp;</b>'
    text = blank.join(escape(part) for part in asked.question.query.parts)
    st.html(f'<div class="lx-sentence">{text}</div>')
    solutions = _draw_columns(asked)
    if solutions:
        _draw_export(asked, solutions)


def _ask() -> Asked:
    """The widgets of the tab."""
    where = st.session_state.get("blank") or st.query_params.get("blank") or "D"
    words = []
    with st.container(key="analogy-words"):
        fields = st.columns([3, 3, 3, 3, 3.6], gap="small", vertical_alignment="bottom")
    for slot, first, field in zip(SLOTS, FIRST, fields, strict=False):
        asked_for = slot == where
        words.append(
            field.text_input(
                f"{slot}: asked for" if asked_for else slot,
                first,
                key=slot.lower(),
                bind=url_state.BOUND,
                placeholder="right answer (optional)" if asked_for else "",
                help="This word is left blank. Type the right answer here to see its rank; "
                "leave it empty if you don't know."
                if asked_for
                else None,
            )
        )
    with fields[4]:
        chosen = url_state.pick(
            "Blank",
            SLOTS,
            key="blank",
            first="D",
            help="Which of the four words is asked for: A is to B as C is to D.",
        )
    at = SLOTS.index(chosen or "D")
    models, template, more = st.columns([4, 4, 3], vertical_alignment="bottom")
    with models:
        names = url_state.choose_models()
    with template:
        how = templates.choose_template(DEFAULT_TEMPLATE, templates.SOLVE_TEMPLATE)
    with more, st.container(horizontal=True, vertical_alignment="center"):
        with st.popover("Examples", icon=":material/lightbulb:"):
            templates.draw_examples()
        with st.popover("Options", icon=":material/tune:"):
            keep = st.toggle(
                "The given words may be answers",
                key="keep",
                bind=url_state.BOUND,
                help="Off: the three given words are removed from the candidates, as in vector "
                "arithmetic since Mikolov et al. 2013. On: a model that only repeats shows it.",
            )
            choice = url_state.choose_cloze_options(names)
    gold = (words[at] or "").strip()
    given = [None if number == at else word or "" for number, word in enumerate(words)]
    return Asked(ask_for(given, how), gold, bool(keep), choice)


def _draw_columns(asked: Asked) -> tuple[Solution, ...]:
    """One column a model; a model that isn't here is offered instead."""
    choice = asked.choice

    def ask(name: str, here: tuple[str, ...]) -> Solution:
        settings = replace(choice.settings, models=here)
        return cache.solution(
            settings, name, asked.question, asked.gold, asked.keep, choice.top_k, choice.renormalise
        )

    line = reserve_line("solve")
    columns = ask_each(
        choice.settings.models, ask, lambda found: predictions.describe(found.cloze.models[0])
    )
    answers = tuple(column.answer.cloze.models[0] for column in columns.values())
    with line:
        predictions.draw_firsts(answers, 0)
    for column in columns.values():
        with column.place.container():
            blank = column.answer.cloze.models[0].blanks[0]
            predictions.draw_answers(blank, column.colour)
            _draw_arithmetic(column.answer.baselines)
    return tuple(column.answer for column in columns.values())


def _draw_arithmetic(answers: tuple[VectorAnswer, ...]) -> None:
    """What vector arithmetic on the model's own input embeddings gives, a column a method."""
    if not answers:
        return
    rows = []
    for number in range(max(len(answer.predictions) for answer in answers)):
        cells = []
        for answer in answers:
            item = answer.predictions[number] if number < len(answer.predictions) else None
            cells.append(
                f'<td class="word">{escape(item.token)}</td>'
                f'<td class="num muted">{fixed(item.score, 2)}</td>'
                if item
                else "<td></td><td></td>"
            )
        rows.append(f'<tr><td class="rank">{number + 1}</td>{"".join(cells)}</tr>')
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
        '<div class="lx-muted" title="cos(x, B - A + C), and the product of cosines">'
        "Baseline: vector arithmetic on its input embeddings</div>"
        f'<table class="lx lx-small"><thead><tr><th>#</th>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>{gold}"
    )


def _draw_export(asked: Asked, solutions: tuple[Solution, ...]) -> None:
    """CSV, JSON in the shape of `analogy solve --json`, and the command that prints it."""
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
    request = asked.request(tuple(model.name for model in whole.cloze.models))
    made = {**values(request), "methods": list(METHODS)}
    n_words = first.cloze.candidates.words
    size = "each model's whole vocabulary" if n_words is None else f"{len(n_words):,} words"
    removed = "" if asked.keep else ", without the given words"
    st.caption(f"Ranked: {size} ({plain(first.cloze.candidates.name)}){removed}.")
    draw_export(
        "analogy",
        whole.rows,
        made,
        request,
        record=whole.to_json,
        more=lambda: pins.draw_pin(request, key="analogy pin"),
    )
