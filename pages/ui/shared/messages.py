"""What the pages say: texts of users, data and models as text, and faults as one sentence."""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from lama_core.errors import UserError

MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+\-.!|~<>$:&@/=^\"'])")
log = logging.getLogger("lama_explorer")


def plain(text: str) -> str:
    """A text that Markdown shows as it is: no link, no formula, no emoji code, no HTML."""
    return MARKDOWN.sub(r"\\\1", text)


def show_fault(text: str) -> None:
    """A message of what went wrong, shown as plain text."""
    st.error(plain(text), icon=":material/error:")


@contextmanager
def faults_shown() -> Iterator[None]:
    """Show what goes wrong in the block as one sentence; the rest of the page stays.

    A fault of ours is logged with its traceback, which a page never shows.
    """
    try:
        yield
    except UserError as error:
        show_fault(str(error))
    except (OSError, RuntimeError, ValueError, MemoryError) as error:
        log.exception("a page failed")
        what = str(error).strip().splitlines()[:1] or [type(error).__name__]
        show_fault(
            f"This did not work: {what[0]}. What you typed is kept; the details are in the "
            "terminal where the app runs."
        )
