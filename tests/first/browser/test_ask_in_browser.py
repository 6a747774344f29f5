"""A visit to the page Ask in a real browser, on real models."""

import os
import re

from drawn import wait_until_drawn
from playwright.sync_api import Page, expect

MODELS = ("minilm-mlm", "minilm-mlm-twin", "smollm2-135m")


def test_the_first_screen_answers_its_example(page: Page, app_url: str) -> None:
    n_here = int(os.environ.get("LAMA_APP_MODELS", "2"))  # the tests' own app is without SmolLM2
    page.goto(app_url)
    expect(page.get_by_role("textbox", name="Sentence with a blank")).to_have_value(
        "The capital of France is ___."
    )
    # A stored run answers for the model that isn't here.
    expect(page.locator("table.lx")).to_have_count(len(MODELS))
    for number in range(len(MODELS)):
        expect(page.locator("table.lx").nth(number).locator("tbody tr")).to_have_count(5)
    buttons = page.get_by_role("button", name=re.compile("^Get it"))
    expect(buttons).to_have_count(len(MODELS) - n_here)


def test_text_of_a_user_is_never_interpreted(page: Page, app_url: str) -> None:
    page.goto(app_url)
    page.evaluate("window.harmed = false")
    nasty = '<img src=x onerror="window.harmed=true"> **bold** $x$ مرحبا 🙂 is ___.'
    field = page.get_by_role("textbox", name="Sentence with a blank")
    field.fill(nasty)
    field.press("Enter")
    gold = page.get_by_role("textbox", name="Right answer (optional)")
    expect(gold).to_have_value("")  # the example's answer went with its sentence
    gold.fill("<b onclick=1>Paris</b>")
    gold.press("Enter")
    expect(page.locator(".lx-gold b").first).to_have_text("<b onclick=1>Paris</b>")
    wait_until_drawn(page)
    assert page.evaluate("window.harmed") is False
    assert page.locator("img[src=x]").count() == 0
