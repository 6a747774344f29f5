"""The models that a lesson names: which can be asked here, and why the others can't."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import product

import streamlit as st

from lama_core.errors import UserError, did_you_mean
from lama_core.lessons.stored_answers import Stored
from lama_core.models.sources.catalog import find_model, known_models
from lama_core.models.sources.locations import is_here
from lama_core.runs.find import list_runs
from pages.ui.shared import cache, visitors
from pages.ui.shared.messages import plain, show_note
from pages.ui.shared.url_state import title_of


def askable(names: Sequence[str]) -> tuple[str, ...]:
    """Those that the visitor may ask, here or to be fetched; of the others it is said why not."""
    offered = visitors.offered_models()
    kept: list[str] = []
    unknown: list[str] = []
    barred: list[str] = []
    for name in names:
        try:
            find_model(name)
        except UserError:
            unknown.append(name)
            continue
        (kept if offered is None or name in offered else barred).append(name)
    for name in unknown:
        draw_unknown(name)
    if barred:
        titles = ", ".join(map(title_of, barred))
        st.caption(plain(f"{titles}: not among the models that this app asks."))
    return tuple(kept)


def draw_unknown(name: str) -> None:
    """Say that no model is called so, with the nearest that is."""
    hint = did_you_mean(name, [entry.name for entry in known_models()])
    said = f"{name}: this version has no model of that name{hint}; the Models page lists those "
    show_note(plain(f"{said}that it has."))


def absent(names: Sequence[str]) -> Iterator[str]:
    """Those of the names whose model isn't on this machine."""
    for name in names:
        try:
            if not is_here(find_model(name)):
                yield name
        except UserError:
            yield name


def stored_answers(names: Sequence[str], queries: Iterable[str]) -> dict[str, dict[str, Stored]]:
    """Model -> query -> what a finished run has of it, of the models that aren't here."""
    away = list(absent(names))
    infos = list_runs(kinds=("cloze",)).runs if away else ()
    found: dict[str, dict[str, Stored]] = {}
    for name, query in product(away, queries):
        own = tuple(info for info in infos if info.model == name)
        stored = cache.stored_answer(query, own) if own else None
        if stored is not None:
            found.setdefault(name, {})[query] = stored
    return found
