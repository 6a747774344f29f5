"""Tasks of new users in a real browser, by the shortest path that the pages show.

Task 4 is in test_data_in_browser.py, to cancel and resume a run (5 clicks: the page, Ask models
these facts, Start, Cancel, Resume), task 9 in test_results_in_browser.py, and task 11 in
test_poll_in_browser.py; the others are tested without a browser. Each test's docstring counts its
clicks: typing counts 1, a choice from a list 2.
"""

import re
from pathlib import Path

from picking import pick_row
from playwright.sync_api import Locator, Page, expect


def open_page(page: Page, app_url: str, name: str, tab: str = "") -> None:
    """Open a page from the first one, by the menu, and a tab of it."""
    page.goto(app_url)
    page.get_by_test_id("stTopNav").get_by_text(name, exact=True).click()
    if tab:
        page.get_by_role("tab", name=tab, exact=True).click()


def shown_button(page: Page, name: str | re.Pattern[str]) -> Locator:
    """The first visible button of that name."""
    return page.get_by_role("button", name=name).filter(visible=True).first


def test_2_five_facts_that_only_one_model_knows_tagged_and_shared(page: Page, app_url: str) -> None:
    """9: Inspect, the filter, two ticks, the tag (2), Add and show, Share and its copy button."""
    page.goto(app_url)
    shown_button(page, "Read wrong answers").click()
    page.get_by_text("Only this model is right", exact=True).click()
    expect(page.get_by_text(re.compile("· right in"))).to_be_visible()
    expect(page.get_by_text("Tick queries to choose their facts")).to_be_visible()
    pick_row(page, 0, shown_button(page, "Add to 1"))
    pick_row(page, 4, shown_button(page, "Add to 5"), modifiers=["Shift"])
    page.get_by_role("combobox", name=re.compile("Tags for the ticked")).click()
    page.keyboard.type("only one")
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    shown_button(page, "Add and show").click()
    for _ in ("here", "for a colleague"):
        expect(page.get_by_text(re.compile("^5 of [0-9,]+ scored facts"))).to_be_visible()
        expect(page.get_by_role("button", name="tagged only one")).to_be_visible()
        page.goto(page.url)


def test_7_a_lesson_in_large_type_with_a_blank_handout(page: Page, app_url: str) -> None:
    """4: Lessons, For teachers, the sheet, Start in teacher mode."""
    open_page(page, app_url, "Lessons")
    shown_button(page, re.compile("For teachers")).click()
    with page.expect_download() as taken:
        page.get_by_text("Student sheet, with blanks").filter(visible=True).click()
    assert "___" in Path(taken.value.path()).read_text(encoding="utf-8")
    shown_button(page, "Start in teacher mode").click()
    large = "parseFloat(getComputedStyle(document.documentElement).fontSize) > 20"
    page.wait_for_function(large)
    expect(page).to_have_url(re.compile("large=true"))
    page.reload()
    page.wait_for_function(large)
