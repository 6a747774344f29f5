"""The reader's progress in each lesson, kept in the session."""

from dataclasses import dataclass, field

import streamlit as st

from lama_core.lessons.lesson import Lesson
from lama_core.lessons.step_results import StepResult

KEY = "progress in lessons"


@dataclass
class LessonProgress:
    """Steps seen, predictions made and results shown in one lesson, by step number from 1."""

    seen: set[int] = field(default_factory=set)
    predicted: dict[int, str] = field(default_factory=dict)
    shown: dict[int, StepResult] = field(default_factory=dict)


def progress_in(lesson: Lesson) -> LessonProgress:
    """The reader's progress in a lesson; it restarts when the lesson's file changes."""
    by_lesson: dict[str, tuple[str, LessonProgress]] = st.session_state.setdefault(KEY, {})
    content = repr(lesson)
    if lesson.id not in by_lesson or by_lesson[lesson.id][0] != content:
        by_lesson[lesson.id] = (content, LessonProgress())
    return by_lesson[lesson.id][1]
