"""Worked examples of analogies."""

import streamlit as st

from pages.ui.shared.messages import plain

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
