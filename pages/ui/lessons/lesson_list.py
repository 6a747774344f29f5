"""All lessons, with the question that each asks."""

import streamlit as st

from lama_core.lessons.lesson import Lesson, LessonListing, own_lessons
from pages.ui.lessons.lesson_view import address_of, draw_handouts
from pages.ui.lessons.progress import progress_in
from pages.ui.shared import links, screens, visitors
from pages.ui.shared.messages import plain

PER_ROW = 2


def draw_overview(listing: LessonListing) -> None:
    """A card a lesson."""
    st.caption(
        "Each lesson asks a question, lets you predict, and then shows what models say: live, and "
        "over hundreds of facts. Each has a **teacher mode** for a class that looks at one screen, "
        "and **handouts** to print."
    )
    for first in range(0, len(listing.lessons), PER_ROW):
        row = listing.lessons[first : first + PER_ROW]
        for lesson, column in zip(row, st.columns(PER_ROW), strict=False):
            with column.container(border=True, height="stretch"):
                _draw_card(listing.lessons.index(lesson) + 1, lesson)
    if visitors.may("paths"):
        st.caption(
            f"Your own lessons: files in `{own_lessons()}`, one each; docs/lessons.md says how one "
            "is written."
        )


def _draw_card(number: int, lesson: Lesson) -> None:
    progress = progress_in(lesson)
    st.markdown(f"### {number}\\. {plain(lesson.title)}")
    st.markdown(plain(lesson.question))
    whole = len(progress.seen) > len(lesson.steps)
    minutes = "1 minute" if lesson.minutes == 1 else f"{lesson.minutes} minutes"
    said = " · done" if whole else f" · {len(progress.seen)} of {len(lesson.steps)} steps seen"
    st.caption(minutes + said * bool(progress.seen) + " · your own" * lesson.own)
    begun = bool(progress.seen) and not whole
    with st.container(horizontal=True):
        starts = st.button(
            "Resume" if begun else "Start the lesson",
            key=f"begin {lesson.id}",
            icon=":material/play_arrow:",
        )
        with st.popover("Handouts", icon=":material/print:", type="tertiary"):
            draw_handouts(lesson)
    if starts:
        at = min(max(progress.seen, default=1), len(lesson.steps)) if begun else 1
        links.go(screens.LESSONS, address_of(lesson, at))
