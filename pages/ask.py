"""Ask: queries to models, with one tab per kind of query, such as a sentence with a blank."""

from collections.abc import Callable
from functools import partial

import streamlit as st

from pages.ui.poll.entry import draw_open_room
from pages.ui.queries.analogy import ANALOGY
from pages.ui.queries.answers import ANSWERS
from pages.ui.queries.cloze import SENTENCE
from pages.ui.queries.draw import draw_query
from pages.ui.queries.draw_batch import draw_batch
from pages.ui.queries.examples import draw_published_examples
from pages.ui.queries.grid import GRID
from pages.ui.queries.pairs import PAIRS
from pages.ui.queries.question import QUESTION
from pages.ui.queries.sentences import SENTENCES
from pages.ui.queries.table import added_tabs
from pages.ui.queries.wordings import WORDINGS
from pages.ui.router import is_routed, open_tab
from pages.ui.shared import links, screens, url_state

WITH_POLL = ("Sentence", "Answers")
WITHOUT_ANSWER = ("Grid", "Batch", "Examples")  # tabs without a field for the right answer


def draw_answers() -> None:
    """Draw the tab Answers: the user's own answers to a blank, or whole sentences."""
    chosen = url_state.pick(
        "What to rank",
        ("Answers to a blank", "Whole sentences"),
        key="score",
        label_visibility="collapsed",
    )
    draw_query(SENTENCES if chosen == SENTENCES.name else ANSWERS)


def draw_analogy() -> None:
    """Draw the tab Analogy."""
    chosen = url_state.pick(
        "What to do", ("Solve", "Score"), key="analogy", label_visibility="collapsed"
    )
    draw_query(PAIRS if chosen == "Score" else ANALOGY)


def main() -> None:
    """Draw the title, the open tab, and on the first one links to lessons and wrong answers."""
    with st.container(horizontal=True, vertical_alignment="bottom", key="ask-head"):
        st.header(
            "LAMA Explorer: ask language models what they know", anchor=False, width="content"
        )
        ways = st.container(horizontal=True, width="content")
    draw_open_room()
    tabs: dict[str, Callable[[], object]] = {
        "Sentence": partial(draw_query, SENTENCE),
        "Wordings": partial(draw_query, WORDINGS),
        "Answers": draw_answers,
        "Question": partial(draw_query, QUESTION),
        "Analogy": draw_analogy,
        "Grid": partial(draw_query, GRID),
        "Batch": draw_batch,
        "Examples": draw_published_examples,
    }
    tabs |= {name: partial(draw_query, tab) for name, tab in added_tabs().items()} | tabs

    with open_tab(list(tabs)) as name:
        if name == SENTENCE.name:
            with ways:
                links.draw_link("New here? Take a lesson", "school", screens.LESSONS, {})
                links.draw_link(
                    "Read wrong answers", "fact_check", screens.RESULTS, screens.CONFIDENT_AND_WRONG
                )
        view = st.session_state.get("score", st.query_params.get("score"))
        whole = name == "Answers" and view == SENTENCES.name
        choices = [
            "Models",
            *["right answer"] * (name not in {*WITHOUT_ANSWER, *added_tabs()} and not whole),
            "options",
        ]
        choices += ["class poll"] * (name in WITH_POLL and not whole)
        st.toggle(f"{', '.join(choices[:-1])} and {choices[-1]}", key="choosing")  # on phones
        tabs[name]()


if is_routed():
    main()
