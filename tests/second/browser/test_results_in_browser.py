"""From a bar on Results to its facts and on to a cloze query, in a real browser."""

import re
from pathlib import Path

from drawn import CHART, click_mark, wait_until_drawn
from picking import pick_row
from playwright.sync_api import Locator, Page, expect

OF_FACTS = r"of \d+ (scored )?facts( \(\d+ excluded\))?"  # above the list
FACTS = re.compile(r"/results\?.*tab=Wrong\+answers")


def open_page(page: Page, url: str) -> None:
    page.goto(url)
    wait_until_drawn(page)


def shown_button(page: Page, name: str | re.Pattern[str]) -> Locator:
    """The first visible button of that name."""
    return page.get_by_role("button", name=name).filter(visible=True).first


def test_a_bar_leads_to_its_facts_and_a_fact_to_a_cloze_query(page: Page, app_url: str) -> None:
    # Two masked and causal models that this machine has, or offers to fetch, so that Cloze opens.
    chosen = "data=made-up&models=minilm-mlm&models=smollm2-135m"
    open_page(page, f"{app_url}/results?{chosen}")
    click_mark(page, re.compile("^P101 made-up relation 1\nMiniLM"))
    page.wait_for_url(re.compile(r"relations=P101\+made-up\+relation\+1"))
    wait_until_drawn(page)
    click_mark(page, re.compile("^P101 made-up relation 1\nSmolLM2"))
    page.wait_for_url(re.compile(r"models=SmolLM2\+135M\+Instruct(?!.*models=)"))
    wait_until_drawn(page)
    other = page.locator(f"{CHART} path").and_(page.get_by_label(re.compile("MiniLM")))
    expect(other).to_have_count(0)
    click_mark(page, re.compile("^P101 made-up relation 1"))  # the only one that is left
    page.wait_for_url(FACTS)
    wait_until_drawn(page)
    expect(page).to_have_url(re.compile(r"relations=P101\+made-up\+relation\+1"))
    expect(page).to_have_url(re.compile(r"models=SmolLM2\+135M\+Instruct"))
    expect(page.get_by_text(re.compile(OF_FACTS))).to_be_visible()

    opened = page.get_by_role("button", name="Ask it")
    pick_row(page, 0, opened, across=80)
    expect(page).to_have_url(re.compile("fact=P101"))
    opened.click()
    page.wait_for_url(re.compile(r"/\?text=.*is\+related\+to"))
    field = page.get_by_role("textbox", name="Sentence with a blank")
    expect(field).to_have_value(re.compile(r"is related to \[MASK\] \.$"))

    page.go_back()
    wait_until_drawn(page)
    expect(page.get_by_role("radio", name="Facts", exact=True)).to_be_visible()
    expect(page).to_have_url(re.compile("relations=P101"))


def test_the_menu_of_a_chart_gives_its_picture(page: Page, app_url: str) -> None:
    open_page(page, f"{app_url}/results?data=made-up&models=gpt2")
    for ending, start in (("PNG", b"\x89PNG"), ("SVG", b"<svg ")):
        page.locator(CHART).first.hover()
        with page.expect_download() as taken:
            page.get_by_role("button", name=f"Download as {ending}").first.click()
        picture = Path(taken.value.path()).read_bytes()
        assert picture.startswith(start) and taken.value.suggested_filename.endswith(ending.lower())
    texts = re.findall(r">([^<>]+)</text>|<tspan[^>]*>([^<]+)", picture.decode())
    assert "filtered ranking" in " ".join(map("".join, texts)), "the caption is in the picture"


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


def test_five_facts_that_only_one_model_knows_are_tagged_and_shared(
    page: Page, app_url: str
) -> None:
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
