"""`bench views`: seconds in a browser until Results' first chart and Ask's first answer.

Each load is a new visitor with an empty browser cache. Loads of this app and of the smallest page
with one chart or one table (`tests/load/bare/view.py`) alternate, on servers that run at the same
time. Cold: the first load after the server's start. Warm: the median of the loads after it.
"""

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

from playwright.sync_api import Browser, sync_playwright

from lama_core.paths import IMPORT_ROOT
from tools.bench.measuring import BenchRow

SMALLEST = IMPORT_ROOT / "tests" / "load" / "bare" / "view.py"
CHART, TABLE = "[data-testid=stVegaLiteChart] canvas, [data-testid=stVegaLiteChart] svg", ".lx td"
# View -> address in the app, address of the smallest page, and what is waited for.
VIEWS = {
    "Results, first chart": ("/results", "/", CHART),
    "Ask, first answer": ("/?models=MiniLM-MLM", "/?tab=1", TABLE),
}


def run(*, repetitions: int = 5) -> Iterator[BenchRow]:
    """Measure both views, next to the smallest page."""
    for what, (path, smallest, seen) in VIEWS.items():
        with ExitStack() as stack:
            ours = stack.enter_context(_server(IMPORT_ROOT / "app.py"))
            bare = stack.enter_context(_server(SMALLEST))
            tool = stack.enter_context(sync_playwright())
            browser = tool.chromium.launch(
                executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"),
                args=["--no-sandbox"],
            )
            urls = (ours + path, bare + smallest)
            rounds = [
                [_seconds(browser, url, seen) for url in urls] for _ in range(repetitions + 1)
            ]
            for name, some in (("cold", rounds[:1]), ("warm", rounds[1:])):
                mine, least = (median(times) for times in zip(*some, strict=True))
                yield BenchRow(f"{what}, {name}", "s", mine, None, "", least, "the smallest page")


def _seconds(browser: Browser, url: str, seen: str) -> float:
    """Return the seconds until a new visitor sees an element."""
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    page = context.new_page()
    start = time.perf_counter()
    page.goto(url, wait_until="commit")
    page.locator(seen).first.wait_for(state="visible", timeout=120_000)
    seconds = time.perf_counter() - start
    context.close()
    return seconds


@contextmanager
def _server(script: Path) -> Iterator[str]:
    """Start a Streamlit server with a page, and return its address."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    serve = str(IMPORT_ROOT / "pages" / "ui" / "serve.py")
    options = ["--server.port", str(port), "--server.headless", "true"]
    command = [sys.executable, serve, "run", str(script), *options]
    null = subprocess.DEVNULL
    with subprocess.Popen(command, cwd=IMPORT_ROOT, stdout=null, stderr=null) as server:
        try:
            url = f"http://localhost:{port}"
            while True:
                try:
                    urllib.request.urlopen(f"{url}/_stcore/health", timeout=5).close()
                    break
                except (urllib.error.URLError, ConnectionError):
                    time.sleep(0.1)
            yield url
        finally:
            server.terminate()
