"""The Prompts tab of Results: effect of the prompt on accuracy (Jiang et al. 2020).

It opens on all relations of a study; a relation and a fact of it are opened from there.
"""

import streamlit as st

from pages.ui.prompts.study_choice import (
    PromptsChoice,
    choose_study,
    describe,
    describe_ranking,
    load_relations,
)
from pages.ui.shared import links, screens
from pages.ui.shared.messages import counted, plain, show_note
from pages.ui.shared.url_state import pick

ALL, ONE, FACT = VIEWS = (screens.ALL_RELATIONS, screens.ONE_RELATION, "One fact")
# View -> the URL parameter of its parts, and the parts.
PARTS = {
    ALL: ("prompts_part", (screens.ENSEMBLES, screens.ANALYSES, screens.IN_PAPER)),
    ONE: ("relation_part", ("Prompts", screens.ENSEMBLES)),
}


def draw_view(view: str, part: str, choice: PromptsChoice) -> None:
    """Draw a part of a view of the study; only the module of this part is imported."""
    if view == FACT:
        from pages.ui.prompts.fact import draw_fact

        draw_fact(choice)
    elif part == "Prompts":
        from pages.ui.prompts.table import draw_prompts
        from pages.ui.prompts.try_prompt import draw_try, example_of

        tried = draw_try(choice)
        draw_prompts(choice, tried, marks=tried != example_of(choice))
    elif part == screens.ENSEMBLES and view == ALL:
        from pages.ui.prompts.ensembles import draw_all_relations
        from pages.ui.prompts.try_prompt import draw_entry

        draw_all_relations(choice)
        draw_entry(choice, lambda: st.session_state.update(prompts_view=ONE))
    elif part == screens.ENSEMBLES:
        from pages.ui.prompts.ensembles import draw_relation

        draw_relation(choice)
    elif part == screens.ANALYSES:
        from pages.ui.prompts.analyses import draw_analyses

        draw_analyses(choice)
    else:
        from pages.ui.prompts.published import draw_published

        draw_published(choice)


def draw_prompts_tab() -> None:
    """Draw the view, its choices and its part."""
    left, right = st.columns([4, 5])
    asked = {*st.query_params}
    if links.is_new_url() and "prompts_view" not in asked and {"relation", "try"} & asked:
        links.set_param("prompts_view", [ONE])  # a URL of an earlier version
    view = pick("View", VIEWS, key="prompts_view", place=left, label_visibility="collapsed")
    part = ""
    if view in PARTS:
        key, parts = PARTS[view]
        part = pick("Show", parts, key=key, place=right, label_visibility="collapsed")
    choice = choose_study(of_relation=view != ALL, of_set=part != screens.IN_PAPER)
    if choice is None:
        show_note(
            "There is no study of prompts yet. A study queries a model about the same facts with "
            "many prompts."
        )
        links.draw_link("Start a study", "play_arrow", screens.DATA, screens.NEW_STUDY)
        return
    links.set_param("prompts_view", [view])  # also the default, as the URL may name a relation
    draw_view(view, part, choice)
    if part == screens.IN_PAPER:  # its tables say the rest
        st.caption(describe_ranking(choice.study))
    else:
        studies = load_relations(choice.info) if view == ALL else (choice.study,)
        st.caption(describe(choice, studies))
    if choice.study.notes:
        with st.expander(
            f"{counted(len(choice.study.notes), 'note')} on excluded facts and prompts"
        ):
            st.markdown("\n".join(f"- {plain(note)}" for note in choice.study.notes))
