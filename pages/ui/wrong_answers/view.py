"""The Wrong answers tab: one row per fact with every model's answer."""

import streamlit as st

from pages.ui.shared import cache
from pages.ui.shared.run_choice import RunChoice, draw_comparison_basis
from pages.ui.shared.url_state import pick
from pages.ui.wrong_answers.confusion import draw_confusion
from pages.ui.wrong_answers.filters import choose_filters, draw_active, open_on_wrong
from pages.ui.wrong_answers.rows import draw_fallbacks, draw_rows
from pages.ui.wrong_answers.tags import draw_verdicts

VIEWS = ("Facts", "Confusion", "Frequent answers")


def draw_wrong_answers(choice: RunChoice) -> None:
    """Draw the filters, then the facts, the confusion matrix or the frequent wrong answers."""
    draw_comparison_basis(choice)
    joined = cache.joined_answers(choice.runs, choice.ranking)
    open_on_wrong(choice.names)
    filters, active = st.container(), st.container()
    views_box, *more = st.columns([6, 4, 4], vertical_alignment="bottom")
    view = pick("View", VIEWS, key="view", place=views_box, label_visibility="collapsed")
    with filters:
        label = "Model for filters" if view == "Frequent answers" else "Model"
        chosen = choose_filters(choice, joined, any_verdict=view != "Facts", label=label)
    rows = joined.select(chosen)
    with active:
        draw_active(chosen, choice, joined, len(rows))
        draw_verdicts(joined, rows, choice)
    if view == "Facts":
        draw_rows(joined, rows, chosen, choice, *more)
    elif view == "Confusion":
        draw_confusion(joined, rows, chosen, choice)
    else:
        draw_fallbacks(joined, rows, chosen, choice)
