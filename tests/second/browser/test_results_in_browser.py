"""From a bar on Results to its facts and on to a cloze query, in a real browser."""

import re

from drawn import wait_until_drawn
from picking import pick_row
from playwright.sync_api import Page, expect

OF_FACTS = r"of \d+ (scored )?facts( \(\d+ excluded\))?"  # above the list
FACTS = re.compile(r"/results\?.*tab=Wrong\+answers")


def open_page(page: Page, url: str) -> None:
    page.goto(url)
    wait_until_drawn(page)


def click_bar(page: Page, number: int) -> None:
    """Click a bar of the chart, near where it begins: the baseline's mark may be on its middle."""
    bar = page.locator(".barlayer .point path").nth(number)
    bar.scroll_into_view_if_needed()
    box = bar.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] / 8, box["y"] + box["height"] / 2)


def test_a_bar_leads_to_its_facts_and_a_fact_to_a_cloze_query(page: Page, app_url: str) -> None:
    # Two masked and causal models that this machine has, or offers to fetch, so that Cloze opens.
    chosen = "data=made-up&models=minilm-mlm&models=smollm2-135m"
    open_page(page, f"{app_url}/results?{chosen}")
    click_bar(page, 17)  # five rows a model with the source's, and two traces of whiskers on them
    page.wait_for_url(re.compile(r"relations=P101\+made-up\+relation\+1"))
    wait_until_drawn(page)
    click_bar(page, 3)  # the relation's other model
    page.wait_for_url(re.compile(r"models=SmolLM2\+135M\+Instruct(?!.*models=)"))
    wait_until_drawn(page)
    click_bar(page, 0)  # the only one that is left
    page.wait_for_url(FACTS)
    wait_until_drawn(page)
    expect(page).to_have_url(re.compile(r"relations=P101\+made-up\+relation\+1"))
    expect(page).to_have_url(re.compile(r"models=SmolLM2\+135M\+Instruct"))
    expect(page.get_by_text(re.compile(f"{OF_FACTS} · P101 made-up relation 1"))).to_be_visible()

    opened = page.get_by_role("button", name="Ask it")
    pick_row(page, 0, opened, across=80)
    expect(page).to_have_url(re.compile("fact=P101"))
    opened.click()
    page.wait_for_url(re.compile(r"/\?text=.*is\+related\+to"))
    field = page.get_by_role("textbox", name="Sentence with a blank")
    expect(field).to_have_value(re.compile(r"is related to \[MASK\] \.$"))

    page.go_back()
    wait_until_drawn(page)
    expect(page.get_by_role("radio", name="Facts")).to_be_visible()
    expect(page).to_have_url(re.compile("relations=P101"))


def test_dragging_zooms_a_chart_and_a_double_click_resets_it(page: Page, app_url: str) -> None:
    open_page(page, f"{app_url}/results?data=made-up&models=gpt2")
    chart = page.locator(".js-plotly-plot").nth(1)
    ends = "chart => chart._fullLayout.xaxis.range.map(end => Math.round(100 * end))"
    chart.scroll_into_view_if_needed()
    whole, box = chart.evaluate(ends), chart.locator(".nsewdrag").first.bounding_box()
    assert box is not None
    # Above the curve, because a click on a mark opens its facts; so the zoomed chart has none.
    x, y = box["x"] + box["width"] * 0.1, box["y"] + box["height"] * 0.05
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 60, y + 60, steps=8)
    page.mouse.up()
    wait_until_drawn(page)
    low, high = chart.evaluate(ends)
    assert whole[0] < low < high < whole[1]
    page.mouse.dblclick(x, y)
    wait_until_drawn(page)
    assert chart.evaluate(ends) == whole


def test_the_keyboard_comes_to_a_number_and_by_a_button_to_its_facts(
    page: Page, app_url: str
) -> None:
    open_page(page, f"{app_url}/results?data=made-up&models=gpt2")
    page.get_by_test_id("data-grid-canvas").last.focus()
    page.keyboard.press("ArrowDown")
    way = page.get_by_role("button", name=re.compile("Facts: P10[01] .*, GPT-2 small"))
    expect(way).to_be_enabled()
    wait_until_drawn(page)
    assert "/results" in page.url, "choosing leads nowhere"
    way.press("Enter")
    page.wait_for_url(re.compile(r"/results\?(?=.*relations=P10).*tab=Wrong\+answers"))


def test_a_cell_of_golds_by_answers_leads_to_its_facts(page: Page, app_url: str) -> None:
    open_page(
        page,
        f"{app_url}/results?tab=Wrong+answers&data=made-up&models=gpt2&view=Confusion&words=10",
    )
    # The first gold is right most often: its first cell, clicked beside its middle.
    cells = page.locator(".heatmaplayer image").first
    cells.scroll_into_view_if_needed()
    box = cells.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] / 11 * 0.7, box["y"] + box["height"] / 11 * 0.5)
    page.wait_for_url(re.compile("gold=.*answer="))
    wait_until_drawn(page)
    expect(
        page.get_by_text(re.compile(OF_FACTS + r" · right answer “\w+” · GPT-2 small answers"))
    ).to_be_visible()


def test_a_bin_leads_to_its_facts_and_one_step_back_to_its_chart(page: Page, app_url: str) -> None:
    open_page(
        page,
        f"{app_url}/results?data=made-up&models=gpt2&tab=More&chart=Rank+distribution&p_at=7",
    )
    page.wait_for_url(re.compile("among="))
    before, entries = page.url, page.evaluate("history.length")
    click_bar(page, 2)
    page.wait_for_url(re.compile(FACTS.pattern + ".*among="))
    wait_until_drawn(page)
    expect(page).to_have_url(re.compile("rank_min=3.*rank_max=5"))
    expect(page.get_by_text(re.compile("rank 3 to 5 in GPT-2 small"))).to_be_visible()
    assert page.evaluate("history.length") == entries + 1
    page.go_back()
    expect(page.get_by_role("heading", name="Results")).to_be_visible()
    expect(page).to_have_url(before)
    wait_until_drawn(page)
    page.get_by_role("button", name="More options").click()
    expect(page.get_by_role("spinbutton", name="k")).to_have_value("7")
