"""Tags on facts: everyone sees them, the owner of the app writes them."""

from collections.abc import Sequence

import streamlit as st

from lama_core.metrics.fact_answers import JoinedAnswers
from lama_core.runs.tags import MOST_TAGS, Row, change_tags, known_tags, read_tags
from pages.ui.shared import visitors
from pages.ui.shared.messages import faults_shown, plain
from pages.ui.wrong_answers.filters import FactsChoice

EXAMPLES = "Choose or type one: wrong in the data, ambiguous, ..."


def draw_fact_tags(joined: JoinedAnswers, row: int, chosen: FactsChoice) -> None:
    """The tags of one fact in the run in focus; the owner may change them."""
    info = joined.runs[chosen.filter.of].run.info
    (key,) = _rows_of(joined, [row])
    with faults_shown():
        tags = read_tags(info)
        own = tags.get(key, ())
        if not visitors.may("manage"):
            if own:
                st.markdown(f"Tags in the run of {plain(chosen.of)}: {plain(', '.join(own))}")
            return
        # The key holds what the file says, so that what another window wrote isn't undone here.
        kept = st.multiselect(
            f"Tags in the run of {chosen.of}",
            [*own, *(tag for tag in known_tags(tags) if tag not in own)],
            default=own,
            key=f"tags of {info.id} {key} {own}",
            accept_new_options=True,
            max_selections=MOST_TAGS,
            placeholder=EXAMPLES,
        )
        if tuple(kept) != own:
            change_tags(
                info,
                [key],
                add=[tag for tag in kept if tag not in own],
                remove=[tag for tag in own if tag not in kept],
            )
            st.rerun()


def draw_picked_tags(joined: JoinedAnswers, rows: Sequence[int], chosen: FactsChoice) -> None:
    """Tags for several facts at once."""
    info = joined.runs[chosen.filter.of].run.info
    keys = _rows_of(joined, rows)
    with st.container(border=True), faults_shown():
        known = known_tags(read_tags(info))
        box, buttons = st.columns([3, 2], vertical_alignment="bottom")
        tags = box.multiselect(
            f"Tags for the picked facts, in the run of {chosen.of}",
            known,
            key="tags of picked",
            accept_new_options=True,
            max_selections=MOST_TAGS,
            placeholder=EXAMPLES,
        )
        with buttons, st.container(horizontal=True):
            ready = bool(tags and len(rows))
            put = st.button(f"Put on {len(rows)}", icon=":material/new_label:", disabled=not ready)
            off = st.button("Take off", icon=":material/label_off:", disabled=not ready)
        if put or off:
            change_tags(info, keys, add=tags if put else (), remove=tags if off else ())
            st.rerun()


def _rows_of(joined: JoinedAnswers, rows: Sequence[int]) -> list[Row]:
    facts = joined.facts.iloc[list(rows)]
    return list(zip(facts["fact_id"], facts["prompt"].astype(int).tolist(), strict=True))
