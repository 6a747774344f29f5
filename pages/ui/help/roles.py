"""Ways into the app for a researcher, a lecturer and a student."""

import streamlit as st

from pages.ui.shared import links, screens

# Role -> what the role does here, and links: text, icon, page and URL parameters.
ROLES: dict[str, tuple[str, tuple[tuple[str, str, str, screens.Params], ...]]] = {
    "Researcher": (
        "Compare models fact by fact, with intervals. Every table and chart can be exported.",
        (
            ("Compare two models", "compare_arrows", screens.RESULTS, {"tab": "Compare"}),
            ("Read wrong answers", "fact_check", screens.RESULTS, screens.WRONG_ANSWERS),
            ("Import your own facts", "upload", screens.DATA, screens.IMPORT),
        ),
    ),
    "Lecturer": (
        "Teach with live answers. A lesson has handouts and large type; **Class poll**, above the "
        "sentence, asks your class on phones.",
        (
            ("Choose a lesson", "school", screens.LESSONS, {}),
            ("Ask, then poll your class", "groups", screens.ASK, {}),
        ),
    ),
    "Student": (
        "Guess the missing word, then see what models answer and how sure they are.",
        (
            ("Ask a sentence", "edit_note", screens.ASK, {}),
            ("Solve an analogy", "compare", screens.ASK, screens.ANALOGIES),
            ("Work through a lesson", "school", screens.LESSONS, {}),
        ),
    ),
}


def draw_roles() -> None:
    """Draw where a researcher, a lecturer and a student begin."""
    for column, (role, (about, ways)) in zip(
        st.columns(3, gap="medium"), ROLES.items(), strict=True
    ):
        with column.container(border=True, height="stretch", gap="xsmall"):
            with st.container(height="stretch", gap="xsmall"):  # the links end at the same height
                st.markdown(f"**{role}**")
                st.markdown(about)
            for text, icon, page, params in ways:
                links.draw_link(text, icon, page, params, key=f"{role}: {text}")
