"""A public app behind Debian's nginx with the project's configuration: headers, hosts, limits."""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.client import HTTPSConnection

import pytest
from drawn import CHART, MAX_WAIT, wait_until_drawn
from load.clients import handshake
from load.proxy import NAME, find_nginx, running_nginx, unverified
from playwright.sync_api import Browser, BrowserContext, Page, expect

BASE = "/courses/help"  # a base path may end in the name of one of the app's pages


@dataclass(frozen=True)
class Site:
    """The app behind nginx. port: nginx's for TLS."""

    port: int

    @property
    def origin(self) -> str:
        return f"https://{NAME}:{self.port}"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, start_app: Callable[..., str]) -> Iterator[Site]:
    if find_nginx() is None:
        if os.environ.get("CI"):
            pytest.fail("no nginx: install Debian's nginx")
        pytest.skip("no nginx: install Debian's nginx")
    app = start_app(
        tmp_path_factory.mktemp("public"),
        LAMA_PUBLIC="1",
        STREAMLIT_SERVER_ALLOWED_HOSTS=NAME,
        STREAMLIT_SERVER_BASE_URL_PATH=BASE,
    )
    with running_nginx(tmp_path_factory.mktemp("nginx"), app) as port:
        yield Site(port)


def fetch(
    site: Site, path: str, *, host: str = NAME, method: str = "GET", body: bytes | None = None
) -> tuple[int, dict[str, str]]:
    """The status and the headers of an answer."""
    connection = HTTPSConnection("127.0.0.1", site.port, context=unverified(), timeout=90)
    connection.request(method, BASE + path, body, {"Host": host})
    answer = connection.getresponse()
    answer.read()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}


def open_websocket(site: Site, *, host: str, origin: str | None) -> int:
    """The status of the answer to a websocket's handshake."""
    return handshake(f"wss://{host}:{site.port}{BASE}", site.port, origin, ssl=unverified())


@pytest.mark.parametrize("path", ("/", "/_stcore/health", "/static/nothing-here.js"))
def test_every_answer_has_the_security_headers(site: Site, path: str) -> None:
    _status, headers = fetch(site, path)
    assert headers["x-frame-options"] == "DENY"
    assert headers["x-content-type-options"] == "nosniff"
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "max-age" in headers["strict-transport-security"]
    assert not re.search(r"\d", headers["server"]), "the version is hidden"


@pytest.mark.parametrize(
    "path", ("/_stcore/metrics", "/_stcore/agent/mcp", "/_stcore/agent/openapi.json")
)
def test_figures_and_interfaces_of_the_process_are_blocked(site: Site, path: str) -> None:
    assert fetch(site, path)[0] == 404


def test_large_requests_are_refused(site: Site) -> None:
    assert fetch(site, "/", method="POST", body=b"x" * 100_000)[0] == 413


def test_a_foreign_host_is_refused(site: Site) -> None:
    assert fetch(site, "/")[0] == 200
    for host in ("evil.example", "127.0.0.1", f"{NAME}.evil.example"):
        assert fetch(site, "/", host=host)[0] == 421


def test_only_the_apps_own_pages_open_a_websocket(site: Site) -> None:
    assert open_websocket(site, host=NAME, origin=site.origin) == 101
    foreign = "https://evil.example"
    assert open_websocket(site, host=NAME, origin=foreign) == 403
    assert open_websocket(site, host=NAME, origin="null") == 403
    assert open_websocket(site, host="evil.example", origin=f"{foreign}:{site.port}") == 421


def test_a_browser_asks_through_nginx_and_the_policy_blocks_nothing(
    site: Site, browser: Browser
) -> None:
    launched = browser.browser_type.launch(
        executable_path=shutil.which("chromium") or browser.browser_type.executable_path,
        args=["--no-sandbox", "--disable-gpu", f"--host-resolver-rules=MAP {NAME} 127.0.0.1"],
    )
    context = launched.new_context(ignore_https_errors=True)
    context.set_default_timeout(MAX_WAIT)
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.goto(f"{site.origin}{BASE}/?text=Tokyo+is+the+capital+of+___.&models=minilm-mlm")
    page.get_by_text("japan").first.wait_for()
    page.goto(f"{site.origin}{BASE}/results")
    page.locator(f"{CHART} svg").first.wait_for()
    wait_until_drawn(page)
    assert not [text for text in said if "Content Security Policy" in text]
    check_addresses(context, site.origin + BASE)
    launched.close()


def check_addresses(context: BrowserContext, root: str) -> None:
    """Check that the address holds the screen: sentence, reload, Share, Back.

    root: the app's URL, without a slash at its end.
    """
    page = context.new_page()
    page.goto(f"{root}/?models=minilm-mlm")
    wait_until_drawn(page)
    _enter(page, "Right answer (optional)", "")
    _enter(page, "Sentence with a blank", "Tokyo is the capital of ___.")
    expect(page).to_have_url(re.compile(re.escape(root) + r"/\?.*text=Tokyo"))
    page.reload()
    _check_sentence(page)

    page.get_by_role("button", name="Share").click()
    shared = page.get_by_test_id("stPopoverBody").get_by_test_id("stCode").first
    expect(shared).to_have_text(page.url)
    second = context.new_page()
    second.goto(shared.inner_text())
    _check_sentence(second)
    page.keyboard.press("Escape")

    page.get_by_role("link", name="Models").first.click()
    page.wait_for_url(re.compile(re.escape(root) + r"/models\?"))
    wait_until_drawn(page)
    page.get_by_role("button", name="Share").click()
    expect(shared).to_have_text(page.url)
    page.keyboard.press("Escape")
    page.go_back()
    page.wait_for_url(re.compile(r"text=Tokyo"))
    _check_sentence(page)


def _enter(page: Page, label: str, text: str) -> None:
    field = page.get_by_role("textbox", name=label)
    field.fill(text)
    field.press("Enter")
    expect(field).to_have_value(text)
    wait_until_drawn(page)


def _check_sentence(page: Page) -> None:
    wait_until_drawn(page)
    expect(page.get_by_role("textbox", name="Sentence with a blank")).to_have_value(
        "Tokyo is the capital of ___."
    )
    expect(page.get_by_role("textbox", name="Right answer (optional)")).to_have_value("")
    expect(page.locator("table.lx tbody .word").first).to_contain_text("japan")
