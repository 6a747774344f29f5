"""Every screen: its address shows somebody else the same, and everyone can use it.

Whether everyone can is what axe-core says: of the light theme all, of the dark one the colours.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from drawn import MAIN, MAX_WAIT, current_run, wait_until_drawn
from old_addresses import MOVED, Params
from playwright.sync_api import Browser, Locator, Page, expect
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from pages.ui.shared.screens import ASK, DATA, HELP, LESSONS, MODELS, RESULTS

pytestmark = [pytest.mark.browser, pytest.mark.slow]

AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"

STARTS = {"Ask": "?models=minilm-mlm", "Results": "results?data=made-up"}
# Page -> its tabs; the first one is open.
TABS = {
    "Ask": ("Sentence", "Wordings", "Answers", "Analogy", "Grid", "Batch", "Examples"),
    "Lessons": (),
    "Results": ("Overview", "Compare", "Wrong answers", "Prompts", "More"),
    "Data and runs": ("Data sets", "Import", "New run", "New study", "Runs"),
    "Models": (),
    "Help": (),
}
# Tab -> the views that it offers besides the one that is open.
VIEWS = {
    "Answers": ("Whole sentences",),
    "Analogy": ("Score",),
    "Wrong answers": ("Confusion", "Frequent answers"),
    "Prompts": ("Prompts", "Ensembles", "One fact", "Analyses and the paper"),
}
PAGE_FILES = {"Ask": ASK, "Lessons": LESSONS, "Results": RESULTS, "Data and runs": DATA,
              "Models": MODELS, "Help": HELP}  # fmt: skip
# What the menu of More offers of the small runs: not what they have no facts for.
CHARTS = ("P@k curves", "Rank distribution", "Relation types", "Calibration", "Correlations",
          "Slices", "LAMA T-REx", "Analogy probes")  # fmt: skip
SHOWS = """([main, title, text]) =>
    document.title === title && document.querySelector(main)?.innerText === text"""

# An address of each old page. Which screen each old address means is tested without a browser, in
# tests/pages/test_screens.py; here, that an app leads there and the screen is drawn.
OF_EACH_PAGE = tuple({row[0]: row for row in MOVED}.values())

# The page's width in pixels beyond the window's.
SIDEWAYS = """(() => { const main = document.querySelector("[data-testid=stMain]")
    return main.scrollWidth - main.clientWidth })()"""


@dataclass(frozen=True)
class Screen:
    """What is on the screen, and where. Shown in a failure by its title."""

    title: str
    address: str
    text: str


def read(page: Page, seen: int = -1) -> Screen:
    """The screen of the first run after the run `seen`."""
    wait_until_drawn(page, seen)
    return Screen(page.title(), page.url, page.locator(MAIN).inner_text())


def click(page: Page, place: Locator) -> Screen:
    """What a click leads to."""
    seen = current_run(page)
    place.click()
    return read(page, seen)


def faults(page: Page, rules: Sequence[str] = ()) -> list[str]:
    """What axe-core finds wrong on the screen, with the element. rules: only these; () is all."""
    if not AXE.is_file():
        reason = "no axe-core: npm ci --prefix tests/browser"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    if not page.evaluate("'axe' in window"):
        page.add_script_tag(path=AXE)
    options = {"resultTypes": ["violations"]} | ({"runOnly": list(rules)} if rules else {})
    found = page.evaluate("options => axe.run(document, options)", options)
    return [
        f"{page.url}: {rule['id']}: {node['html'][:200]}"
        for rule in found["violations"]
        for node in rule["nodes"]
    ]


def visit(page: Page, url: str) -> Iterator[Screen]:
    """Every page, from the menu where it isn't opened on small runs, each of its tabs and views."""
    for title, tabs in TABS.items():
        if title in STARTS:
            page.goto(f"{url}/{STARTS[title]}")
            yield read(page)
        else:
            yield click(page, page.get_by_role("link", name=title, exact=True))
        for tab in tabs:
            if tab != tabs[0]:
                yield click(page, page.get_by_role("tab", name=tab, exact=True))
            for view in VIEWS.get(tab, ()):
                yield click(page, page.get_by_role("radio", name=view, exact=True))
            for chart in CHARTS if tab == "More" else ():
                yield click(page, page.get_by_role("button", name=chart))
                click(page, page.get_by_role("button", name="All charts"))


def go_back_and_forward(page: Page, screens: Sequence[Screen]) -> None:
    """Go back through all that the visit opened, and a part of it forward again."""
    opened: list[Screen | None] = []
    for before, screen in zip((None, *screens), screens, strict=False):
        if before and "chart=" in before.address:
            opened.append(None)  # the menu of charts, which a visit clicks without yielding it
        opened.append(screen)
    for go, way in ((page.go_back, opened[-2::-1]), (page.go_forward, opened[1:6])):
        for there in way:
            go()
            if there:
                page.wait_for_function(SHOWS, arg=[MAIN, there.title, there.text], polling=200)
                address = there.address
                page.wait_for_url(lambda url, address=address: url == address)  # written last


def test_every_address_shows_somebody_else_the_same_screen_which_everyone_can_use(
    browser: Browser, results_url: str
) -> None:
    dark = browser.new_context(viewport={"width": 1400, "height": 900}, color_scheme="dark")
    page = dark.new_page()
    page.set_default_timeout(MAX_WAIT)
    screens, wrong = [], []
    for screen in visit(page, results_url):
        screens.append(screen)
        wrong += faults(page, ["color-contrast"])  # all that the theme changes
    go_back_and_forward(page, screens)
    dark.close()
    n_views = {tab: len(views) for tab, views in VIEWS.items()} | {"More": len(CHARTS)}
    titles = [f"{tab} · {name}" if tab else name for name, tabs in TABS.items()
              for tab in tabs or ("",) for _ in range(1 + n_views.get(tab, 0))]  # fmt: skip
    assert [screen.title for screen in screens] == [f"{one} · LAMA Explorer" for one in titles]
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    context.set_default_timeout(MAX_WAIT)
    for first in range(0, len(screens), 4):  # a few at a time: the app has other visitors, too
        some = screens[first : first + 4]
        others = [context.new_page() for _ in some]
        for other, screen in zip(others, some, strict=True):
            other.goto(screen.address, wait_until="commit")
        for other, screen in zip(others, some, strict=True):
            with suppress(PlaywrightTimeout):  # a busy machine may draw another view first
                other.wait_for_function(SHOWS, arg=[MAIN, screen.title, screen.text], polling=200)
            assert read(other) == screen, screen.address
            wrong += faults(other)
            other.close()
    context.close()
    assert not wrong, "\n".join(wrong)


def test_every_screen_fits_a_phone(browser: Browser, results_url: str) -> None:
    page = browser.new_context(viewport={"width": 390, "height": 844}).new_page()
    page.set_default_timeout(MAX_WAIT)
    wrong = []
    for screen in visit(page, results_url):
        wrong += faults(page)
        if page.evaluate(SIDEWAYS) or page.locator("[data-testid=stDataFrame]:visible").count():
            wrong.append(f"{screen.title}: wider than the phone, or a table that isn't cards")
    page.context.close()
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(("name", "params", "there", "now"), OF_EACH_PAGE)
def test_an_old_address_opens_the_screen_that_shows_the_same(
    page: Page, results_url: str, name: str, params: Params, there: str, now: Params
) -> None:
    page.set_default_timeout(MAX_WAIT)
    # Small runs, and a model that answers at once.
    more = {"data": "made-up"} if there == RESULTS and now.get("tab") != "Prompts" else {}
    more = {"models": "minilm-mlm"} if there == ASK else more
    more = {} if now.get("chart") == "Analogy probes" else more
    path = "/" if there == ASK else f"/{Path(there).stem}"
    page.goto(f"{results_url}{path}?{urlencode(now | more)}")
    new = read(page)
    page.goto(f"{results_url}/{name}?{urlencode(params | more)}")
    page.wait_for_url(lambda url: urlsplit(url).path == path)
    page.wait_for_function(SHOWS, arg=[MAIN, new.title, new.text], polling=200)
    wait_until_drawn(page)  # the URL is written last
    expect(page.get_by_test_id("stException")).to_have_count(0)
    shown = parse_qs(urlsplit(page.url).query)
    assert {one: shown.get(one) for one in now} == {one: [value] for one, value in now.items()}
    assert shown == parse_qs(urlsplit(new.address).query)
    (title,) = (title for title, file in PAGE_FILES.items() if file == there)
    tab = now.get("tab", "".join(TABS[title][:1]))
    assert new.title == " · ".join(filter(None, (tab, title, "LAMA Explorer")))
    for one in {"score", "analogy", "view", "prompts_view"} & {*now}:
        expect(page.get_by_role("radio", name=now[one], exact=True)).to_be_checked()
    if "chart" in now:
        expect(page.get_by_role("heading", name=now["chart"], exact=True)).to_be_visible()


def test_one_step_back_from_an_old_address_is_where_the_reader_was(
    page: Page, results_url: str
) -> None:
    page.goto(f"{results_url}/models")
    before = read(page)
    page.goto(f"{results_url}/facts?data=made-up&view=Confusion")
    page.wait_for_url("**/results?**view=Confusion*")
    read(page)
    page.go_back()
    page.wait_for_url("**/models*")
    assert read(page) == before


def test_what_is_shared_is_the_address_of_the_screen(page: Page, results_url: str) -> None:
    page.goto(f"{results_url}/data")
    read(page)
    page.get_by_role("button", name="Share").click()
    expect(page.get_by_test_id("stPopoverBody").get_by_test_id("stCode")).to_have_text(page.url)
    expect(page.get_by_test_id("stPopoverBody")).to_contain_text("Works on this computer only")
    expect(page.get_by_alt_text("QR code of this URL")).to_have_count(0)
