"""Ask: queries to models, with one tab per kind of query, such as a sentence with a blank."""

import streamlit as st

from pages.ui.poll.entry import POLLED, draw_open_room
from pages.ui.queries.batch import BATCH
from pages.ui.queries.draw import draw_query
from pages.ui.queries.draw_batch import draw_batch
from pages.ui.queries.table import all_views
from pages.ui.router import is_routed, open_tab
from pages.ui.shared import links, screens, url_state


def main() -> None:
    """Draw the title, the open tab, and on the first one links to lessons and wrong answers."""
    with st.container(horizontal=True, vertical_alignment="bottom", key="ask-head"):
        st.header(
            "LAMA Explorer: ask language models what they know", anchor=False, width="content"
        )
        ways = st.container(horizontal=True, width="content")
    draw_open_room()
    tabs = all_views()
    with open_tab(list(tabs)) as name:
        if name == next(iter(tabs)):
            with ways:
                links.draw_link("New here? Take a lesson", "school", screens.LESSONS, {})
                links.draw_link(
                    "Read wrong answers", "fact_check", screens.RESULTS, screens.CONFIDENT_AND_WRONG
                )
        views = tabs[name]
        with st.container(key="tab-intro", horizontal=True, vertical_alignment="center"):
            view = ""
            if views.key:
                view = url_state.pick(
                    views.label, tuple(views.tabs), key=views.key, label_visibility="collapsed"
                )
            tab = views.tabs[view]
            st.caption(tab.caption, help=tab.help)
            poll = st.container(width="content")
        choices = ["Models"]
        choices += ["right answer"] * bool({"gold", "golds"} & {*tab.form.widgets}) + ["options"]
        choices += ["class poll"] * issubclass(tab.form.request, POLLED)
        st.toggle(f"{', '.join(choices[:-1])} and {choices[-1]}", key="choosing")  # on phones
        if tab is BATCH:
            draw_batch()
        else:
            draw_query(tab, poll)


if is_routed():
    main()
