"""What a newcomer meets first, in a real browser."""

import re
from uuid import uuid4

from drawn import OVERFLOW, still_top, wait_until_drawn
from gates import Gates
from playwright.sync_api import Page, ViewportSize, expect

N_MODELS = 3  # that are chosen at first; SmolLM2 isn't installed
PHONE: ViewportSize = {"width": 390, "height": 844}


def test_a_walk_from_results_back_to_cloze_and_an_own_sentence(
    page: Page, app_url: str, gates: Gates
) -> None:
    page.goto(f"{app_url}/results")
    wait_until_drawn(page)
    page.get_by_role("tab", name="Compare").click()
    expect(page).to_have_url(re.compile("tab=Compare"))
    wait_until_drawn(page)  # before its style sheet is loaded, a page has the phone's menu, too
    page.get_by_role("link", name="Ask", exact=True).click()
    field = page.get_by_role("textbox", name="Sentence with a blank")
    expect(field).to_be_visible()
    expect(page.locator("[data-tag]").get_by_text("MiniLM-MLM twin")).to_be_visible()
    expect(page.get_by_text("No model is chosen")).to_have_count(0)
    with gates.closed("query"):
        page.goto(f"{app_url}/?text=The+number+{uuid4().int}+is+a+___.")  # no answer is cached
        expect(page.get_by_text("Waiting for the answers", exact=True)).to_be_visible()
        expect(page.locator(".st-key-menu")).to_be_hidden()  # the style sheet is loaded
        expect(page.locator("[data-tag]")).to_have_count(N_MODELS)  # the field grows with them
        # A card for each model; a line offers SmolLM2 where it isn't installed.
        expect(page.locator(".lx-head").nth(N_MODELS - 2)).to_be_visible()
        expect(page.locator("table.lx")).to_have_count(0)
        waiting = still_top(page, ".lx-head")
    expect(page.locator("table.lx").nth(1)).to_be_visible()
    expect(page.get_by_text("The twin is MiniLM-MLM trained")).to_be_visible()
    answered = still_top(page, ".lx-head")
    assert abs(waiting - answered) < 1, "the cards stay where they are when the answers come"
    page.set_viewport_size({"width": 1000, "height": 900})
    wait_until_drawn(page)
    assert max(page.evaluate(OVERFLOW)) <= 0, "tables stay inside their cards"
    page.goto(app_url)
    gold = page.get_by_role("textbox", name="Right answer (optional)")
    expect(gold).to_have_value("Paris")
    field.fill("Dogs eat ___.")
    field.press("Enter")
    expect(gold).to_have_value("")


def test_a_phone_shows_page_names_a_result_and_cards(page: Page, app_url: str) -> None:
    page.set_viewport_size(PHONE)
    page.goto(f"{app_url}/?models=minilm-mlm")
    links = page.locator(".st-key-menu").get_by_role("link")
    pages = ["Ask", "Lessons", "Results", "Data and runs", "Models", "Crawls", "Help"]
    expect(links).to_have_text(pages, use_inner_text=True)
    expect(page.locator("table.lx tr.gold").first).to_be_in_viewport()
    models = page.get_by_role("combobox", name="Models")
    expect(models).to_be_hidden()
    page.get_by_text("Models, right answer, options and class poll").click()
    expect(models).to_be_visible()
    page.get_by_role("tab", name="Several").click()
    page.get_by_role("radio", name="Wordings").click()
    expect(page.get_by_test_id("stDataFrame").filter(visible=True)).to_have_count(0)
    page.get_by_role("button", name="In France, the capital is ___.").click()
    field = page.get_by_role("textbox", name="Sentence with a blank")
    expect(field).to_have_value("In France, the capital is ___.")
    links.nth(1).click()
    expect(page).to_have_title("Lessons · LAMA Explorer")
    page.set_viewport_size({"width": 1400, "height": 900})
    expect(page.locator(".st-key-menu")).to_be_hidden()
