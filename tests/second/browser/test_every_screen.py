"""Every screen: its address shows somebody else the same, and everyone can use it.

Whether everyone can is what axe-core says: on a wide window in light, on a phone in dark.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from drawn import MAIN, MAX_WAIT, OVERFLOW, current_run, wait_until_drawn
from old_addresses import MOVED, Params
from playwright.sync_api import Browser, Locator, Page, ViewportSize, expect
from playwright.sync_api import TimeoutError as PlaywrightTimeout
from project_files import ROOT

from pages.ui.shared.screens import ASK, DATA, HELP, LESSONS, MODELS, RESULTS

AXE = ROOT / "tests" / "browser" / "node_modules" / "axe-core" / "axe.min.js"

STARTS = {"Ask": "?models=minilm-mlm", "Results": "results?data=made-up"}
# Page -> its tabs; the first one is open.
TABS = {
    "Ask": ("Sentence", "Analogy", "Several"),
    "Lessons": (),
    "Results": ("Overview", "Compare", "Wrong answers", "Prompts", "More"),
    "Data and runs": ("Data", "Import", "Runs"),
    "Models": (),
    "Help": (),
}
# Pages and their tabs that are a test of their own, so that several processes share them.
Pages = Mapping[str, Sequence[str]]
PARTS: dict[str, Pages] = {
    "Ask": {"Ask": TABS["Ask"]},
    "Results": {"Results": TABS["Results"][:3]},
    "Prompts and charts": {"Results": (TABS["Results"][0], *TABS["Results"][3:])},
    "other pages": {name: TABS[name] for name in ("Lessons", "Data and runs", "Models", "Help")},
}
every_part = pytest.mark.parametrize("pages", PARTS.values(), ids=PARTS)
# Tab -> the views that it offers besides the one that is open.
VIEWS = {
    "Sentence": ("Only these answers", "Whole sentences"),
    "Analogy": ("Score",),
    "Several": ("Alternatives", "Wordings"),
    "Wrong answers": ("Confusion", "Frequent answers"),
    "Prompts": ("Analyses", "In the paper", "One relation", "Ensembles", "One fact"),
}
# Tab -> the buttons that open its other screens, in turn.
BUTTONS = {"Runs": ("New run", "All runs", "New study")}
PAGE_FILES = {"Ask": ASK, "Lessons": LESSONS, "Results": RESULTS, "Data and runs": DATA,
              "Models": MODELS, "Help": HELP}  # fmt: skip
# What the menu of More offers of the small runs, without what they have no facts for, and the
# charts that an entry offers besides the one that is open.
CHARTS = {
    "How far from the top": (),
    "Which facts do models know": ("Relation types", "Correlations"),
    "Is a confident first answer": (),
    "Through which layers": (),
}
N_JUMPS = 8
SHOWS = """([main, title, text]) =>
    document.title === title && document.querySelector(main)?.innerText === text"""

# An address of each old page that has moved. Which screen each one means is tested in
# tests/second/pages/test_screens.py; here, that an app leads there and the screen is drawn.
OF_EACH_PAGE = tuple(
    {row[0]: row for row in MOVED if row[0] == "ask" or row[0] != Path(row[2]).stem}.values()
)

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


def visit(page: Page, url: str, pages: Pages) -> Iterator[Screen]:
    """These pages, tabs and their views; from the menu where they don't need small runs."""
    for number, (title, tabs) in enumerate(pages.items()):
        if title in STARTS or not number:
            page.goto(f"{url}/{STARTS.get(title, STARTS['Ask'])}")
            screen = read(page)
        if title not in STARTS:
            screen = click(page, page.get_by_role("link", name=title, exact=True))
        yield screen
        for tab in tabs:
            if tab != tabs[0]:
                yield click(page, page.get_by_role("tab", name=tab, exact=True))
            for view in VIEWS.get(tab, ()):
                yield click(page, page.get_by_role("radio", name=view, exact=True))
            for button in BUTTONS.get(tab, ()):
                yield click(page, page.get_by_role("button", name=button, exact=True))
            for number, (entry, others) in enumerate(CHARTS.items() if tab == "More" else ()):
                if number:
                    yield click(page, page.get_by_role("button", name="All questions"))
                yield click(page, page.get_by_role("button", name=entry))
                for chart in others:
                    yield click(page, page.get_by_role("radio", name=chart, exact=True))


def go_back_and_forward(page: Page, screens: Sequence[Screen]) -> None:
    """Go back through all that the visit opened, a part of it forward again, and then anywhere.

    The last steps are random: two at once, the second before the screen of the first is drawn.
    """
    for go, way in ((page.go_back, screens[-2::-1]), (page.go_forward, screens[1:6])):
        for there in way:
            go()
            wait_for_screen(page, there)
    at, dice = len(screens[1:6]), Random(505)
    for _ in range(N_JUMPS):
        while (goal := dice.randrange(len(screens))) == at:
            continue
        there = screens[goal]
        between = dice.randrange(len(screens))
        for by in (between - at, goal - between):
            if by:
                page.evaluate("by => history.go(by)", by)
        at = goal
        wait_for_screen(page, there)


def wait_for_screen(page: Page, screen: Screen) -> None:
    """Return when a screen that was seen before is there again, under its address."""
    page.wait_for_function(SHOWS, arg=[MAIN, screen.title, screen.text], polling=200)
    page.wait_for_url(lambda url: url == screen.address)  # written last


def titles(pages: Pages) -> list[str]:
    """The documents' titles on a visit."""
    n_views = {tab: len(views) for tab, views in (VIEWS | BUTTONS).items()}
    n_views["More"] = sum(2 + len(others) for others in CHARTS.values()) - 1  # with the menus
    names = [f"{tab} · {name}" if tab else name for name, tabs in pages.items()
             for tab in tabs or ("",) for _ in range(1 + n_views.get(tab, 0))]  # fmt: skip
    return [f"{name} · LAMA Explorer" for name in names]


@every_part
def test_every_address_shows_somebody_else_the_same_screen_which_everyone_can_use(
    page: Page, app_url: str, pages: Pages
) -> None:
    asked: set[str] = set()
    page.on("request", lambda request: asked.add(request.url))
    screens = list(visit(page, app_url, pages))
    assert [screen.title for screen in screens] == titles(pages)
    inside = ("http://localhost", "ws://localhost", "data:", "blob:")
    assert not [url for url in asked if not url.startswith(inside)], "no other machine is asked"
    go_back_and_forward(page, screens)
    page.context.set_default_timeout(MAX_WAIT)
    wrong = []
    for first in range(0, len(screens), 4):  # a few at a time: the app has other visitors, too
        some = screens[first : first + 4]
        others = [page.context.new_page() for _ in some]
        for other, screen in zip(others, some, strict=True):
            other.goto(screen.address, wait_until="commit")
        for other, screen in zip(others, some, strict=True):
            with suppress(PlaywrightTimeout):  # a busy machine may draw another view first
                other.wait_for_function(SHOWS, arg=[MAIN, screen.title, screen.text], polling=200)
            assert read(other) == screen, screen.address
            wrong += faults(other)
            other.close()
    assert not wrong, "\n".join(wrong)


@every_part
def test_every_screen_fits_a_phone_and_is_readable_in_the_dark(
    browser: Browser, app_url: str, pages: Pages
) -> None:
    size: ViewportSize = {"width": 390, "height": 844}
    tablet: ViewportSize = {"width": 900, "height": 844}
    page = browser.new_context(viewport=size, color_scheme="dark").new_page()
    page.set_default_timeout(MAX_WAIT)
    wrong = []
    for screen in visit(page, app_url, pages):
        wrong += faults(page)
        if page.evaluate(SIDEWAYS) or page.locator("[data-testid=stDataFrame]:visible").count():
            wrong.append(f"{screen.title}: wider than the phone, or a table that isn't cards")
        page.set_viewport_size(tablet)
        if max(page.evaluate(OVERFLOW), default=0) > 0:
            wrong.append(f"{screen.title}: on a tablet, a table is wider than its card")
        page.set_viewport_size(size)
        expect(page.get_by_test_id("stTopNavLink")).to_have_count(0)  # the menu of wider screens
    page.context.close()
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(("name", "params", "there", "now"), OF_EACH_PAGE)
def test_an_old_address_opens_its_screen(
    page: Page, app_url: str, name: str, params: Params, there: str, now: Params
) -> None:
    page.goto(f"{app_url}/{name}?{urlencode(params | {'models': 'minilm-mlm'})}")
    page.wait_for_url(lambda url: urlsplit(url).path == f"/{Path(there).stem}".replace("/ask", "/"))
    wait_until_drawn(page)  # the URL is written last
    expect(page.get_by_test_id("stException")).to_have_count(0)
    shown = parse_qs(urlsplit(page.url).query)
    assert {one: shown.get(one) for one in now} == {one: [value] for one, value in now.items()}
    (title,) = (title for title, file in PAGE_FILES.items() if file == there)
    tab = now.get("tab", "".join(TABS[title][:1]))
    assert page.title() == " · ".join(filter(None, (tab, title, "LAMA Explorer")))
    for one in {"score", "analogy", "what", "view", "prompts_view"} & {*now}:
        expect(page.get_by_role("radio", name=now[one], exact=True)).to_be_checked()
    if "chart" in now:
        expect(page.get_by_text(now["chart"], exact=True).first).to_be_visible()
