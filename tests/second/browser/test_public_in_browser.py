"""A public app, and a link that names files of the machine, in a real browser."""

import re
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from drawn import wait_until_drawn
from playwright.sync_api import Page, expect


@pytest.fixture(scope="module")
def public_url(tmp_path_factory: pytest.TempPathFactory, start_app: Callable[..., str]) -> str:
    """An app that stands open, with the embedded model alone."""
    home = tmp_path_factory.mktemp("public")
    return start_app(home, LAMA_PUBLIC="1", LAMA_PUBLIC_MODELS="minilm-mlm")


def test_visitors_of_a_public_app_ask_its_models_and_leave_no_file(
    page: Page, public_url: str
) -> None:
    page.goto(f"{public_url}/?text=Tokyo+is+the+capital+of+___.&models=minilm-mlm&models=/etc")
    expect(page.locator("table.lx tbody .word").first).to_contain_text("japan")
    expect(page.get_by_text("Excluded, because this app")).to_be_visible()
    # Streamlit takes uploads for any open session, whether a page has a field for them or not.
    request = urllib.request.Request(
        f"{public_url}/_stcore/upload_file/any/file", data=b"x" * 100, method="PUT"
    )
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request)
    assert refused.value.code in (400, 403, 413)


def test_a_link_names_no_file_of_the_machine_and_who_types_may(
    page: Page, app_url: str, tmp_path: Path
) -> None:
    words = tmp_path / "words.txt"
    words.write_text("Japan\nFrance\nPeru\n")
    link = f"{app_url}/?text=Tokyo+is+the+capital+of+___.&models=minilm-mlm&candidates="
    page.goto(f"{link}{quote(f'file:{words}')}")
    expect(page.get_by_text("URLs can't reference a file of this machine")).to_be_visible()
    wait_until_drawn(page)
    assert page.locator("table.lx").count() == 0
    page.goto(link + "common")
    expect(page.locator("table.lx tbody .word").first).to_be_visible()
    page.get_by_role("button", name="Options").click()
    field = page.get_by_role("combobox", name="Candidates")
    field.click()
    field.fill(f"file:{words}")
    field.press("Enter")
    expect(page.get_by_text("Candidates: 3 words")).to_be_visible()
    # Now it stands in this visitor's address, and another who opens that is not read anything.
    expect(page).to_have_url(re.compile("candidates=file"))
    page.reload()
    expect(page.get_by_text("URLs can't reference a file of this machine")).to_be_visible()
