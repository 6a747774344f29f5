"""Texts of users, data and models, shown as text."""

import re

import streamlit as st

MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+\-.!|~<>$:&@/=^\"'])")


def plain(text: str) -> str:
    """A text that Markdown shows as it is: no link, no formula, no emoji code, no HTML."""
    return MARKDOWN.sub(r"\\\1", text)


def show_fault(text: str) -> None:
    """A message of what went wrong, shown as plain text."""
    st.error(plain(text), icon=":material/error:")
