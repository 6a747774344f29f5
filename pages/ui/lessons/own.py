"""A visitor's own lessons: files of the local user, or in the session of any other visitor."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import streamlit as st

from lama_core.errors import UserError
from lama_core.lessons.lesson import (
    Lesson,
    LessonListing,
    check_size,
    free_name,
    lesson_file,
    lesson_text,
    list_lessons,
    parse_lesson,
    save_lesson,
)
from pages.ui.shared import visitors

KEPT = "own lessons"  # in the session: name -> lesson
MAX_KEPT = 20


def all_lessons() -> LessonListing:
    """All lessons that this visitor can open."""
    listing = list_lessons()
    return replace(listing, lessons=(*listing.lessons, *_kept().values()))


def is_mine(lesson: Lesson) -> bool:
    """Whether this visitor may change a lesson."""
    return lesson.id in _kept() or (lesson.own and visitors.may("manage"))


def place_of(lesson: Lesson) -> str:
    """Where a lesson of the visitor is saved, as text in Markdown."""
    if lesson.id in _kept():
        return "in this browser session only: download the file to keep it"
    return f"in `{lesson_file(lesson.id)}`"


def add(content: bytes | Mapping[str, Any], name: str) -> Lesson:
    """Save a new lesson, under a name like `name`, and return it."""
    lesson = parse_lesson(content, free_name(name, all_lessons()))
    save(lesson)
    return lesson


def save(lesson: Lesson) -> None:
    """Save a lesson.

    Raises:
        UserError: If the lesson is too large, or there is no place for another one.
    """
    if visitors.may("manage"):
        save_lesson(lesson)
        return
    check_size(lesson_text(lesson))
    if lesson.id not in _kept() and len(_kept()) >= MAX_KEPT:
        raise UserError(f"A session keeps {MAX_KEPT} lessons: delete one of yours first.")
    _kept()[lesson.id] = lesson


def delete(lesson: Lesson) -> None:
    """Delete a lesson of the visitor."""
    if _kept().pop(lesson.id, None) is None:
        visitors.check("manage")
        lesson_file(lesson.id).unlink(missing_ok=True)


def _kept() -> dict[str, Lesson]:
    return cast(dict[str, Lesson], st.session_state.setdefault(KEPT, {}))
