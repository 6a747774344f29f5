"""All lessons, with the question that each asks."""

import streamlit as st

from lama_core.lessons.handout import sheet
from lama_core.lessons.lesson import SHOWING, Lesson, LessonListing, own_lessons
from pages.ui.lessons.progress import progress_in
from pages.ui.lessons.reading import address_of
from pages.ui.lessons.showing import DRAWN
from pages.ui.shared import links, screens, visitors
from pages.ui.shared.messages import plain

PER_ROW = 2
PREPARED = "teacher sheet of"  # in the session: the lesson whose answers are wanted


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
            "Resume" if begun else "Start", key=f"begin {lesson.id}", icon=":material/play_arrow:"
        )
        with st.popover("Handouts", icon=":material/print:", type="tertiary"):
            _draw_handouts(lesson)
    if starts:
        at = min(max(progress.seen, default=1), len(lesson.steps)) if begun else 1
        links.go(screens.LESSONS, address_of(lesson, at))


def _draw_handouts(lesson: Lesson) -> None:
    """The sheets to print: for students, and for the teacher once the models have answered."""
    st.caption("Each file opens the print dialog.")
    st.download_button(
        "Student sheet, with blanks",
        lambda: sheet(lesson),
        f"{lesson.id}-students.html",
        "text/html",
        key=f"students {lesson.id}",
        on_click="ignore",
    )
    if st.session_state.get(PREPARED) != lesson.id:
        if st.button("Prepare the teacher sheet", key=f"prepare {lesson.id}"):
            st.session_state[PREPARED] = lesson.id
            st.rerun()
        st.caption("It holds the answers, so the models are queried first.")
        return
    progress = progress_in(lesson)
    with st.spinner("Querying the models", show_time=True), st.container(key="prepared"):
        for number, step in enumerate(lesson.steps, start=1):
            if isinstance(step, SHOWING) and number not in progress.shown:
                shown = DRAWN[type(step)](step, f"{lesson.id} {number}")
                progress.shown[number] = shown
    st.download_button(
        "Teacher sheet, with answers",
        lambda: sheet(lesson, progress.shown),
        f"{lesson.id}-teacher.html",
        "text/html",
        key=f"teacher {lesson.id}",
        type="primary",
        on_click="ignore",
    )
