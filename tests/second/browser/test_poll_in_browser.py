"""A class poll in a real browser: a lecturer and two phones, which the lecturer's page joins."""

import re
from collections.abc import Iterator

import pytest
from drawn import MAX_WAIT, wait_until_drawn
from playwright.sync_api import Browser, Page, expect
from test_every_screen import SIDEWAYS, faults


@pytest.fixture
def phones(browser: Browser) -> Iterator[list[Page]]:
    """Two phones, each with a session of its own."""
    contexts = [browser.new_context(viewport={"width": 390, "height": 844}) for _ in range(2)]
    pages = [context.new_page() for context in contexts]
    for page in pages:
        page.set_default_timeout(MAX_WAIT)
    yield pages
    for context in contexts:
        context.close()


def answer(phone: Page, word: str) -> None:
    phone.get_by_role("textbox", name="Your answer").fill(word)
    phone.get_by_role("button", name="Send").click()
    expect(phone.get_by_text(re.compile("You can change it until"))).to_be_visible()


def test_a_poll_from_start_to_reveal(page: Page, phones: list[Page], app_url: str) -> None:
    """2: Class poll, Reveal. A participant: 2, the answer and Send."""
    page.goto(f"{app_url}/?models=minilm-mlm")
    page.get_by_role("button", name="Class poll").click()
    reveal = page.get_by_role("button", name="Reveal")
    expect(reveal).to_be_visible()
    link = page.get_by_test_id("stCode").first.inner_text()
    assert "/poll?room=" in link and "key=" not in link
    for phone, word in zip(phones, ("Lyon", "paris "), strict=True):
        phone.goto(link)
        answer(phone, word)
        expect(phone.get_by_text("MiniLM-MLM")).to_have_count(0)
        assert not faults(phone) and not phone.evaluate(SIDEWAYS)
    expect(page.get_by_text("2 answers of 2 participants")).to_be_visible()
    phones[0].reload()
    expect(phones[0].get_by_text("Your answer: Lyon")).to_be_visible()
    answer(phones[0], "Paris")
    expect(page.get_by_text("2 (100 %)")).to_have_count(0)
    wait_until_drawn(page)
    assert not faults(page)
    reveal.click()
    for one in (page, *phones):
        expect(one.get_by_text("2 answers of 2 participants · 100 % right")).to_be_visible()
        expect(one.get_by_text("probability of each answer")).to_be_visible()
        assert not faults(one) and not one.evaluate(SIDEWAYS)
    page.get_by_role("button", name="Next question").click()
    page.get_by_role("button", name="Class poll").click()
    expect(phones[0].get_by_role("button", name="Send")).to_be_visible()
    page.get_by_role("button", name="End").click()
    page.get_by_role("button", name="End the poll").click()
    expect(page.get_by_role("button", name="Class poll")).to_be_visible()
    assert "key=" not in page.url and "room=" not in page.url
    phones[1].reload()
    expect(phones[1].get_by_text(re.compile("This poll has ended"))).to_be_visible()
