"""The Relation types chart of Results: P@k by type of relation."""

import streamlit as st

from lama_core.metrics.intervals import METHOD_OF_MEANS
from lama_core.views.relation_types import relation_types
from pages.ui.results.draw_view import draw_chart
from pages.ui.shared.messages import plain
from pages.ui.shared.run_choice import RunChoice, draw_question
from pages.ui.shared.url_state import pick


def draw_types(choice: RunChoice) -> None:
    """Draw P@k by type of relation (Petroni et al. 2019, section 5)."""
    draw_question(choice)
    shown = choice.view(relation_types)
    sources = shown.found.sources
    if len(sources) > 1:
        first = str(shown.frame["source"].iloc[0])
        shown = choice.view(
            relation_types, source=pick("Source", sources, key="type_source", first=first)
        )
    types = shown.frame["type"].unique()
    if len(types) == 1:
        source = plain(str(shown.frame["source"].iloc[0]))
        st.caption(f"All relations of {source} are {types[0]}: there is no other type to compare.")
    draw_chart(
        choice,
        shown,
        "type chart",
        "Bars: the unweighted mean over relations, with its 95 % interval over the facts of these "
        "relations; points: relations. Click a bar or a point to see its facts. "
        + f"Diamonds: mean P@{choice.k} of a random order of the answers. "
        * shown.guessable
        + "**1-1**: one object per subject and one subject per object (capitals). **N-1**: many "
        "subjects share an object (birthplaces). **N-M**: many of both (shared borders).",
        help=f"Interval: {METHOD_OF_MEANS}.",
        made={"intervals": f"95 %, {METHOD_OF_MEANS}"},
    )
