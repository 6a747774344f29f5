"""Tasks of new users in a real browser, by the shortest path that the pages show.

Task 4 is in test_data_in_browser.py, to cancel and resume a run (5 clicks: the page, Ask models
these facts, Start, Cancel, Resume), task 9 in test_results_in_browser.py, and task 11 in
test_poll_in_browser.py; 6 and 8 are tested without a browser. Each test's docstring counts its
clicks: typing counts 1, a choice from a list 2, a file 2.
"""

import csv
import re
from pathlib import Path

from drawn import wait_until_drawn
from picking import pick_row
from playwright.sync_api import FilePayload, Locator, Page, expect

CAPITALS = dict(
    France="Paris", Italy="Rome", Spain="Madrid", Germany="Berlin", Austria="Vienna",
    Greece="Athens", Norway="Oslo", Sweden="Stockholm", Egypt="Cairo", Japan="Tokyo",
    Poland="Warsaw", Portugal="Lisbon", Hungary="Budapest", Russia="Moscow", China="Beijing",
    Cuba="Havana", Peru="Lima", Iran="Tehran", Iraq="Baghdad", Atlantis="Atlantis",
)  # fmt: skip


def open_page(page: Page, app_url: str, name: str, tab: str = "") -> None:
    """Open a page from the first one, by the menu, and a tab of it."""
    page.goto(app_url)
    page.get_by_test_id("stTopNav").get_by_text(name, exact=True).click()
    if tab:
        page.get_by_role("tab", name=tab, exact=True).click()


def shown_button(page: Page, name: str | re.Pattern[str]) -> Locator:
    """The first visible button of that name."""
    return page.get_by_role("button", name=name).filter(visible=True).first


def export(page: Page) -> list[dict[str, str]]:
    """The rows of the first export of the page, as CSV."""
    shown_button(page, re.compile("Export")).click()
    with page.expect_download() as taken:
        page.get_by_test_id("stPopoverBody").get_by_text("CSV", exact=True).click()
    return list(csv.DictReader(Path(taken.value.path()).open(encoding="utf-8")))


def choose_relation(page: Page, name: str) -> None:
    """Choose a relation and close the list."""
    field = page.get_by_role("combobox", name=re.compile("Relations"))
    field.click()
    page.keyboard.type(name)
    page.get_by_role("option", name=name, exact=True).click()
    page.keyboard.press("Escape")


def test_1_the_best_model_on_capitals_with_interval_and_export(page: Page, app_url: str) -> None:
    """5: Results, the relation (2), Export, CSV."""
    open_page(page, app_url, "Results")
    choose_relation(page, "P36 capital")
    head = page.get_by_text(
        re.compile(r"is (?:clearly )?ahead on P36 capital: [\d.]+\s% \([\d.]+ to [\d.]+\)")
    )
    expect(head).to_be_visible()
    rows = export(page)
    assert all(float(row["low"]) <= float(row["p_at_1"]) <= float(row["high"]) for row in rows)


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


def test_3_an_own_prompt_against_the_manual_one(page: Page, app_url: str) -> None:
    """3: Results, Prompts, the prompt."""
    open_page(page, app_url, "Results", "Prompts")
    prompt = page.get_by_role("textbox", name="Prompt", exact=True)
    prompt.fill("[X] lies in the country of [Y] .")
    prompt.press("Enter")
    result = page.get_by_text(re.compile("on the same 100 facts .95 % interval of the paired"))
    expect(result).to_be_visible()
    shown = page.get_by_text("[X] lies in the country of [Y] .").filter(visible=True)
    expect(shown.last).to_be_visible()  # a chart's title is text, too, and may be hidden


def test_5_own_facts_without_a_template_are_imported_and_probed(page: Page, app_url: str) -> None:
    """7: Data and runs, Import, the file (2), the template, Import, Ask MiniLM-MLM."""
    open_page(page, app_url, "Data and runs", "Import")
    lines = [f"{country},{city}\n" for country, city in list(CAPITALS.items())[:10]]
    content = "".join(["subject,object\n", *lines]).encode()
    file = FilePayload(name="capitals.csv", mimeType="text/csv", buffer=content)
    page.locator("input[type=file]").set_input_files(file)
    page.get_by_role("textbox", name="Template", exact=True).fill("The capital of [X] is [Y].")
    shown_button(page, "Import").click()
    shown_button(page, "Ask MiniLM-MLM").click()
    expect(page.get_by_text(re.compile(r"\d+ of 10 first answers are right"))).to_be_visible()


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


def test_10_twenty_sentences_are_filtered_and_exported(page: Page, app_url: str) -> None:
    """5: Several, the sentences, wrong, Export, CSV."""
    page.goto(f"{app_url}/?models=minilm-mlm")
    page.get_by_role("tab", name="Several", exact=True).click()
    lines = [f"The capital of {country} is ___.\t{city}" for country, city in CAPITALS.items()]
    page.get_by_role("textbox", name="Sentences, one per line").fill("\n".join(lines))
    page.get_by_text("wrong", exact=True).click()
    expect(page.get_by_text("20 of 20 sentences answered")).to_be_visible()
    wait_until_drawn(page)
    rows = export(page)
    assert 0 < len(rows) < len(lines)
    assert all(row["minilm-mlm gold_rank"] != "1" for row in rows)


def test_12_a_figure_for_a_paper_as_pdf(page: Page, app_url: str) -> None:
    """6: Results, Compare, Export, the format (2), the figure."""
    open_page(page, app_url, "Results", "Compare")
    shown_button(page, re.compile("Export")).click()
    inside = page.get_by_test_id("stPopoverBody")
    inside.get_by_role("combobox", name=re.compile("Format")).click()
    page.get_by_role("option", name="pdf", exact=True).click()
    with page.expect_download() as taken:
        inside.get_by_role("button", name="Figure, PDF").click()
    made = Path(taken.value.path()).read_bytes()
    assert made.startswith(b"%PDF") and b"/FontFile2" in made
