"""Rows of a table, which is drawn on a canvas, picked in a real browser."""

from collections.abc import Sequence
from typing import Literal

from drawn import wait_until_drawn
from playwright.sync_api import Locator, Page, expect

HEAD, ROW = 35, 35  # pixels


def pick_row(
    page: Page,
    number: int,
    shown: Locator,
    across: int = 16,
    modifiers: Sequence[Literal["Shift"]] = (),
) -> None:
    """Click the row in the first table; return when what it opens is shown.

    across: pixels from the table's left edge, where by default the row's box is.
    modifiers: keys that are held down.
    """
    wait_until_drawn(page)  # a click on a table that is drawn again is lost
    table = page.get_by_test_id("stDataFrame").first
    at = {"x": across, "y": HEAD + ROW * number + ROW / 2}
    table.click(position=at, modifiers=[*modifiers])  # type: ignore[arg-type]
    expect(shown).to_be_visible()
