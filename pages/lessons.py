"""Lessons: guided units in which a class predicts an answer, then sees what models answer."""

import streamlit as st

from pages.ui.lessons import editor, lesson_list, lesson_view, own
from pages.ui.poll.entry import draw_open_room
from pages.ui.router import is_routed
from pages.ui.shared import visitors
from pages.ui.shared.messages import errors_shown, plain, show_error, show_note


def main() -> None:
    """Draw the lesson step that the URL names, else the list of lessons."""
    draw_open_room()
    listing = own.all_lessons()
    wanted = st.query_params.get(lesson_view.LESSON, "")
    lesson = listing.find(wanted)
    with errors_shown():
        if lesson is not None and lesson_view.EDIT in st.query_params and own.is_mine(lesson):
            editor.draw_editor(lesson)
            return
        if lesson is not None:
            lesson_view.draw_lesson(lesson, listing)
            return
        st.header("Lessons", anchor=False)
        if wanted:
            show_note(plain(f"There is no lesson {wanted[:60]!r}. Choose one of these:"))
        if visitors.may("paths"):  # problems name files of this computer
            for problem in listing.problems:
                show_error(problem)
        lesson_list.draw_overview(listing)


if is_routed():
    main()
