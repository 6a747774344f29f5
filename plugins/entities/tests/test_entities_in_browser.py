"""Cards in a real browser: an answer opens its card, the trail and Back lead back."""

from opened import all_gates, app_home, app_url, browser, gates, page, start_app  # noqa: F401
from playwright.sync_api import Page, expect


def test_a_click_opens_the_answers_card_and_back_returns(page: Page, app_url: str) -> None:  # noqa: F811
    page.goto(f"{app_url}/?tab=Entities&models=MiniLM-MLM&entity=Norway")
    rows = page.locator(".lx-card-rows li")
    expect(rows.first).to_contain_text("capital")
    rows.first.get_by_role("link", name="oslo").click()
    trail = page.locator(".st-key-trail")
    expect(trail).to_contain_text("Norway")
    expect(rows.first).to_contain_text("capital of")
    expect(page.get_by_label("Entity", exact=True)).to_have_value("Oslo")
    assert "trail=P36%3ANorway" in page.url
    rows.first.get_by_role("link", name="norway").click()
    expect(trail).to_contain_text("capital of")
    trail.get_by_role("button", name="Oslo").click()
    expect(page.get_by_label("Entity", exact=True)).to_have_value("Oslo")
    expect(trail).not_to_contain_text("capital of")
    rows.first.get_by_role("link", name="capital of").click()  # its sentence alone
    expect(page.get_by_role("tab", name="Sentence")).to_have_attribute("aria-selected", "true")
    expect(page.locator("input[value='Oslo is the capital of ___.']")).to_be_visible()
    page.go_back()
    expect(page.get_by_label("Entity", exact=True)).to_have_value("Oslo")
    page.go_back()
    expect(page.get_by_label("Entity", exact=True)).to_have_value("Norway")
    expect(trail).to_contain_text("capital of")
