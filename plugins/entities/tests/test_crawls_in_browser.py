"""Crawls in a real browser: started, seen as a picture and asked in SPARQL."""

import re

from drawn import current_run, wait_until_drawn
from opened import all_gates, app_home, app_url, browser, gates, page, start_app  # noqa: F401
from playwright.sync_api import Page, expect


def test_a_crawl_is_started_seen_and_asked(page: Page, app_url: str) -> None:  # noqa: F811
    page.goto(f"{app_url}/crawls?seeds=Norway&crawl_depth=2&crawl_most=60")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("button", name="Start", exact=True).click()
    expect(page.get_by_text("Crawl finished")).to_be_visible()
    shown = current_run(page)
    page.get_by_role("button", name="Show it").click()
    wait_until_drawn(page, shown)  # the form closes, so that the tabs move
    picture = page.locator("svg[role=group]")
    oslo = picture.get_by_role("link", name="Oslo", exact=True)
    expect(oslo).to_be_visible()
    oslo.hover()
    number, lines = oslo.get_attribute("data-node"), picture.locator("g[data-ends]")
    ends = [str(line.get_attribute("data-ends")).split() for line in lines.all()]
    clear = lines.evaluate_all("all => all.map(one => one.style.opacity === '1')")
    assert clear == [number in one for one in ends] and {*clear} == {True, False}
    page.get_by_role("tab", name="Questions").click()
    question = page.get_by_role("button", name="Which things are the answer")
    expect(question).to_be_visible()
    shown = current_run(page)
    question.click()
    expect(page.get_by_role("textbox", name="Query")).to_have_value(re.compile("AS \\?beliefs"))
    wait_until_drawn(page, shown)
    expect(page.locator("[data-testid=stDataFrame]")).to_be_visible()
    page.get_by_role("textbox", name="Query").fill("SELEC ?s")
    page.get_by_role("textbox", name="Query").press("Control+Enter")
    expect(page.get_by_text("The query isn't SPARQL from line 1")).to_be_visible()
    page.set_viewport_size({"width": 390, "height": 844})
    page.get_by_role("tab", name="Picture").click()
    expect(oslo).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    oslo.click()
    expect(page.get_by_label("Entity", exact=True)).to_have_value("Oslo")
    page.go_back()  # once
    expect(oslo).to_be_visible()
