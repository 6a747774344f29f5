"""A lesson in a browser: predict, see the answer, go back, print; in large type by its address."""

import re
from pathlib import Path

from drawn import CHART, wait_until_drawn
from playwright.sync_api import Page, expect


def to_step(page: Page, name: str, step: int, of: int = 8) -> None:
    """Click the button and wait until the step is drawn whole."""
    page.get_by_role("button", name=name, exact=True).click()
    expect_step(page, step, of)


def expect_step(page: Page, step: int, of: int = 8) -> None:
    """Wait until the step is in the URL and drawn whole."""
    expect(page).to_have_url(re.compile(f"lesson=3-negation&step={step}"))
    place = f"Step {step} of {of}" if step <= of else "Summary"
    expect(page.get_by_test_id("stProgress").get_by_text(place)).to_be_visible()
    wait_until_drawn(page)


def test_a_reader_goes_through_a_lesson_and_takes_it_along(page: Page, app_url: str) -> None:
    page.goto(app_url)
    page.get_by_role("button", name="New here? Take a lesson").click()
    page.get_by_role("button", name="Start the lesson").nth(2).click()
    expect(page.get_by_text("Step 1 of 8")).to_be_visible()
    wait_until_drawn(page)
    to_step(page, "Next", 2)
    expect(page.get_by_role("button", name="Next", exact=True)).to_be_disabled()
    page.get_by_text("French", exact=True).click()
    to_step(page, "Predict", 3)
    right = "You predicted French. The prediction is right. MiniLM-MLM: french."
    expect(page.get_by_text(right)).to_be_visible()
    page.go_back()
    expect_step(page, 2)
    expect(page.get_by_text("You predicted French.")).to_be_visible()
    page.go_forward()
    expect_step(page, 3)
    expect(page.get_by_text("MiniLM-MLM: french.")).to_be_visible()
    to_step(page, "Next", 4)
    to_step(page, "Next", 5)
    page.get_by_text("60 to 80 %", exact=True).click()
    to_step(page, "Predict", 6)
    expect(page.locator(f"{CHART} svg")).to_be_visible()
    to_step(page, "Next", 7)
    to_step(page, "Next", 8)
    to_step(page, "Summary", 9)
    expect(page.get_by_text("2 of 2 predictions were right.")).to_be_visible()
    with page.expect_download() as taken:
        page.get_by_role("button", name="Handout").click()
    text = Path(taken.value.path()).read_text(encoding="utf-8")
    assert taken.value.suggested_filename == "3-negation.html"
    assert "The official language of France is not" in text
    assert "This step was not shown before printing" not in text
    assert "Answer of minilm-mlm: <b>french</b>" in text and "Lines: 95 %" not in text
