"""The Prompts tab of Results: effect of the prompt on accuracy (Jiang et al. 2020)."""

import streamlit as st

from pages.ui.prompts.study_choice import PromptsChoice, choose_study, describe, describe_ranking
from pages.ui.shared import links, screens
from pages.ui.shared.messages import counted, plain, show_note
from pages.ui.shared.url_state import pick

VIEWS = ("Try and compare", "One fact", screens.ENSEMBLES)
PARTS = ("Ensembles", screens.ANALYSES, screens.IN_PAPER)


def draw_view(name: str, choice: PromptsChoice) -> None:
    """Draw one view of the study; only this view's module is imported."""
    if name == VIEWS[0]:
        from pages.ui.prompts.table import draw_prompts
        from pages.ui.prompts.try_prompt import draw_try

        draw_prompts(choice, draw_try(choice))
    elif name == "One fact":
        from pages.ui.prompts.fact import draw_fact

        draw_fact(choice)
    else:
        left, right = st.columns(2)
        part = pick("Show", PARTS, key="prompts_part", place=left, label_visibility="collapsed")
        if part == "Ensembles":
            from pages.ui.prompts.ensembles import draw_ensembles

            draw_ensembles(choice)
        elif part == screens.ANALYSES:
            from pages.ui.prompts.analyses import draw_analyses

            draw_analyses(choice, right)
        else:
            from pages.ui.prompts.published import draw_published

            draw_published(choice)


def draw_prompts_tab() -> None:
    """Draw the choice of study and relation, and the chosen view."""
    choice = choose_study()
    if choice is None:
        show_note(
            "There is no study of prompts yet. A study queries a model about the same facts with "
            "many prompts."
        )
        links.draw_link("Start a study", "play_arrow", screens.DATA, screens.NEW_STUDY)
        return
    view = pick("View", VIEWS, key="prompts_view", label_visibility="collapsed")
    draw_view(view, choice)
    of_all = view == VIEWS[2] and st.session_state.get("prompts_part", PARTS[0]) != PARTS[0]
    st.caption(describe_ranking(choice.study) if of_all else describe(choice))
    if choice.study.notes:
        with st.expander(
            f"{counted(len(choice.study.notes), 'note')} on excluded facts and prompts"
        ):
            st.markdown("\n".join(f"- {plain(note)}" for note in choice.study.notes))
