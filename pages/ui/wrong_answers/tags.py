"""Tags on facts. Everyone sees them; only the owner of the app changes them."""

from collections.abc import Sequence

import streamlit as st

from lama_core.metrics.fact_answers import JoinedAnswers
from lama_core.runs.tags import MOST_TAGS, Row, change_tags, known_tags, read_tags
from pages.ui.shared import visitors
from pages.ui.shared.messages import errors_shown, plain
from pages.ui.wrong_answers.filters import FactsChoice

EXAMPLES = "Choose or type a tag: wrong in the data, ambiguous, ..."


def draw_fact_tags(joined: JoinedAnswers, row: int, chosen: FactsChoice) -> None:
    """Draw the tags of one fact in the selected run; the owner can change them."""
    info = joined.runs[chosen.filter.of].run.info
    (key,) = _rows_of(joined, [row])
    with errors_shown():
        tags = read_tags(info)
        own = tags.get(key, ())
        if not visitors.may("manage"):
            if own:
                st.markdown(f"Tags in the run of {plain(chosen.of)}: {plain(', '.join(own))}")
            return
        # The key holds the stored tags, so the widget can't undo a change from another window.
        chosen_tags = st.multiselect(
            f"Tags in the run of {chosen.of}",
            [*own, *(tag for tag in known_tags(tags) if tag not in own)],
            default=own,
            key=f"tags of {info.id} {key} {own}",
            accept_new_options=True,
            max_selections=MOST_TAGS,
            placeholder=EXAMPLES,
        )
        if tuple(chosen_tags) != own:
            change_tags(
                info,
                [key],
                add=[tag for tag in chosen_tags if tag not in own],
                remove=[tag for tag in own if tag not in chosen_tags],
            )
            st.rerun()


def draw_picked_tags(joined: JoinedAnswers, rows: Sequence[int], chosen: FactsChoice) -> None:
    """Draw the form that adds or removes tags of several facts."""
    info = joined.runs[chosen.filter.of].run.info
    keys = _rows_of(joined, rows)
    with st.container(border=True), errors_shown():
        known = known_tags(read_tags(info))
        box, buttons = st.columns([3, 2], vertical_alignment="bottom")
        tags = box.multiselect(
            f"Tags for the ticked facts, in the run of {chosen.of}",
            known,
            key="tags of picked",
            accept_new_options=True,
            max_selections=MOST_TAGS,
            placeholder=EXAMPLES,
        )
        with buttons, st.container(horizontal=True):
            ready = bool(tags and len(rows))
            add = st.button(f"Add to {len(rows)}", icon=":material/new_label:", disabled=not ready)
            remove = st.button("Remove", icon=":material/label_off:", disabled=not ready)
        if add or remove:
            change_tags(info, keys, add=tags if add else (), remove=tags if remove else ())
            st.rerun()


def _rows_of(joined: JoinedAnswers, rows: Sequence[int]) -> list[Row]:
    facts = joined.facts.iloc[list(rows)]
    return list(zip(facts["fact_id"], facts["prompt"].astype(int).tolist(), strict=True))
