"""Template field and worked examples, shared by the views Solve and Score."""

import streamlit as st

from lama_core.queries.analogy_templates import (
    TEMPLATES,
    resolve_template,
    template_label,
    template_name,
)
from pages.ui.shared.messages import plain
from pages.ui.shared.url_state import BOUND

# Query pair and candidate pair; the last word is the gold answer.
EXAMPLES = (
    ("Paris", "France", "Rome", "Italy"),
    ("Tokyo", "Japan", "Paris", "France"),
    ("king", "queen", "man", "woman"),
    ("walk", "walked", "play", "played"),
    ("big", "bigger", "small", "smaller"),
    ("dog", "puppy", "cat", "kitten"),
    ("happy", "unhappy", "able", "unable"),
    ("Einstein", "physicist", "Mozart", "composer"),
    ("hot", "cold", "high", "low"),
    ("one", "two", "first", "second"),
)


SOLVE_TEMPLATE, SCORE_TEMPLATE = (
    "template",
    "score_template",
)  # widget keys; the views have different defaults


def choose_template(default: str, key: str) -> str:
    """Draw the choice of one of the six templates, or a typed one; return its name or text."""
    names = [default, *(name for name in TEMPLATES if name != default)]
    chosen = st.selectbox(
        "Template",
        names,
        key=key,
        bind=BOUND,
        format_func=template_label,
        accept_new_options=True,
        help="The six templates of Ushio et al. 2021; Rezaee and Camacho-Collados use **what-to**. "
        "Or type your own, with [A], [B], [C] and [D] once each.",
    )
    text = chosen or default
    resolve_template(text)
    return template_name(text)


def draw_examples() -> None:
    """Draw worked examples; a click fills in the four words."""

    def take(words: tuple[str, str, str, str]) -> None:
        for key, word in zip("abcd", words, strict=True):
            st.session_state[key] = word
        st.session_state["blank"] = "D"

    with st.container(height=380, border=False, gap=None):
        for words in EXAMPLES:
            a, b, c, d = map(plain, words)
            st.button(
                f"{a} : {b} :: {c} : {d}",
                key=" ".join(words),
                type="tertiary",
                on_click=take,
                args=(words,),
            )
