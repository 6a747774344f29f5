"""One column per model with its answer; a line below offers each model that isn't installed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from lama_core.lessons.stored_answers import Stored
from lama_core.models.languages import language_note
from lama_core.models.sources.catalog import find_model
from lama_core.models.sources.locations import is_here
from lama_core.progress import ignore
from lama_core.service.process import Answer
from lama_core.views.colours import model_colours
from pages.ui.shared import predictions, url_state
from pages.ui.shared.fetching import draw_offer
from pages.ui.shared.messages import errors_shown, plain


@dataclass(frozen=True, slots=True)
class ModelColumn(Generic[Answer]):
    """A model's column. place: the placeholder for the answer, inside `box`."""

    box: DeltaGenerator
    place: DeltaGenerator
    colour: str
    answer: Answer


def make_boxes(
    names: Sequence[str], *, per_row: int = 4, border: bool = True
) -> dict[str, DeltaGenerator]:
    """Make one box per model, at most `per_row` side by side, all of the same width.

    The rows are about equally long: four boxes, at most three side by side, are two rows of two.
    """
    n_rows = -(-len(names) // per_row)
    columns = boxes_in_rows(len(names), -(-len(names) // max(1, n_rows)), gap="medium")
    return {
        name: column.container(border=border, height="stretch")
        for name, column in zip(names, columns, strict=False)
    }


def boxes_in_rows(n: int, per_row: int, **options: Any) -> list[DeltaGenerator]:
    """Make at least `n` boxes, in rows of `per_row`. options: of `st.columns`."""
    width = min(n, per_row)
    return [box for _ in range(0, n, width or 1) for box in st.columns(width, **options)]


def draw_language_note(text: str, names: Sequence[str]) -> None:
    """Note which models don't have the text's language, if any. text: the text without blanks."""
    if note := language_note(text, [find_model(name) for name in names]):
        st.info(
            f"{plain(note)} The Models page lists each model's languages.",
            icon=":material/translate:",
        )


def reserve_line(key: str) -> DeltaGenerator:
    """Make a placeholder for one line above the columns; `style.css` keeps its height."""
    with st.container(key=f"line {key}"):
        place = st.empty()
    place.html('<div class="lx-muted">Waiting for the answers</div>')
    return place


def query_models(
    names: Sequence[str],
    ask: Callable[[str, tuple[str, ...]], Answer],
    describe: Callable[[Answer], str],
    *,
    per_row: int = 4,
    stored: Mapping[str, Stored | None] | None = None,
    draw: Callable[[ModelColumn[Answer]], object] = ignore,
    draw_stored: Callable[[str], object] | None = None,
    offers: bool = True,
) -> dict[str, ModelColumn[Answer]]:
    """Query the installed models one after the other and draw their columns.

    Args:
        names: The chosen models.
        ask: A model's name, names of all queried models -> the model's answer.
        describe: A model's answer -> the line under its name.
        per_row: The largest number of columns side by side.
        stored: Model that isn't installed, but has runs -> its stored answers, which its column
            has; None if no run has this query.
        draw: Draws a model's answer into its place, before the next model is queried.
        draw_stored: Draws a model's stored answers; by default, the best words.
        offers: Whether models that aren't installed are offered; once on a screen.

    Returns:
        Model -> its column. Models that fail show their error and are not in the result.
    """
    here = tuple(name for name in names if is_here(find_model(name)))
    colours = model_colours(names)
    kept = {name: found for name, found in (stored or {}).items() if found}
    boxes = make_boxes([name for name in names if name in here or name in kept], per_row=per_row)
    for name in names if offers else ():
        if name not in here:
            draw_offer(find_model(name), "; its answers are stored ones" * (name in kept))
    waiting = {}
    for name, box in boxes.items():
        with box:
            head = st.empty()
            with head:
                found = kept.get(name)
                hint = found.source if found else ""
                kind = predictions.title_of_kind(find_model(name).kind)
                if found:
                    kind += " · stored answers" + ", ranked words only" * bool(found.run)
                detail = _with_corpus_size(name, kind)
                predictions.draw_head(name, url_state.title_of(name), colours[name], detail, hint)
            if name in here:
                waiting[name] = (head, st.empty(), st.empty())
                waiting[name][1].skeleton(height=220)
            elif found and draw_stored:
                draw_stored(name)
            elif found:
                predictions.draw_answers(found.blank, colours[name])
    columns: dict[str, ModelColumn[Answer]] = {}
    # What is drawn while a model is asked has a place of its own: a browser keeps the elements of a
    # container that is drawn twice in a run.
    for name, (head, wait, place) in waiting.items():
        with wait.container(), errors_shown(), st.spinner("Querying the model", show_time=True):
            answer = ask(name, here)
            columns[name] = ModelColumn(boxes[name], place, colours[name], answer)
            with head:
                detail = _with_corpus_size(name, describe(answer))
                predictions.draw_head(name, url_state.title_of(name), colours[name], detail)
        if name in columns:
            wait.empty()
            with place.container():
                draw(columns[name])
    return columns


def _with_corpus_size(name: str, detail: str) -> str:
    """A model's detail line with the size of its training text, if known."""
    size = find_model(name).corpus_size
    return f"{detail} · trained on {size}" if size else detail
