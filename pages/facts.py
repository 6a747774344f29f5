"""Facts: one row a fact with every model's answer, to look at errors one by one."""

import streamlit as st

from pages.ui.facts.confusion import draw_confusion
from pages.ui.facts.filters import choose_filters, draw_active
from pages.ui.facts.rows import draw_fallbacks, draw_rows
from pages.ui.shared import cache, links
from pages.ui.shared.choice import draw_runs, open_runs
from pages.ui.shared.messages import faults_shown, show_note
from pages.ui.shared.router import draw_page, draw_tabs


def draw_empty() -> None:
    """No run yet: the way to the first."""
    show_note(
        "No finished run is here yet: facts are listed with what models answered to them. Start a "
        "run on the Results page, or with `lama-explorer probe --dataset starter --model "
        "minilm-mlm`."
    )
    st.page_link(links.RESULTS, label="To the Results page", icon=":material/bar_chart:")


def main() -> None:
    """Choose runs and filters; list the facts, or count what is said for what."""
    st.header("Facts", anchor=False)
    st.caption(
        "What lies behind the numbers: every fact with each model's first answer. Tick a row, "
        "or press Shift and Space on it, to see the best answers, and to ask again in Cloze."
    )
    with faults_shown():
        opened = open_runs(links.FACTS)
        if opened is None:
            draw_empty()
            return
        _, choice = opened
        joined = cache.joined_answers(choice.runs, choice.ranking)
        chosen = choose_filters(choice, joined)
        rows = joined.select(chosen.filter)
        draw_active(chosen, choice, len(rows), len(joined.facts))
        views = {"Facts": draw_rows, "Confusion": draw_confusion, "Wrong answers": draw_fallbacks}
        draw_tabs(list(views), lambda name: views[name](joined, rows, chosen, choice), key="view")
        draw_runs(choice)


draw_page(main)
