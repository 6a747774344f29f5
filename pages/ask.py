"""Ask: queries to models, with one tab per kind of query, such as a sentence with a blank."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import streamlit as st

from lama_core.models.protocols import KINDS
from lama_core.queries.blank_answers import ClozeAnswer, ClozeRequest, ModelAnswer, gold_answers
from lama_core.requests import field_values
from lama_core.scoring.blanks import parse_query
from lama_core.scoring.retrieval import FoundPassage, with_passage
from lama_core.scoring.shared_fields import ClozeSettings
from lama_core.types import Query
from pages.ui.ask.answers import draw_ranking
from pages.ui.ask.batch import draw_batch
from pages.ui.ask.examples import draw_published_examples
from pages.ui.ask.inspection import draw_inspection
from pages.ui.ask.open_book import choose_book, draw_passage
from pages.ui.ask.outside_candidates import draw_outside_candidates
from pages.ui.ask.wordings import draw_wordings
from pages.ui.queries import history, pins
from pages.ui.queries.draw import draw_query
from pages.ui.queries.pairs import PAIRS
from pages.ui.queries.question import QUESTION
from pages.ui.queries.sentences import SENTENCES
from pages.ui.router import draw_page, draw_tabs
from pages.ui.shared import cache, links, predictions, screens, url_state
from pages.ui.shared.colours import model_colours
from pages.ui.shared.export import draw_answer_export
from pages.ui.shared.messages import errors_shown, plain
from pages.ui.shared.model_columns import draw_language_note, query_models, reserve_line


def draw_form() -> tuple[str, str, url_state.ClozeChoice]:
    """Draw the form; return the text, the gold answer and the other settings."""
    st.caption("Type a sentence with a blank. Each model ranks the words that could fill it.")
    url_state.SENTENCE.start()
    sentence, word = st.columns([3, 1], vertical_alignment="bottom")
    with sentence:
        text = url_state.SENTENCE.type(
            "Sentence with a blank",
            help="Write ___ (three underscores), [MASK], <mask> or [Y] where a word is missing. "
            "With several blanks, each blank gets its own list.",
        )
    gold = word.text_input(
        "Right answer (optional)",
        key="gold",
        bind=url_state.BOUND,
        help="The word that should fill the blank. Its rank is shown for every model, even if it "
        "is far down the list. A word of several subword tokens is scored token by token. For "
        "several blanks, give one answer each with | between them.",
    )
    models, more = st.columns([3, 1], vertical_alignment="bottom")
    with models:
        names = url_state.choose_models()
    with more, st.container(horizontal=True):
        with st.popover("Examples", icon=":material/lightbulb:"):
            st.caption("From Petroni et al. 2019, Figure 1 and Table 3")
            with st.container(height=380, border=False, gap=None):
                url_state.SENTENCE.draw_examples()
        with st.popover("Options", icon=":material/tune:"):
            choice = replace(url_state.choose_cloze_options(names), book=choose_book())
    return text, gold or "", choice


def draw_columns(
    query: Query, gold: str, choice: url_state.ClozeChoice, passage: FoundPassage | None
) -> tuple[ModelAnswer, ...]:
    """Draw a column per model, with its answers or a download button; return the answers."""

    def query_model(name: str, installed: tuple[str, ...]) -> ModelAnswer:
        settings = replace(choice.settings, models=installed)
        return cache.cloze_answer(
            settings,
            name,
            query.text(),
            gold,
            choice.top_k,
            choice.renormalise,
            passage,
            on_first=predictions.preliminary_drawer(colours[name]),
        )

    colours = model_colours(choice.settings.models)
    draw_language_note(" ".join(query.parts), choice.settings.models)
    lines = [reserve_line(f"blank {blank}") for blank in range(query.n_blanks)]
    text = query.text()
    found = {} if passage else cache.stored_answers(choice.settings, (text,))
    stored = {name: answers[text] for name, answers in found.items()}
    names = choice.settings.models
    columns = query_models(names, query_model, predictions.describe, stored=stored)
    models = tuple(column.answer for column in columns.values())
    for blank in range(query.n_blanks):
        heading = f"Blank {blank + 1} of {query.n_blanks}" if query.n_blanks > 1 else ""
        with lines[blank].container(horizontal=True, vertical_alignment="center"):
            if heading:
                st.caption(heading, width="content")
            warned = draw_outside_candidates(models, blank, choice.settings.candidates)
            if not warned:
                predictions.draw_first_answers(models, blank)
        if warned and len(models) > 1:
            predictions.draw_first_answers(models, blank)
        for column in columns.values():
            place = column.place if blank == 0 else column.box.empty()
            with place.container():
                if heading:
                    st.caption(heading)
                answers = column.answer.blanks[blank]
                if blank and not KINDS[column.answer.kind].fills_together:
                    filled = plain(answers.asked.replace("[MASK]", "___"))
                    st.caption(f"Query with the model's own first answers filled in: {filled}")
                predictions.draw_answers(answers, column.colour)
    return models


def draw_notes(settings: ClozeSettings, answers: tuple[ModelAnswer, ...]) -> None:
    """Draw captions: which words are ranked, how they are normalised, and the models' notes."""
    candidates = cache.candidates_of(settings)
    sizes = [answer.n_candidates for answer in answers]
    caption = predictions.describe_candidates(candidates, sizes)
    for answer in answers:
        if answer.blanks[0].over == "rescored":
            title = plain(url_state.title_of(answer.name))
            caption += f" {title} ranks only the {answer.blanks[0].n_over:,} words it rescores."
    if {answer.name for answer in answers} >= predictions.TWINS:
        caption += f" {predictions.TWIN_NOTE}"
    st.caption(caption)
    for answer in answers:
        if answer.notes:
            st.caption(f"{plain(url_state.title_of(answer.name))}: {plain(' '.join(answer.notes))}")


def request_for(
    text: str, settings: ClozeSettings, gold: str, choice: url_state.ClozeChoice
) -> ClozeRequest:
    """The request that gives the same answers on the command line."""
    return ClozeRequest(
        **field_values(settings),
        text=text,
        top_k=choice.top_k,
        gold=gold or None,
        renormalise=choice.renormalise,
        open_book=choice.book,
    )


def draw_sentence() -> None:
    """Draw the tab Sentence: the form, each model's answers, and the ways to inspect them."""
    with errors_shown():
        text, gold, choice = draw_form()
        query = parse_query(text)
        choice.settings.check()
        gold_answers(gold, query.n_blanks)
        history.add_entry(request_for(text, choice.settings, gold, choice))
        passage = draw_passage(query, choice.book)
        answers = draw_columns(query, gold, choice, passage)
        if answers:
            settings = replace(choice.settings, models=tuple(answer.name for answer in answers))
            draw_notes(settings, answers)
            candidates = cache.candidates_of(settings)
            answer = ClozeAnswer(query.text(), candidates, answers, passage)
            request = request_for(text, settings, gold, choice)
            pin = partial(pins.draw_pin, request, key="cloze pin")
            draw_answer_export("cloze", answer, request, pin)
            inspected = with_passage(query, passage).text() if passage else text
            draw_inspection(inspected, gold, replace(choice, settings=settings))


def draw_answers() -> None:
    """Draw the tab Answers: the user's own answers to a blank, or whole sentences."""
    chosen = url_state.pick("What to rank", ("Answers to a blank", "Whole sentences"), key="score")
    if chosen == "Whole sentences":
        draw_query(SENTENCES)
    else:
        draw_ranking()


def draw_analogy() -> None:
    """Draw the tab Analogy. Its modules are imported only when it is opened."""
    st.caption("A is to B as C is to D: a model that completes an analogy has found the relation.")
    chosen = url_state.pick("What to do", ("Solve", "Score"), key="analogy")
    if chosen == "Score":
        draw_query(PAIRS)
    else:
        from pages.ui.analogy.solve import draw_solve

        draw_solve()


def main() -> None:
    """Draw the title, links to lessons and wrong answers, and the open tab."""
    with st.container(horizontal=True, vertical_alignment="bottom", key="ask-head"):
        st.subheader(
            "LAMA Explorer: ask language models what they know", anchor=False, width="content"
        )
        links.draw_link("Teach: lessons", "school", screens.LESSONS, {})
        links.draw_link(
            "Inspect: wrong answers", "fact_check", screens.RESULTS, screens.WRONG_ANSWERS
        )
    tabs: dict[str, Callable[[], None]] = {
        "Sentence": draw_sentence,
        "Wordings": draw_wordings,
        "Answers": draw_answers,
        "Question": partial(draw_query, QUESTION),
        "Analogy": draw_analogy,
        "Batch": draw_batch,
        "Examples": draw_published_examples,
    }

    def draw_tab(name: str) -> None:
        st.toggle("Choose models, right answer and options", key="choosing")  # on phones
        tabs[name]()

    draw_tabs(list(tabs), draw_tab)


draw_page(main)
