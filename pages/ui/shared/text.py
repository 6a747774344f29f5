"""Escape texts of users, data and models, and show messages."""

import re
from collections.abc import Mapping

import streamlit as st

MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+\-.!|~<>$:&@/=^\"'])")
# Streamlit finds URLs and icon names in the rendered text, where escapes no longer count, so a
# zero-width character breaks them up.
ADDRESS = re.compile(r"(?i)(?<=http)(?=s?://)|(?<=www)(?=\.)|(?<=@)(?=[-\w]+\.[-\w])")
ICON = re.compile(r"(?<=:)(?=material[_/]|streamlit:)")
PARTED = "\N{WORD JOINER}"
CODE = re.compile(r"(`[^`\n]+`)")


def plain(text: str, *, links: bool = False, code: bool = False) -> str:
    """Escape a text so that Markdown shows it literally: no links, formulas, emoji codes or HTML.

    Args:
        text: The text.
        links: Whether URLs become links nevertheless; only for texts of this project.
        code: Whether text between backticks is shown as code.
    """
    parted = ICON.sub(PARTED, text if links else ADDRESS.sub(PARTED, text))
    parts = CODE.split(parted) if code else [parted]
    return "".join(
        part if number % 2 else MARKDOWN.sub(r"\\\1", part) for number, part in enumerate(parts)
    )


def short(text: str, most: int) -> str:
    """A text cut to a number of characters, between words if possible."""
    if len(text) <= most:
        return text
    cut = text[: most - 1]
    return (cut.rpartition(" ")[0] or cut) + " …"


def show_note(text: str) -> None:
    """Show an information message, written in Markdown."""
    st.info(text, icon=":material/info:")


def draw_headline(text: str, *, help: str | None = None, key: str = "headline") -> None:
    """Draw the finding above a chart, as plain text; nothing if it is empty.

    key: begins with `headline`; it differs between the headlines of a page.
    """
    if text:
        with st.container(key=key):
            st.subheader(plain(text.replace(" %", "\N{NO-BREAK SPACE}%")), anchor=False, help=help)


def name_value_lines(facts: Mapping[str, str | None], *, links: bool = False) -> str:
    """Name-value pairs as Markdown, one line each; pairs with an empty value are skipped."""
    return "  \n".join(
        f"**{what}**: {plain(value, links=links, code=True)}"
        for what, value in facts.items()
        if value
    )


def show_error(text: str) -> None:
    """Show an error message as plain text, with text between backticks as code."""
    st.error(plain(text, code=True), icon=":material/error:")
