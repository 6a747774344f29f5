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
from pages.ui.shared.model_columns import boxes_in_rows


def draw_overview(listing: LessonListing) -> None:
    """Draw all lessons, two in a row, and the ways to a new one and to one from a file."""
    st.caption(
        "Each lesson asks a question, lets you predict the answer, and then shows what models "
        "answer, to one query and over hundreds of facts. Each has a **teacher mode** for a class "
        "in front of one screen, and **handouts** to print."
    )
    boxes = boxes_in_rows(len(listing.lessons), 2)
    for number, (lesson, box) in enumerate(zip(listing.lessons, boxes, strict=False), start=1):
        with box.container(
            border=True,
            height="stretch",
            vertical_alignment="distribute",
            key=f"lesson-card-{number}",
        ):
            _draw_card(number, lesson)
    with st.expander("Add a lesson", icon=":material/add:"):
        if st.button("New lesson", icon=":material/edit:"):
            _edit_new(NEW_LESSON, "lesson")
        content, name = b"", "lesson"
        if visitors.may("upload"):
            file = st.file_uploader("Import a lesson file", "toml", max_upload_size=1)
            if file is not None:
                content, name = file.getvalue(), file.name.rpartition(".")[0]
        else:
            content = st.text_area("Paste a lesson file to import it", max_chars=MAX_FILE).encode()
        if content:
            _edit_new(content, name)
        place = f"put a file into `{own_lessons()}`; " * visitors.may("paths")
        st.caption(
            "To begin with one of these lessons, choose **Copy and edit** under **For teachers**. "
            f"Or {place}see [the format]({links.path_of(screens.HELP)}?doc=lessons)."
        )


def _edit_new(content: bytes | Mapping[str, Any], name: str) -> None:
    links.go(screens.LESSONS, address_of(own.add(content, name)) | {EDIT: "true"})


def _draw_card(number: int, lesson: Lesson) -> None:
    progress = progress_in(lesson)
    head = st.container(gap="small")  # the buttons are at the bottom of the card
    head.markdown(f"### {number}\\. {plain(lesson.title)}")
    n_seen, n_steps = len(progress.seen), len(lesson.steps)
    begun = 0 < n_seen <= n_steps
    about = "1 minute" if lesson.minutes == 1 else f"{lesson.minutes}\N{NO-BREAK SPACE}minutes"
    about += " · done" * (n_seen > n_steps)  # the summary counts as a step
    about += f" · {n_seen} of {n_steps} steps seen" * begun + " · your own" * own.is_mine(lesson)
    head.markdown(f"{plain(lesson.question)} :small[({about})]")
    with st.container(horizontal=True):
        links.draw_link(
            "Resume" if begun else "Start the lesson",
            "play_arrow",
            screens.LESSONS,
            address_of(lesson, min(max(progress.seen), n_steps) if begun else 1),
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
                links.draw_link(
                    "Edit",
                    "edit",
                    screens.LESSONS,
                    address_of(lesson) | {EDIT: "true"},
                    key=f"edit {lesson.id}",
                )
            elif st.button(
                "Copy and edit", icon=":material/edit:", key=f"copy {lesson.id}", type="tertiary"
            ):
                copy = lesson_fields(lesson) | {"title": f"{lesson.title} (copy)"}
                _edit_new(copy, f"{lesson.id}-copy")
            draw_handouts(lesson)
