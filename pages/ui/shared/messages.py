"""Messages on the pages, and the display of errors."""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import streamlit as st

from lama_core import plugins
from lama_core.errors import NotFetchedError, UserError
from lama_core.files import read_file
from lama_core.rounding import counted
from pages.ui.shared import fetching
from pages.ui.shared.text import (
    draw_headline,
    name_value_lines,
    plain,
    short,
    show_error,
    show_note,
)

__all__ = [
    "counted",
    "draw_headline",
    "errors_shown",
    "name_value_lines",
    "plain",
    "short",
    "show_error",
    "show_note",
]

log = logging.getLogger("lama_explorer")


@contextmanager
def errors_shown() -> Iterator[None]:
    """Show an error raised in the block as a message; the rest of the page stays.

    Missing data comes with a download button. Unexpected errors are logged with their traceback,
    which pages never show.
    """
    try:
        yield
    except NotFetchedError as error:
        show_error(f"{error.what} not installed.")
        fetching.draw_source_offer(error.source)
    except UserError as error:
        show_error(str(error))
    except Exception as error:
        whose = plugins.blame(error)
        if not whose and not isinstance(error, OSError | RuntimeError | ValueError | MemoryError):
            raise
        log.exception("a page failed")
        if whose:
            show_error(whose)
            return
        what, *_ = str(error).strip().splitlines() or [type(error).__name__]
        show_error(
            f"This did not work: {what}. Your inputs are kept; the terminal where the app runs "
            "shows the details."
        )


def draw_document(path: Path) -> None:
    """Draw one of the project's own documents without its title; links to files don't lead here."""
    text = read_file(path).decode().partition("\n")[2]
    text = re.sub(r"^##(?=#* )", "#####", text, flags=re.M)  # smaller headings
    st.markdown(re.sub(r"!?\[([^\]]+)\]\([^):]*\)", r"\1", text))
