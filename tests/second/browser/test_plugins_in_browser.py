"""A plug-in of strangers in the app: its tab, its chart and its page."""

from collections.abc import Iterator

import pytest
from drawn import CHART, wait_until_drawn
from load.clients import running_app
from pip_packages import EXAMPLE, path_with, pip_install
from playwright.sync_api import Page, expect


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An app for which pip has installed the example of the documentation."""
    site = tmp_path_factory.mktemp("site")
    pip_install(EXAMPLE, site)
    with running_app(tmp_path_factory.mktemp("home"), PYTHONPATH=path_with(site)) as app:
        yield app.url


def test_a_query_has_its_tab_history_and_url(page: Page, url: str) -> None:
    page.goto(
        f"{url}/?tab=Surprise&models=minilm-mlm&surprise=Oslo+is+in+___.&surprise_words=Norway"
    )
    expect(page.get_by_role("tab", name="Surprise")).to_have_attribute("aria-selected", "true")
    expect(page.locator("[data-testid=stTable]")).to_contain_text("bits")
    wait_until_drawn(page)
    expect(page.get_by_role("button", name="Export")).to_be_visible()
    assert "surprise_words=Norway" in page.url
    page.get_by_role("button", name="Pin", exact=True).click()
    expect(page.get_by_role("heading", name="Pinned")).to_be_visible()
    wait_until_drawn(page)
    assert "pin=" in page.url
    page.get_by_role("button", name="History").click()
    expect(page.get_by_role("button", name="Oslo is in ___.")).to_be_visible()


def test_a_view_has_its_chart(page: Page, url: str) -> None:
    page.goto(f"{url}/results?tab=More")
    page.get_by_role("button", name="Are facts about longer names harder?").click()
    expect(page.get_by_role("heading", name="Are facts about longer names")).to_be_visible()
    expect(page.locator(f"{CHART} svg")).to_be_visible()
    wait_until_drawn(page)
    assert "chart=Length+of+the+subject" in page.url


def test_a_page_is_in_the_menu(page: Page, url: str) -> None:
    page.goto(url)
    page.get_by_role("link", name="Example", exact=True).first.click()
    expect(page.get_by_text("finished runs are on this machine")).to_be_visible()
    wait_until_drawn(page)
    assert page.url.startswith(f"{url}/example")
