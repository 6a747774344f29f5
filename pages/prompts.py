"""Prompts: how much a model knows depends on how it is asked (Jiang et al. 2020)."""

import streamlit as st

from pages.ui.prompts.choice import PromptsChoice, choose_study
from pages.ui.prompts.form import draw_form
from pages.ui.prompts.table import draw_prompts
from pages.ui.shared.messages import counted, faults_shown, plain, show_note
from pages.ui.shared.router import draw_page, draw_tabs

TABS = (
    "Prompts",
    "Ensembles",
    "One fact",
    "Weights",
    "Try a prompt",
    "Analyses",
    "In the paper",
    "New study",
)


def draw_tab(name: str, choice: PromptsChoice) -> None:
    """One way of looking at the study; what it needs is imported when it is opened."""
    if name == "Prompts":
        draw_prompts(choice)
    elif name == "Ensembles":
        from pages.ui.prompts.ensembles import draw_ensembles

        draw_ensembles(choice)
    elif name == "One fact":
        from pages.ui.prompts.fact import draw_fact

        draw_fact(choice)
    elif name == "Weights":
        from pages.ui.prompts.weights import draw_weights

        draw_weights(choice)
    elif name == "Try a prompt":
        from pages.ui.prompts.trying import draw_try

        draw_try(choice)
    elif name == "Analyses":
        from pages.ui.prompts.analyses import draw_analyses

        draw_analyses(choice)
    elif name == "In the paper":
        from pages.ui.prompts.published import draw_published

        draw_published(choice)
    else:
        draw_form()


def main() -> None:
    """Choose a study and a relation; look at the prompts in one of several ways."""
    st.header("Prompts", anchor=False)
    st.caption(
        "The same facts asked in other words: which wording brings out what a model knows, and "
        "what several wordings know together."
    )
    with faults_shown():
        choice = choose_study()
        if choice is None:
            show_note(
                "No study of prompts is here yet. A study asks a model the same facts through many "
                "prompts; start one below."
            )
            draw_form()
            return
        if choice.study.notes:
            with st.expander(f"{counted(len(choice.study.notes), 'note')} on what was left out"):
                st.markdown("\n".join(f"- {plain(note)}" for note in choice.study.notes))
        draw_tabs(TABS, lambda name: draw_tab(name, choice))


draw_page(main)
