"""Start Streamlit's server with this project's limits: `python serve.py run app.py`.

- No outgoing connections: Streamlit otherwise fetches the machine's external address from a third
  party when it refuses a websocket's origin, and when it starts without a browser.
- At most `MAX_SAME` log messages a minute from the same line of code, so that forged requests don't
  fill the log.
- Pages name the app's own URL, so that browsers don't first look for the server below each page.
- The folder `pages` isn't Streamlit's older kind of multipage app, which would say of a plug-in's
  page, if it is the first that is opened, that it doesn't exist.
- At most LAMA_ADDRESS_CONNECTIONS websockets at once for each network address, and as many new ones
  in a minute (0: no limit).

The server passes a proxy's `X-Forwarded-For` on only if FORWARDED_ALLOW_IPS names the proxy.
"""

import logging
import sys
import time
from collections import Counter, defaultdict, deque
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from starlette.responses import HTMLResponse
from streamlit import net_util
from streamlit.runtime.pages_manager import PagesManager
from streamlit.web import cli
from streamlit.web.server.starlette import starlette_static_routes, starlette_websocket

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from lama_core.errors import UserError, int_from_env
from lama_core.service import process
from pages.ui.shared.addresses import CONNECTIONS, network_address

MAX_SAME = 20
POLICY_VIOLATION = 1008  # status of a refused websocket
BASE = b'<script>window.__streamlit={BACKEND_BASE_URL:new URL("./",location.href).href}</script>'

Endpoint = Callable[[Any], Awaitable[None]]
log = logging.getLogger("lama_explorer")


def limited(endpoint: Endpoint, most: int) -> Endpoint:
    """Return a websocket endpoint that limits the connections of each network address.

    Args:
        endpoint: The endpoint without limits.
        most: The largest number of simultaneous connections, and of new connections in a minute;
            0: no limit.
    """
    connected: Counter[str] = Counter()
    lately: dict[str, deque[float]] = defaultdict(deque)  # when connections were opened

    async def connect(websocket: Any) -> None:
        address = network_address(websocket.client.host if websocket.client else None)
        now = time.monotonic()
        opened = lately[address]
        while opened and now - opened[0] > 60:
            opened.popleft()
        if most and max(connected[address], len(opened)) >= most:
            log.warning("%s has %d connections: another one is refused", address, most)
            await websocket.close(code=POLICY_VIOLATION)
            return
        opened.append(now)
        connected[address] += 1
        try:
            await endpoint(websocket)
        finally:
            connected[address] -= 1
            for gone in [name for name, n in connected.items() if not n]:
                if not lately[gone] or now - lately[gone][-1] > 60:
                    del connected[gone], lately[gone]

    return connect


def naming_base(make: Callable[..., Any]) -> Callable[..., Any]:
    """Return a maker of Streamlit's static files whose index page has `BASE`."""

    def make_files(*args: Any, **options: Any) -> Any:
        files = make(*args, **options)
        respond = files.get_response

        async def get_response(path: str, scope: Any) -> Any:
            response = await respond(path, scope)
            file = Path(getattr(response, "path", ""))
            if file.name != "index.html":
                return response
            content = file.read_bytes().replace(b"<head>", b"<head>" + BASE, 1)
            return HTMLResponse(content, headers={"Cache-Control": "no-cache"})

        files.get_response = get_response
        return files

    return make_files


class FewOfEach:
    """Decides which log messages are written: a few a minute from each line of code."""

    def __init__(self, most: int = MAX_SAME) -> None:
        self.most = most
        # Line of code -> start of the current minute, number of messages in it.
        self._seen: dict[tuple[str, int], tuple[float, int]] = {}

    def keeps(self, record: logging.LogRecord) -> bool:
        """Whether to write a message; adds to a minute's last message that more are dropped."""
        line = record.pathname, record.lineno
        start, n = self._seen.get(line, (record.created, 0))
        if record.created - start >= 60:
            start, n = record.created, 0
        self._seen[line] = start, n + 1
        if n + 1 == self.most:
            record.msg = f"{record.msg} (more of this kind are dropped for a minute)"
        return n < self.most


def limit_log(few: FewOfEach) -> None:
    """Write only the messages that `few` keeps."""
    handle = logging.Logger.handle

    def handle_few(logger: logging.Logger, record: logging.LogRecord) -> None:
        if few.keeps(record):
            handle(logger, record)

    setattr(logging.Logger, handle.__name__, handle_few)


def set_limits() -> None:
    """Limit websockets by address, disable fetching the machine's address, and add `BASE`."""
    most = int_from_env("LAMA_ADDRESS_CONNECTIONS", CONNECTIONS)
    make = starlette_websocket.create_websocket_handler
    starlette_websocket.create_websocket_handler = lambda runtime: limited(make(runtime), most)
    net_util.get_external_ip = lambda: None
    PagesManager.uses_pages_directory = False
    starlette_static_routes.create_streamlit_static_handler = naming_base(
        starlette_static_routes.create_streamlit_static_handler
    )


if __name__ == "__main__":
    try:
        set_limits()
        process.start()
    except UserError as error:
        sys.exit(f"Error: {error}")
    limit_log(FewOfEach())
    cli.main()
