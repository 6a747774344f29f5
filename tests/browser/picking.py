"""Rows of a table, which is drawn on a canvas, picked in a real browser."""

from playwright.sync_api import Locator, Page, TimeoutError

HEAD, ROW = 35, 35  # pixels


def pick_row(page: Page, number: int, shown: Locator, across: int = 16) -> None:
    """Click the row in the first table; return when what it opens is shown.

    across: pixels from the table's left edge, where by default the row's box is.

    A busy page may be drawn anew under the click: it is repeated, after ever longer waits.
    """
    table = page.locator("[data-testid=stDataFrame] canvas").first
    for seconds in (5, 10, 20, 40, 80):
        box = table.bounding_box() if table.count() else None
        if box is not None:  # else it is gone already, to where the row leads
            page.mouse.wheel(0, box["y"] - 200)
            page.wait_for_timeout(300)
            box = table.bounding_box() if table.count() else None
        if box is not None:
            page.mouse.click(box["x"] + across, box["y"] + HEAD + ROW * number + ROW / 2)
        try:
            shown.wait_for(timeout=1000 * seconds)
            return
        except TimeoutError:
            continue
    raise AssertionError(f"row {number} leads to nothing")
