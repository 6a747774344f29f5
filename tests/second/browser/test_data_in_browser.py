"""A user's own facts in a real browser: uploaded, asked of a model, cancelled, resumed."""

import json
import re

from gates import Gates
from playwright.sync_api import FilePayload, Locator, Page, expect

from lama_core.probes.cloze.spec import BATCHES
from lama_core.scoring.batches import MAX_ROWS

TEMPLATE = "The capital of [X] is [Y] ."
N_FACTS = 600
QUERIES_A_PART = BATCHES * MAX_ROWS


def facts(n_facts: int) -> bytes:
    """A table in JSON lines."""
    cities = ("Paris", "Rome", "Berlin", "Madrid")
    rows = [
        {"subject": f"country {i}", "relation": "capital", "object": cities[i % len(cities)],
         "template": TEMPLATE}
        for i in range(n_facts)
    ]  # fmt: skip
    return "\n".join(map(json.dumps, rows)).encode()


def chosen(page: Page, name: str) -> Locator:
    """What shows that the file of that name is in the field."""
    return page.get_by_role("button", name=f"Remove {name}")


def upload(page: Page, url: str, name: str, content: bytes) -> None:
    """Choose the file on the tab Import and import it."""
    page.goto(f"{url}/data?tab=Import")
    file = FilePayload(name=name, mimeType="application/json", buffer=content)
    page.locator("input[type=file]").set_input_files(file)
    expect(chosen(page, name)).to_be_visible()
    page.get_by_role("button", name="Import", exact=True).click()


def scored(page: Page, n_queries: int) -> Locator:
    """What says that so many queries of the run are scored."""
    return page.get_by_text(re.compile(rf"\b{n_queries:,} of {N_FACTS:,} queries"))


def test_a_cancelled_run_is_not_shown_and_goes_on_where_it_stopped(
    page: Page, app_url: str, gates: Gates
) -> None:
    upload(page, app_url, "../../many.jsonl", facts(N_FACTS))
    expect(page.get_by_text("Imported many: 600 facts.")).to_be_visible()
    page.get_by_role("button", name="Choose models and options").click()
    limit = page.get_by_role("spinbutton", name="Facts per relation (at most)")
    limit.fill(str(N_FACTS))
    limit.press("Enter")
    with gates.closed("part"):
        page.get_by_role("button", name="Start").click()
        expect(scored(page, QUERIES_A_PART)).to_be_visible()
        page.get_by_role("button", name="Cancel").click()
        kept = re.compile(r"MiniLM-MLM on many.*: cancelled, 1 of \d+ parts kept\.")
        expect(page.get_by_test_id("stAlert")).to_contain_text(kept)
    expect(limit).to_have_value(str(N_FACTS))

    results = page.context.new_page()
    results.goto(f"{app_url}/results")
    results.get_by_role("combobox", name="Data").first.click()
    expect(results.get_by_role("option", name="starter", exact=True)).to_be_visible()
    assert results.get_by_role("option", name="many", exact=True).count() == 0
    results.close()

    with gates.closed("part"):
        page.get_by_role("button", name="Resume").click()
        expect(scored(page, 2 * QUERIES_A_PART)).to_be_visible()  # the second part is held, too
    expect(page.get_by_text("Run finished (MiniLM-MLM on many")).to_be_visible()
    page.get_by_role("button", name="Show it").click()
    page.wait_for_url(re.compile("runs=many-minilm_mlm-manual-"))
    expect(page.get_by_role("heading", name="P@1 by relation")).to_be_visible()
    page.goto(f"{app_url}/results?tab=Wrong+answers&data=many")
    expect(
        page.get_by_text(re.compile(f"of {N_FACTS:,} facts.* · wrong in MiniLM"))
    ).to_be_visible()
    page.get_by_text("All facts", exact=True).click()
    expect(page.get_by_text(re.compile(f"^{N_FACTS:,} of {N_FACTS:,} facts"))).to_be_visible()
