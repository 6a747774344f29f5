"""Texts of users, data and models, shown as text."""

import re

import streamlit as st

MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+\-.!|~<>$:&@/=^\"'])")
# Streamlit looks for addresses and icons in the finished text, where nothing is escaped any more:
# a letter without width parts what would be taken for one.
ADDRESS = re.compile(r"(?i)(?<=http)(?=s?://)|(?<=www)(?=\.)|(?<=@)(?=[-\w]+\.[-\w])")
ICON = re.compile(r"(?<=:)(?=material[_/]|streamlit:)")
PARTED = "\N{WORD JOINER}"


def plain(text: str, *, links: bool = False) -> str:
    """A text that Markdown shows as it is: no link, no formula, no emoji code, no HTML.

    links: whether addresses are links nevertheless, in texts that are the project's own.
    """
    parted = ICON.sub(PARTED, text if links else ADDRESS.sub(PARTED, text))
    return MARKDOWN.sub(r"\\\1", parted)


def show_fault(text: str) -> None:
    """A message of what went wrong, shown as plain text."""
    st.error(plain(text), icon=":material/error:")
