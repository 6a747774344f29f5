"""The models that a lesson names: which can be queried, and why the others can't."""

from collections.abc import Sequence

import streamlit as st

from lama_core.errors import UserError, did_you_mean
from lama_core.models.sources.catalog import Entry, find_model, known_models
from pages.ui.shared import visitors
from pages.ui.shared.messages import plain, show_note
from pages.ui.shared.url_state import title_of


def available_models(names: Sequence[str]) -> tuple[str, ...]:
    """The models that the visitor may query, installed or not; draw a note on the others."""
    known = [name for name in names if find_or_note(name)]
    offered = visitors.offered_models()
    excluded = [name for name in known if offered is not None and name not in offered]
    if excluded:
        st.caption(
            f"{plain(', '.join(map(title_of, excluded)))}: not among the models of this app."
        )
    return tuple(name for name in known if name not in excluded)


def find_or_note(name: str) -> Entry | None:
    """Return the model; for an unknown name draw a note with the nearest name and return None."""
    try:
        return find_model(name)
    except UserError:
        hint = did_you_mean(name, [entry.name for entry in known_models()])
        show_note(
            plain(
                f"{name}: this version has no model of that name{hint}. The Models page lists all "
                "models."
            )
        )
        return None
