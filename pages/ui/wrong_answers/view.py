"""The Wrong answers tab: one row per query with every model's answer."""

import streamlit as st

from lama_core.metrics.fact_answers import AnswerFilter
from lama_core.runs.chosen_facts import text_of
from pages.ui.shared import cache, links, screens
from pages.ui.shared.messages import counted
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
    filters = st.container()
    active = st.container(horizontal=True, vertical_alignment="center", key="active-filters")
    views_box, sort_box = st.columns([9, 5], vertical_alignment="center")
    view = pick("View", VIEWS, key="view", place=views_box, label_visibility="collapsed")
    with filters:
        chosen, marked = choose_filters(
            choice,
            any_verdict=view != "Facts",
            label="Model for filters" if view == "Frequent answers" else "Model",
        )
    rows = ticked = joined.select(chosen)
    with active:
        draw_active(chosen, choice, joined, rows, marked=marked)
        if view == "Confusion" and choice.names[chosen.of] in st.session_state.get("wrong", ()):
            st.caption(
                "Right answers count here, too, without the filter *Wrong*.", width="content"
            )
    draw_verdicts(joined, rows, choice)
    if view == "Facts":
        ticked = draw_rows(joined, rows, chosen, choice, sort_box)
    elif view == "Confusion":
        draw_confusion(joined, rows, chosen, choice)
    else:
        draw_fallbacks(joined, rows, chosen, choice)
    which = "ticked " * (len(ticked) < len(rows))
    facts = joined.facts["fact_id"].iloc[ticked].unique()
    every = joined.facts["fact_id"].iloc[joined.select(AnswerFilter(of=chosen.of))].nunique()
    if 0 < len(facts) < every and active.button(
        f"Only {'these' if len(facts) > 1 else 'this'} {which}{counted(len(facts), 'fact')}",
        key="only these",
        icon=":material/filter_center_focus:",
        help="Shows only these facts on all tabs of Results; the URL holds them, too. If they are "
        "chosen by a model's answers, its scores on them are biased.",
    ):
        only = text_of(map(cache.finished_run, choice.runs), facts)
        kept = links.params_without(("fact", "page", "relations"))
        links.go(screens.RESULTS, {**kept, links.ONLY: only})
