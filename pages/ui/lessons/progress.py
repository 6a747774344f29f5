"""How far a reader has come, what they predicted and what they were shown: kept in the session."""

from dataclasses import dataclass, field

import streamlit as st

from lama_core.lessons.lesson import Lesson
from lama_core.lessons.step_results import Shown

KEY = "progress in lessons"


@dataclass
class Progress:
    """Of one lesson; steps by their number, from 1."""

    seen: set[int] = field(default_factory=set)
    predicted: dict[int, str] = field(default_factory=dict)
    shown: dict[int, Shown] = field(default_factory=dict)


def progress_in(lesson: Lesson) -> Progress:
    """The reader's; a lesson whose file has changed starts again."""
    kept: dict[str, tuple[str, Progress]] = st.session_state.setdefault(KEY, {})
    content = repr(lesson)
    if lesson.id not in kept or kept[lesson.id][0] != content:
        kept[lesson.id] = (content, Progress())
    return kept[lesson.id][1]


def forget(lesson: Lesson) -> None:
    """Start the lesson again."""
    st.session_state.get(KEY, {}).pop(lesson.id, None)
