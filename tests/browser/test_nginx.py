"""A public app behind Debian's nginx with the project's configuration: headers, hosts, limits."""

import os
import re
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPSConnection
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

pytestmark = pytest.mark.slow

CONFIGURATION = Path(__file__).resolve().parents[2] / "deploy" / "nginx.conf"
NAME = "lama.example.org"


@dataclass(frozen=True)
class Site:
    """The app behind nginx. port: nginx's for TLS."""

    port: int

    @property
    def origin(self) -> str:
        return f"https://{NAME}:{self.port}"


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def configure(folder: Path, app: str, port: int) -> Path:
    """The project's configuration with this test's ports, certificate and folders."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
         f"/CN={NAME}", "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    text = CONFIGURATION.read_text(encoding="utf-8")
    replaced = {
        "http://127.0.0.1:8501": app.replace("localhost", "127.0.0.1"),
        f"/etc/ssl/certs/{NAME}.pem": str(certificate),
        f"/etc/ssl/private/{NAME}.key": str(key),
        "listen 443": f"listen 127.0.0.1:{port}",
        "listen 80": f"listen 127.0.0.1:{free_port()}",
        f'"https://{NAME}" 0': f'"https://{NAME}:{port}" 0',
    }
    for old, new in replaced.items():
        assert old in text
        text = text.replace(old, new)
    temporary = "".join(
        f"{kind}_temp_path {folder / kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    whole = folder / "nginx.conf"
    whole.write_text(
        f"daemon off;\npid {folder / 'pid'};\nerror_log {folder / 'error.log'};\n"
        + ("user root;\n" if os.geteuid() == 0 else "")
        + "events {}\nhttp {\naccess_log off;\n"
        + f"include /etc/nginx/mime.types;\n{temporary}{text}}}\n",
        encoding="utf-8",
    )
    return whole


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, start_app: Callable[..., str]) -> Iterator[Site]:
    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if nginx is None:
        if os.environ.get("CI"):
            pytest.fail("no nginx: install Debian's nginx")
        pytest.skip("no nginx: install Debian's nginx")
    folder = tmp_path_factory.mktemp("nginx")
    app = start_app(
        tmp_path_factory.mktemp("public"), LAMA_PUBLIC="1", STREAMLIT_SERVER_ALLOWED_HOSTS=NAME
    )
    port = free_port()
    command = [nginx, "-c", str(configure(folder, app, port)), "-p", str(folder)]
    subprocess.run([*command, "-t"], check=True, capture_output=True)
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        for _ in range(100):
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.1)
        yield Site(port)
    finally:
        process.terminate()
        process.wait()


def unverified() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def fetch(
    site: Site, path: str, *, host: str = NAME, method: str = "GET", body: bytes | None = None
) -> tuple[int, dict[str, str]]:
    """The status and the headers of an answer."""
    connection = HTTPSConnection("127.0.0.1", site.port, context=unverified(), timeout=30)
    connection.request(method, path, body, {"Host": host})
    answer = connection.getresponse()
    answer.read()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}


def open_websocket(site: Site, *, host: str, origin: str | None) -> int:
    """The status of the answer to a websocket's handshake."""
    try:
        with connect(
            f"wss://{host}:{site.port}/_stcore/stream",
            sock=socket.create_connection(("127.0.0.1", site.port)),
            ssl=unverified(),
            origin=origin,  # type: ignore[arg-type]  # a NewType of str
            subprotocols=["streamlit"],  # type: ignore[list-item]
        ):
            return 101
    except InvalidStatus as refused:
        return refused.response.status_code


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
    page = launched.new_context(ignore_https_errors=True).new_page()
    page.set_default_timeout(90_000)
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.goto(f"{site.origin}/?text=Tokyo+is+the+capital+of+___.&models=minilm-mlm")
    page.get_by_text("japan").first.wait_for()
    page.goto(f"{site.origin}/results")
    page.get_by_test_id("stPlotlyChart").first.wait_for(timeout=240_000)
    page.locator(".js-plotly-plot").first.wait_for()
    assert not [text for text in said if "Content Security Policy" in text]
    launched.close()
