"""Note on how many facts come from a model's training sources, next to its P@k."""

from functools import partial

import streamlit as st

from lama_core.metrics.origins import TrainedOn, sentence, trained_on
from lama_core.metrics.slices import ORIGIN
from lama_core.runs.info import Run
from pages.ui.shared import cache, links, screens
from pages.ui.shared.messages import plain
from pages.ui.shared.run_choice import RunChoice


def draw_origins(choice: RunChoice) -> None:
    """Draw each run's number of facts from training sources, and P@k on these and other facts."""
    notes = []
    for run, title in zip(choice.runs, choice.titles, strict=True):
        found = cache.table_of_runs(
            "trained on",
            (run,),
            choice.ranking,
            choice.relations,
            partial(_trained_on, choice),
            choice.k,
        )
        if found is not None:
            notes.append(sentence(found, title, k=choice.k, counts=run.counts))
    for note in notes:
        st.caption(f":material/menu_book: {plain(note)}")
    if notes and st.button(
        f"P@{choice.k} by origin", icon=":material/arrow_forward:", type="tertiary"
    ):
        links.go(
            screens.RESULTS,
            {**choice.params(), "tab": "More", "chart": "Slices", "slice_by": ORIGIN},
        )


def _trained_on(choice: RunChoice, runs: list[Run]) -> TrainedOn | None:
    return trained_on(runs[0], ranking=choice.ranking, k=choice.k, relations=choice.relations)
