"""The tab Prompts in a real browser, on the study that comes with the project."""

import re

import pytest
from drawn import wait_until_drawn
from playwright.sync_api import Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def open_tab(page: Page, url: str, tab: str) -> None:
    page.goto(f"{url}/results?tab=Prompts&prompts_view={tab.replace(' ', '+')}")
    expect(page.get_by_role("tab", name="Prompts", selected=True)).to_be_visible()
    expect(page.get_by_role("radio", name=tab, exact=True)).to_be_checked()


def test_the_same_fact_stands_side_by_side_through_several_prompts(
    page: Page, app_url: str
) -> None:
    open_tab(page, app_url, "One fact")
    expect(page.locator("table.lx").first).to_be_visible()
    wait_until_drawn(page)
    assert page.locator("table.lx").count() >= 3
    expect(page.locator("table.lx").first.locator("tbody tr")).to_have_count(5)


def test_moving_a_weight_changes_the_address_and_the_accuracy(page: Page, app_url: str) -> None:
    open_tab(page, app_url, "Ensembles")
    expect(page.get_by_test_id("stMetricValue")).to_contain_text("%")
    page.get_by_text("Your own weights", exact=False).click()
    slider = page.get_by_role("slider").first
    expect(slider).to_be_visible()
    slider.focus()
    for _ in range(5):
        slider.press("ArrowLeft")
    expect(page).to_have_url(re.compile("weight0"))
    expect(page.get_by_test_id("stMetricValue")).to_contain_text("%")


def test_the_papers_values_stand_apart_from_another_models(page: Page, app_url: str) -> None:
    open_tab(page, app_url, "Ensembles")
    chart = page.get_by_test_id("stPlotlyChart").first
    expect(chart).to_contain_text("Optimised")
    expect(chart).not_to_contain_text("BERT")
    page.get_by_role("radio", name="Analyses and the paper", exact=True).click()
    page.get_by_role("radio", name="In the paper", exact=True).click()
    expect(page.get_by_text("Not comparable").first).to_be_visible()


def test_a_typed_prompts_accuracy_grows_and_stops(page: Page, app_url: str) -> None:
    open_tab(page, app_url, "Try a prompt")
    field = page.get_by_role("textbox", name="Prompt", exact=True)
    field.fill("The chief city of [X] is [Y] .")
    field.press("Enter")
    expect(page.get_by_text(re.compile(r"; \d+ of \d+ test facts$")).first).to_be_visible()
    expect(page.get_by_text("95 % interval of the paired difference").first).to_be_visible()
    expect(page.get_by_text("Facts where the prompts differ").first).to_be_visible()
