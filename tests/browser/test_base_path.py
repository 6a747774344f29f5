"""The app below a path of its server (`server.baseUrlPath`), without a proxy."""

from collections.abc import Callable

import pytest
from addresses import check_addresses
from drawn import MAX_WAIT
from playwright.sync_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_the_address_holds_the_screen_below_a_path_that_ends_in_a_pages_name(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory, start_app: Callable[..., str]
) -> None:
    home = tmp_path_factory.mktemp("below")
    app = start_app(home, STREAMLIT_SERVER_BASE_URL_PATH="courses/help")
    context = browser.new_context()
    context.set_default_timeout(MAX_WAIT)
    check_addresses(context, app)
