"""A running app and a real browser for the tests of a folder `browser`.

LAMA_APP_URL names an app that runs already; without it one is started, whose data (runs, imported
sets) are its own and whose weights are the user's: they are fetched once a machine.
Without a browser the tests skip; under CI they fail instead.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from drawn import MAX_WAIT
from gates import Gates
from load.clients import running_app
from playwright.sync_api import Browser, Page, Playwright, expect, sync_playwright

from tools.bench.made_up import make_runs

expect.set_options(timeout=MAX_WAIT)
BROWSER_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def all_gates(tmp_path_factory: pytest.TempPathFactory) -> Gates:
    """The gates of every app that is started here."""
    return Gates(tmp_path_factory.mktemp("gates"))


@pytest.fixture
def gates(all_gates: Gates) -> Gates:
    """The gates of the app under test."""
    if os.environ.get("LAMA_APP_URL"):
        pytest.skip("the app at LAMA_APP_URL has no gates")
    return all_gates


@pytest.fixture(scope="session")
def start_app(all_gates: Gates) -> Iterator[Callable[..., str]]:
    """`start_app(home, LAMA_X="1")`: the address of an app with that home, the user's weights."""
    with ExitStack() as running:
        yield (
            lambda home, **more: (
                running.enter_context(running_app(home, **all_gates.environment, **more)).url
            )
        )


@pytest.fixture(scope="session")
def app_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of the app under test, with made-up runs of six models."""
    home = tmp_path_factory.mktemp("home")
    make_runs(home / "data" / "runs", n_relations=4, n_facts=800)
    return home


@pytest.fixture(scope="session")
def app_url(app_home: Path, start_app: Callable[..., str]) -> str:
    """Address of a running app: one for all tests of a process that need no other settings."""
    given = os.environ.get("LAMA_APP_URL")
    return given.rstrip("/") if given else start_app(app_home)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Headless Chromium, the system's or playwright's own.

    Of one file: its event loop mustn't run on beside other files' tests in the same process.
    """
    with sync_playwright() as playwright:
        yield _launch(playwright)


def _launch(playwright: Playwright) -> Browser:
    system = shutil.which("chromium") or shutil.which("chromium-browser")
    own = playwright.chromium.executable_path
    path = system or (own if Path(own).exists() else None)
    if path is None:
        reason = "no Chromium: install Debian's chromium, or run `playwright install chromium`"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return playwright.chromium.launch(executable_path=path, args=BROWSER_FLAGS)


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A fresh page, 1400 pixels wide."""
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    page = context.new_page()
    page.set_default_timeout(MAX_WAIT)
    yield page
    context.close()
