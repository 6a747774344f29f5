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
CODE = re.compile(r"(`[^`\n]+`)")


def plain(text: str, *, links: bool = False, code: bool = False) -> str:
    """A text that Markdown shows as it is: no link, no formula, no emoji code, no HTML.

    links: whether addresses are links nevertheless, in texts that are the project's own.
    code: whether what stands between backticks is shown as code, without them.
    """
    parted = ICON.sub(PARTED, text if links else ADDRESS.sub(PARTED, text))
    parts = CODE.split(parted) if code else [parted]
    return "".join(
        part if number % 2 else MARKDOWN.sub(r"\\\1", part) for number, part in enumerate(parts)
    )


def show_note(text: str) -> None:
    """A message of what there is to know, as Markdown."""
    st.info(text, icon=":material/info:")


def counted(n: int, noun: str) -> str:
    """A number of things: `1 fact`, `2,000 facts`, `3 queries`."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{n:,} {noun if n == 1 else plural}"


def described(facts: Mapping[str, str | None], *, links: bool = False) -> str:
    """What is known of something, a line each, as Markdown; what is empty has none."""
    found = [
        f"**{what}**: {plain(value, links=links, code=True)}"
        for what, value in facts.items()
        if value
    ]
    return "  \n".join(found)


def show_fault(text: str) -> None:
    """A message of what went wrong, shown as plain text, commands as code."""
    st.error(plain(text, code=True), icon=":material/error:")
