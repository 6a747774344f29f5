"""The page Ask in a real browser, on real models."""

import re
from collections.abc import Callable

from drawn import CHART, current_run, wait_until_drawn
from picking import pick_row
from playwright.sync_api import Page, expect


def test_a_typed_subject_goes_with_a_new_relation_and_a_row_leads_to_its_sentence(
    page: Page, app_url: str
) -> None:
    page.goto(f"{app_url}/?tab=Several&what=Wordings&models=minilm-mlm&context=left")
    expect(page.get_by_text("wordings give")).to_be_visible()
    for label, typed in (("Subject", "Narnia"), ("Relation", "P30 continent")):
        field = page.get_by_role("combobox", name=label)
        wait_until_drawn(page)
        seen = current_run(page)
        field.fill(typed)
        field.press("Enter")
        wait_until_drawn(page, seen)
    expect(page.get_by_text("Narnia, continent: starter has no such fact")).to_be_visible()
    expect(page).to_have_url(re.compile("subject=Narnia"))
    field = page.get_by_role("textbox", name="Sentence with a blank")
    pick_row(page, 1, field)
    expect(field).to_have_value("The continent where you find Narnia is ___.")
    expect(page).to_have_url(re.compile("models=MiniLM-MLM"))
    expect(page).to_have_url(re.compile("context=left"))
    expect(page.locator("table.lx tbody tr")).to_have_count(5)
    page.go_back()
    expect(page.get_by_text("Narnia, continent: starter has no such fact")).to_be_visible()


def test_a_click_makes_one_entry_in_the_history_and_typing_none(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/?models=minilm-mlm")
    wait_until_drawn(page)

    def entries_of(act: Callable[[], object]) -> int:
        before, seen = page.evaluate("history.length"), current_run(page)
        act()
        wait_until_drawn(page, seen)
        return int(page.evaluate("history.length")) - before

    def choose_example(name: str) -> None:
        page.get_by_role("button", name="More examples").first.click()
        page.get_by_role("button", name=name).first.click()
        page.keyboard.press("Escape")

    def type_sentence() -> None:
        field = page.get_by_role("textbox", name="Sentence with a blank")
        field.fill("Rome is the capital of ___.")
        field.press("Enter")

    word = page.get_by_role("textbox", name="Analogy", exact=True)
    assert entries_of(lambda: choose_example("Adolphe Adam died in")) == 1
    assert entries_of(type_sentence) == 0
    for tab in ("Analogy", "Several", "Analogy"):
        page.keyboard.press("Escape")
        assert entries_of(page.get_by_role("tab", name=tab, exact=True).click) == 1, tab
    first = word.input_value()
    assert entries_of(lambda: choose_example("Tokyo : Japan")) == 1
    expect(word).to_have_value("Tokyo : Japan :: Paris : ?")
    page.go_back()
    expect(word).to_have_value(first)
    wait_until_drawn(page)
    page.go_forward()
    expect(word).to_have_value("Tokyo : Japan :: Paris : ?")
    wait_until_drawn(page)
    page.get_by_role("button", name="History").click()
    entry = page.get_by_role("button", name="Rome is the capital of ___. Sentence")
    assert entries_of(entry.click) == 1
    field = page.get_by_role("textbox", name="Sentence with a blank")
    expect(field).to_have_value("Rome is the capital of ___.")


def test_a_cell_of_the_grid_opens_its_sentence(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/?tab=Several&what=Alternatives&models=minilm-mlm")
    cell = page.locator(f"{CHART} .mark-rect path").nth(1)
    cell.wait_for(state="attached")
    wait_until_drawn(page)
    box = cell.bounding_box()
    assert box
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_url(lambda url: "text=" in url and "tab=Several" not in url)
    assert "gold=" not in page.url, "a model's word is no right answer"
