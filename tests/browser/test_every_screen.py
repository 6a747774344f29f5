"""Every page and tab: its address shows somebody else the same screen, and everyone can use it.

Whether everyone can is what axe-core says: of the light theme all, of the dark one the colours.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]

AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"

STARTS = {
    "Cloze": "?models=minilm-mlm",
    "Results": "results?data=made-up",
    "Facts": "facts?data=made-up",
}
MAIN = "[data-testid=stMainBlockContainer]"
TABS = {
    "Cloze": ("Sentence", "Subject and relation", "Rank my answers", "Compare sentences",
              "Many at once", "The paper's examples"),
    "Analogy": ("Solve", "Score", "Probes"),
    "Results": ("P@k", "LAMA T-REx", "Curves", "Ranks", "Types", "Slices", "Calibration",
                "Correlations", "Wording", "Compare", "New run"),
    "Facts": ("Facts", "Confusion", "Wrong answers"),
    "Prompts": ("Prompts", "Ensembles", "One fact", "Weights", "Try a prompt", "Analyses",
                "New study"),
    "Data": ("Sources", "Runs"),
    "Models": (),
    "Method": ("Departures", "Glossary"),
    "Lessons": (),
}  # fmt: skip
# The run has ended (its last act is the address), and for a while nothing has been drawn.
SETTLED = """([main, seen]) => {
    if (!(window.lamaAddress > seen) || document.querySelector('[data-testid=stSkeleton]'))
        return false
    const now = location.href + document.querySelector(main).innerText
    if (window.lastSeen !== now) { window.lastSeen = now; window.since = performance.now() }
    return performance.now() - window.since > 300
}"""


@dataclass(frozen=True)
class Screen:
    """What is on the screen, and where. Shown in a failure by its title."""

    title: str
    address: str
    text: str


def read(page: Page, seen: int = -1) -> Screen:
    """The screen of the first run after the run `seen`."""
    page.wait_for_function(SETTLED, arg=[MAIN, seen], polling=200)
    return Screen(page.title(), page.url, page.locator(MAIN).inner_text())


def click(page: Page, place: Locator) -> Screen:
    """What a click leads to."""
    seen = int(page.evaluate("window.lamaAddress"))
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
    """Every page, from the menu where it isn't opened on small runs, and each of its tabs."""
    for title, tabs in TABS.items():
        if title in STARTS:
            page.goto(f"{url}/{STARTS[title]}")
            yield read(page)
        else:
            yield click(page, page.get_by_role("link", name=title, exact=True))
        for tab in tabs[1:]:
            yield click(page, page.get_by_role("tab", name=tab, exact=True))


def test_every_address_shows_somebody_else_the_same_screen_which_everyone_can_use(
    browser: Browser, results_url: str
) -> None:
    dark = browser.new_context(viewport={"width": 1400, "height": 900}, color_scheme="dark")
    page = dark.new_page()
    page.set_default_timeout(90_000)
    screens, wrong = [], []
    for screen in visit(page, results_url):
        screens.append(screen)
        wrong += faults(page, ["color-contrast"])  # all that the theme changes
    dark.close()
    titles = [f"{tab} · {name}" if tab else name for name, tabs in TABS.items()
              for tab in tabs or ("",)]  # fmt: skip
    assert [screen.title for screen in screens] == [f"{one} · LAMA Explorer" for one in titles]
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    for first in range(0, len(screens), 4):  # a few at a time: the app has other visitors, too
        some = screens[first : first + 4]
        others = [context.new_page() for _ in some]
        for other, screen in zip(others, some, strict=True):
            other.goto(screen.address, wait_until="commit")
        for other, screen in zip(others, some, strict=True):
            assert read(other) == screen
            wrong += faults(other)
            other.close()
    context.close()
    assert not wrong, "\n".join(wrong)


def test_what_is_shared_is_the_address_of_the_screen(page: Page, results_url: str) -> None:
    page.goto(f"{results_url}/data")
    read(page)
    page.get_by_role("button", name="Share").click()
    expect(page.get_by_test_id("stPopoverBody").get_by_test_id("stCode")).to_have_text(page.url)
    expect(page.get_by_alt_text("QR code of this address")).to_be_visible()
