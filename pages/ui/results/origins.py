"""Note on how many facts come from a model's training sources, next to its P@k."""

from typing import Any

import streamlit as st

from lama_core.metrics.slices import ORIGIN
from lama_core.views.scores import origins_notes
from lama_core.views.view import Shown
from pages.ui.shared import links, screens
from pages.ui.shared.messages import plain
from pages.ui.shared.run_choice import RunChoice


def draw_origins(choice: RunChoice, shown: Shown[Any, Any]) -> None:
    """Draw each run's number of facts from training sources, and P@k on these and other facts."""
    notes = list(origins_notes(shown))
    if not notes:
        return
    with st.expander("Facts from the models' training sources", icon=":material/menu_book:"):
        st.markdown("\n".join(f"- {plain(note)}" for note in notes))
        st.caption("A fact of several sources counts for each of them.")
        params = {**choice.params(), "tab": "More", "chart": "Slices", "slice_by": ORIGIN}
        links.draw_link(f"P@{choice.k} by origin", "arrow_forward", screens.RESULTS, params)
