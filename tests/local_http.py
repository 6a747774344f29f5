"""Servers of HTTP on this machine, for tests."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class SilentHandler(BaseHTTPRequestHandler):
    disable_nagle_algorithm = True  # else each body waits for 40 ms behind its headers

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler], **attributes: Any) -> Iterator[str]:
    """Answer with the handler while the block runs; its address. attributes: of the handler."""
    own = type("OwnHandler", (handler,), attributes)
    server = ThreadingHTTPServer(("127.0.0.1", 0), own)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
