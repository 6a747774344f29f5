"""A public app in a real browser."""

import urllib.error
import urllib.request
from collections.abc import Callable

import pytest
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
