"""What the address bar must do wherever the app is served."""

import re

from drawn import wait_until_drawn
from playwright.sync_api import BrowserContext, Page, expect


def check_addresses(context: BrowserContext, root: str) -> None:
    """Check that the address holds the screen: sentence, reload, Share, Back, batch, two tabs.

    root: the app's URL, without a slash at its end.
    """
    page = context.new_page()
    page.goto(f"{root}/?models=minilm-mlm")
    wait_until_drawn(page)
    _enter(page, "Right answer (optional)", "")
    _enter(page, "Sentence with a blank", "Tokyo is the capital of ___.")
    expect(page).to_have_url(re.compile(re.escape(root) + r"/\?.*text=Tokyo"))
    page.reload()
    _check_sentence(page)

    page.get_by_role("button", name="Share").click()
    shared = page.get_by_test_id("stPopoverBody").get_by_test_id("stCode").first
    expect(shared).to_have_text(page.url)
    second = context.new_page()
    second.goto(shared.inner_text())
    _check_sentence(second)
    page.keyboard.press("Escape")

    page.get_by_role("link", name="Models").first.click()
    page.wait_for_url(re.compile(re.escape(root) + r"/models\?"))
    wait_until_drawn(page)
    page.get_by_role("button", name="Share").click()
    expect(shared).to_have_text(page.url)
    page.keyboard.press("Escape")
    page.go_back()
    page.wait_for_url(re.compile(r"text=Tokyo"))
    _check_sentence(page)

    page.get_by_role("tab", name="Batch").click()
    page.get_by_role("textbox", name=re.compile("^Sentences")).fill("Rome is the capital of ___.")
    page.keyboard.press("Control+Enter")
    page.wait_for_url(re.compile("sentences_many=Rome"))
    page.reload()
    expect(page.get_by_role("textbox", name=re.compile("^Sentences"))).to_have_value(
        re.compile("^Rome")
    )
    _check_sentence(second)
    assert second.url != page.url


def _enter(page: Page, label: str, text: str) -> None:
    field = page.get_by_role("textbox", name=label)
    field.fill(text)
    field.press("Enter")
    expect(field).to_have_value(text)
    wait_until_drawn(page)


def _check_sentence(page: Page) -> None:
    wait_until_drawn(page)
    expect(page.get_by_role("textbox", name="Sentence with a blank")).to_have_value(
        "Tokyo is the capital of ___."
    )
    expect(page.get_by_role("textbox", name="Right answer (optional)")).to_have_value("")
    expect(page.locator("table.lx tbody .word").first).to_contain_text("japan")
