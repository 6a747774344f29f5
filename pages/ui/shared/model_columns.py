"""One column a model: offered where it isn't here, else asked, its answer drawn in its place."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from lama_core.models.languages import language_note
from lama_core.models.sources.catalog import find_model
from lama_core.models.sources.locations import is_here
from pages.ui.shared import predictions, url_state
from pages.ui.shared.colours import model_colours
from pages.ui.shared.fetching import draw_offer
from pages.ui.shared.messages import faults_shown, plain

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Column(Generic[Answer]):
    """A model's column. place: what it was waiting in, to be filled with what it answered."""

    box: DeltaGenerator
    place: DeltaGenerator
    colour: str
    answer: Answer


def boxes_of(
    names: Sequence[str], *, per_row: int = 4, border: bool = True
) -> dict[str, DeltaGenerator]:
    """A box a model, so many side by side."""
    boxes: dict[str, DeltaGenerator] = {}
    for first in range(0, len(names), per_row):
        row = names[first : first + per_row]
        columns = st.columns(len(row), gap="medium", border=border)
        boxes |= dict(zip(row, columns, strict=True))
    return boxes


def draw_language_note(text: str, names: Sequence[str]) -> None:
    """Say which of the models don't read a text (without its blanks), if there are any."""
    if note := language_note(text, [find_model(name) for name in names]):
        st.info(
            f"{plain(note)} The Models page lists the languages of each.",
            icon=":material/translate:",
        )


def reserve_line(key: str) -> DeltaGenerator:
    """A place for one line above the columns, as high while it is empty (`style.css`)."""
    with st.container(key=f"line {key}"):
        place = st.empty()
    place.html('<div class="lx-muted">Waiting for the answers</div>')
    return place


def ask_each(
    names: Sequence[str],
    ask: Callable[[str, tuple[str, ...]], Answer],
    describe: Callable[[Answer], str],
    *,
    per_row: int = 4,
) -> dict[str, Column[Answer]]:
    """Ask the models that are here, one after the other; return their columns.

    ask: from a model's name, and the names of all that are asked. describe: the line under a
    model's name, from what it answered. per_row: so many stand side by side. A model that fails
    says so in its place, and has no column in what comes back.
    """
    here = tuple(name for name in names if is_here(find_model(name)))
    colours = model_colours(names)
    boxes = boxes_of(names, per_row=per_row)
    waiting = {}
    for name, box in boxes.items():
        with box:
            head = st.empty()
            with head:
                kind = predictions.title_of_kind(find_model(name).kind)
                detail = _with_text(name, kind if name in here else f"{kind} · not here yet")
                predictions.draw_head(name, url_state.title_of(name), colours[name], detail)
            if name in here:
                waiting[name] = (head, st.empty())
                waiting[name][1].skeleton(height=220)
            else:
                draw_offer(find_model(name))
    columns: dict[str, Column[Answer]] = {}
    for name, (head, place) in waiting.items():
        with place.container(), faults_shown(), st.spinner("Asking the model", show_time=True):
            answer = ask(name, here)
            columns[name] = Column(boxes[name], place, colours[name], answer)
            with head:
                detail = _with_text(name, describe(answer))
                predictions.draw_head(name, url_state.title_of(name), colours[name], detail)
    return columns


def _with_text(name: str, said: str) -> str:
    """What is said of a model, and how much text it was trained on where that is known."""
    size = find_model(name).corpus_size
    return f"{said} · trained on {size}" if size else said
