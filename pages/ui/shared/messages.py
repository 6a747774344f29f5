"""What the pages say: faults as one sentence, with the way out where there is one."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from lama_core.errors import NotFetched, UserError
from pages.ui.shared import fetching
from pages.ui.shared.text import counted, described, plain, show_fault, show_note

__all__ = ["counted", "described", "faults_shown", "plain", "show_fault", "show_note"]

log = logging.getLogger("lama_explorer")


@contextmanager
def faults_shown() -> Iterator[None]:
    """Show what goes wrong in the block as one sentence; the rest of the page stays.

    What hasn't been fetched comes with a button that fetches it.
    A fault of ours is logged with its traceback, which a page never shows.
    """
    try:
        yield
    except NotFetched as error:
        show_fault(f"{error.what} not here yet.")
        fetching.draw_source_offer(error.source)
    except UserError as error:
        show_fault(str(error))
    except (OSError, RuntimeError, ValueError, MemoryError) as error:
        log.exception("a page failed")
        what = str(error).strip().splitlines()[:1] or [type(error).__name__]
        show_fault(
            f"This did not work: {what[0]}. What you typed is kept; the details are in the "
            "terminal where the app runs."
        )
