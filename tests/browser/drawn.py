"""Wait until a page is drawn: a state of the page, not a number of seconds."""

import re

from playwright.sync_api import Page
from playwright.sync_api import TimeoutError as PlaywrightTimeout

CHART = "[data-testid=stVegaLiteChart]"
MAX_WAIT = 240_000  # milliseconds; a busy machine is slow, not wrong
MAIN = "[data-testid=stMainBlockContainer]"
# The run `seen` is over (the last act of each run is the address), nothing is still to be loaded,
# charts take clicks (their menus are there), and the page is the same in so many frames, however
# long a busy browser takes for them.
N_FRAMES = 20
DRAWN = """([main, seen, frames]) => {
    const state = document.querySelector('[data-testid=stApp]')?.dataset.testScriptState
    const content = document.querySelector(main)
    const over = window.lamaAddress > seen && state === 'notRunning' && content
        && !document.querySelector('[data-testid=stSkeleton], [data-testid=stStatusWidget]')
        && [...document.querySelectorAll('[data-testid=stVegaLiteChart]')].every(chart =>
            !chart.getClientRects().length || chart
                .closest('[data-testid=stFullScreenFrame]')?.querySelector('[aria-label*=PNG]'))
    const now = over && [location.href, content.scrollHeight, content.innerText].join()
    window.sameFrames = over && now === window.lastFrame ? window.sameFrames + 1 : 0
    window.lastFrame = now
    return window.sameFrames >= frames
}"""
# How far each table of answers is beyond the right end of its column, in pixels.
OVERFLOW = """() => [...document.querySelectorAll("[data-testid=stColumn] table.lx")].map(table =>
    table.getBoundingClientRect().right
    - table.closest("[data-testid=stColumn]").getBoundingClientRect().right)"""
# The element's distance from the top, once it is the same in so many frames; the script may run.
STILL_TOP = """([element, frames]) => {
    const top = document.querySelector(element)?.getBoundingClientRect().top
    window.sameTops = top === window.lastTop ? window.sameTops + 1 : 0
    window.lastTop = top
    return window.sameTops >= frames && {top}
}"""
STATE = """({run: window.lamaAddress,
    state: document.querySelector('[data-testid=stApp]')?.dataset.testScriptState,
    skeletons: document.querySelectorAll('[data-testid=stSkeleton]').length,
    active: document.activeElement?.outerHTML.slice(0, 300)})"""


def click_mark(page: Page, said: re.Pattern[str]) -> None:
    """Click the bar or point of a chart that says this, near where it begins.

    On the middle of a bar may be a baseline's mark.
    """
    wait_until_drawn(page)
    mark = page.locator(f"{CHART} path").and_(page.get_by_label(said)).first
    mark.wait_for()
    mark.scroll_into_view_if_needed()
    box = mark.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] / 8, box["y"] + box["height"] / 2)


def current_run(page: Page) -> int:
    """The number of the page's latest run that is over."""
    return int(page.evaluate("window.lamaAddress"))


def wait_until_drawn(page: Page, seen: int = -1) -> None:
    """Return when a run after the run `seen` is over and drawn; a failure describes the page."""
    page.bring_to_front()  # a page in the background draws a frame a second
    try:
        page.wait_for_function(DRAWN, arg=[MAIN, seen, N_FRAMES])
    except PlaywrightTimeout as error:
        error.add_note(f"{page.url}, after run {seen}: {page.evaluate(STATE)}")
        raise


def still_top(page: Page, element: str) -> float:
    """The distance of the first such element from the window's top in pixels, once it is still."""
    found = page.wait_for_function(STILL_TOP, arg=[element, N_FRAMES])
    return float(found.json_value()["top"])
