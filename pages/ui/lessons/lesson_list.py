"""The list of lessons, each with its question, progress, handouts and the way to a copy."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from lama_core.lessons.lesson import (
    MAX_FILE,
    Lesson,
    LessonListing,
    lesson_fields,
    own_lessons,
)
from pages.ui.lessons import own
from pages.ui.lessons.editor import NEW_LESSON
from pages.ui.lessons.lesson_view import EDIT, address_of, draw_handouts
from pages.ui.lessons.progress import progress_in
from pages.ui.lessons.teacher import LARGE
from pages.ui.shared import links, screens, visitors
from pages.ui.shared.messages import plain

PER_ROW = 2


def draw_overview(listing: LessonListing) -> None:
    """Draw all lessons, two in a row."""
    st.caption(
        "Each lesson asks a question, lets you predict the answer, and then shows what models "
        "answer, to one query and over hundreds of facts. Each has a **teacher mode** for a class "
        "in front of one screen, and **handouts** to print."
    )
    for first in range(0, len(listing.lessons), PER_ROW):
        row = listing.lessons[first : first + PER_ROW]
        for lesson, column in zip(row, st.columns(PER_ROW), strict=False):
            number = listing.lessons.index(lesson) + 1
            with column.container(
                border=True,
                height="stretch",
                vertical_alignment="distribute",
                key=f"lesson-card-{number}",
            ):
                _draw_card(number, lesson)
    with st.expander("Add a lesson", icon=":material/add:"):
        _draw_import()


def _draw_import() -> None:
    """Draw the ways to a new lesson, and to one from a file."""
    if st.button("New lesson", icon=":material/edit:"):
        _edit_new(NEW_LESSON, "lesson")
    content, name = b"", "lesson"
    if visitors.may("upload"):
        file = st.file_uploader("Import a lesson file", "toml", max_upload_size=1)
        if file is not None:
            content, name = file.getvalue(), file.name.rpartition(".")[0]
    else:
        pasted = st.text_area("Paste a lesson file to import it", max_chars=MAX_FILE)
        content = pasted.encode()
    if content:
        _edit_new(content, name)
    place = f"put a file into `{own_lessons()}`; " * visitors.may("paths")
    st.caption(
        "To begin with one of these lessons, choose **Copy and edit** under **For teachers**. Or "
        f"{place}see [the format]({links.path_of(screens.HELP)}?doc=lessons)."
    )


def _edit_new(content: bytes | Mapping[str, Any], name: str) -> None:
    lesson = own.add(content, name)
    links.go(screens.LESSONS, address_of(lesson) | {EDIT: "true"})


def _draw_card(number: int, lesson: Lesson) -> None:
    progress = progress_in(lesson)
    head = st.container(gap="small")  # the buttons are at the bottom of the card
    head.markdown(f"### {number}\\. {plain(lesson.title)}")
    n_seen, n_steps = len(progress.seen), len(lesson.steps)
    done = n_seen > n_steps  # the summary counts as a step
    begun = 0 < n_seen <= n_steps
    minutes = "1 minute" if lesson.minutes == 1 else f"{lesson.minutes}\N{NO-BREAK SPACE}minutes"
    state = " · done" if done else f" · {n_seen} of {n_steps} steps seen" * begun
    about = minutes + state + " · your own" * own.is_mine(lesson)
    head.markdown(f"{plain(lesson.question)} :small[({about})]")
    step = min(max(progress.seen), n_steps) if begun else 1
    with st.container(horizontal=True):
        links.draw_link(
            "Resume" if begun else "Start the lesson",
            "play_arrow",
            screens.LESSONS,
            address_of(lesson, step),
            key=f"begin {lesson.id}",
            type="secondary",
        )
        with st.popover("For teachers", icon=":material/co_present:", type="tertiary"):
            links.draw_link(
                "Start in teacher mode",
                "play_arrow",
                screens.LESSONS,
                address_of(lesson) | {LARGE: "true"},
                key=f"teach {lesson.id}",
                type="secondary",
            )
            if own.is_mine(lesson):
                there = address_of(lesson) | {EDIT: "true"}
                links.draw_link("Edit", "edit", screens.LESSONS, there, key=f"edit {lesson.id}")
            elif st.button(
                "Copy and edit", icon=":material/edit:", key=f"copy {lesson.id}", type="tertiary"
            ):
                title = f"{lesson.title} (copy)"
                _edit_new(lesson_fields(lesson) | {"title": title}, f"{lesson.id}-copy")
            draw_handouts(lesson)
