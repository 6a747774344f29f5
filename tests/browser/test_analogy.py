"""Analogies in a real browser, on real models."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from drawn import wait_until_drawn
from playwright.sync_api import Page, expect

ROOT = Path(__file__).resolve().parents[2]
MODEL = "minilm-mlm"
pytestmark = [pytest.mark.browser, pytest.mark.slow]


def open_page(page: Page, url: str, query: str = "") -> None:
    """The page with the embedded model only, when its answers are there."""
    page.goto(f"{url}/?tab=Analogy&models={MODEL}{query}")
    expect(page.get_by_role("tab", name="Analogy", selected=True)).to_be_visible()


def words(page: Page) -> list[str]:
    """The model's answers, without the marks beside them."""
    cells = page.locator("table.lx").first.locator("tbody .word")
    return [cell.evaluate("cell => cell.firstChild.textContent") for cell in cells.all()]


def command(*arguments: str) -> dict[str, object]:
    """What the command line prints as JSON."""
    line = [sys.executable, "-m", "lama_core", "analogy", *arguments, "--model", MODEL, "--json"]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, check=True)
    printed: dict[str, object] = json.loads(done.stdout)
    return printed


def test_the_first_screen_solves_its_example(page: Page, app_url: str) -> None:
    open_page(page, app_url)
    expect(page.locator(".lx-asked")).to_contain_text("Paris is to France as Rome is to")
    expect(page.locator("table.lx")).to_have_count(2)
    wait_until_drawn(page)
    assert len(words(page)) == 5
    expect(page.locator("table.lx-small")).to_contain_text("3CosMul")


def test_page_and_command_line_solve_alike(page: Page, app_url: str) -> None:
    open_page(page, app_url, "&a=Tokyo&b=Japan&c=Paris&d=France&template=to-as")
    expect(page.locator("table.lx")).to_have_count(2)
    wait_until_drawn(page)
    printed = command("solve", "Tokyo is to Japan as Paris is to [MASK]", "--gold", "France")
    model = printed["models"][0]  # type: ignore[index]
    expected = [item["token"] for item in model["blanks"][0]["predictions"]]
    assert words(page) == expected
    rank = model["blanks"][0]["gold"]["rank"]
    expect(page.locator(".lx-gold")).to_contain_text(f"rank {rank:,}")


def test_a_typed_word_is_in_the_address_and_a_link_brings_it_back(page: Page, app_url: str) -> None:
    open_page(page, app_url)
    expect(page.locator("table.lx")).to_have_count(2)
    field = page.get_by_role("textbox", name="Analogy", exact=True)
    field.fill("Paris : France :: Berlin : ?")
    field.press("Enter")
    expect(page).to_have_url(re.compile("Berlin"))
    expect(page.locator(".lx-asked")).to_contain_text("as Berlin is to")
    page.goto(page.url)
    expect(page.locator(".lx-asked")).to_contain_text("as Berlin is to")


def test_typed_markup_is_shown_as_text(page: Page, app_url: str) -> None:
    open_page(page, app_url, "&c=%3Cimg%20src=x%20onerror=alert(1)%3E")
    expect(page.locator(".lx-asked")).to_contain_text("<img src=x onerror=alert(1)>")
    assert page.locator(".lx-asked img").count() == 0


def test_scores_are_ranked_with_a_heat_strip_each(page: Page, app_url: str) -> None:
    open_page(page, app_url, "&analogy=Score&query=Paris:France&pairs=Rome:Italy,Italy:Rome")
    expect(page.locator(".lx-strip")).to_have_count(2)
    wait_until_drawn(page)
    printed = command("score", "Paris:France", "Rome:Italy", "Italy:Rome")
    pairs = printed["models"][0]["pairs"]  # type: ignore[index]
    shown = page.locator(".lx-pair b").all_inner_texts()
    assert [text.removesuffix(" ✓") for text in shown] == [" : ".join(one["pair"]) for one in pairs]
    tokens = page.locator(".lx-strip").first.locator(".lx-token").all()
    assert len(tokens) == len(pairs[0]["tokens"])
    first = float(tokens[0].locator("small").inner_text())
    assert first == pytest.approx(pairs[0]["tokens"][0]["log_prob"], abs=0.051)


def test_probe_results_stand_beside_the_papers(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/results?tab=More&chart=Analogy+probes")
    expect(page.get_by_role("heading", name="Accuracy by kind")).to_be_visible()
    expect(page.locator(".js-plotly-plot").first).to_be_visible()
    wait_until_drawn(page)
    assert "Traceback" not in page.inner_text("body")


def test_a_narrow_screen_has_no_sideways_scroll(page: Page, app_url: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    open_page(page, app_url, "&analogy=Score&query=Paris:France&pairs=Rome:Italy,Italy:Rome")
    expect(page.locator(".lx-strip")).to_have_count(2)
    wait_until_drawn(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
