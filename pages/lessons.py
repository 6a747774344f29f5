"""Lessons: a class led by the hand, from a question by a prediction to what models say."""

import streamlit as st

from lama_core.lessons.lesson import list_lessons
from pages.ui.lessons import lesson_list, lesson_view
from pages.ui.shared import visitors
from pages.ui.shared.messages import faults_shown, plain, show_fault, show_note
from pages.ui.shared.router import draw_page


def main() -> None:
    """The list of lessons, or the lesson and step that the address names."""
    listing = list_lessons()
    asked = st.query_params.get(lesson_view.LESSON, "")
    lesson = listing.find(asked)
    with faults_shown():
        if lesson is not None:
            lesson_view.draw_lesson(lesson, listing)
            return
        st.header("Lessons", anchor=False)
        if asked:
            show_note(plain(f"The lesson {asked[:60]!r} is not here."))
        for problem in listing.problems if visitors.may("paths") else ():
            show_fault(problem)  # it names files of this machine
        lesson_list.draw_overview(listing)


draw_page(main)
