"""Texts of users, data and models, shown as text."""

import re
from collections.abc import Mapping

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


def show_note(text: str) -> None:
    """A message of what there is to know, as Markdown."""
    st.info(text, icon=":material/info:")


def counted(n: int, noun: str) -> str:
    """A number of things: `1 fact`, `2,000 facts`, `3 queries`."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{n:,} {noun if n == 1 else plural}"


def described(facts: Mapping[str, str | None], *, links: bool = False) -> str:
    """What is known of something, a line each, as Markdown; what is empty has none."""
    found = [f"**{what}**: {plain(value, links=links)}" for what, value in facts.items() if value]
    return "  \n".join(found)


def show_fault(text: str) -> None:
    """A message of what went wrong, shown as plain text."""
    st.error(plain(text), icon=":material/error:")
