"""A public app makes no outgoing connection, and refuses foreign hosts and origins."""

import asyncio
import random
from pathlib import Path

from load import clients
from load.attack import Seen, ask

# Python runs this file at its start, also in the processes that the app starts.
HOOK = """
import os, socket, sys

def note(event, arguments):
    if event == "socket.getaddrinfo":
        host = arguments[0]
    elif event in ("socket.connect", "socket.sendto"):
        own, address = arguments[:2]
        if own.family not in (socket.AF_INET, socket.AF_INET6):
            return
        if event == "socket.connect" and own.type == socket.SOCK_DGRAM:
            return  # sends nothing: Streamlit looks up this machine's own address
        host = address[0]
    else:
        return
    if isinstance(host, bytes):
        host = host.decode()
    if host not in (None, "", "localhost", "0.0.0.0", "127.0.0.1", "::1", "::"):
        with open(os.environ["OUTGOING"], "a") as log:
            print(event, host, file=log)

sys.addaudithook(note)
"""


def test_a_public_app_connects_to_nothing_and_refuses_foreign_hosts(tmp_path: Path) -> None:
    (tmp_path / "hook").mkdir()
    (tmp_path / "hook" / "sitecustomize.py").write_text(HOOK)
    log = tmp_path / "outgoing"
    more = {
        "LAMA_PUBLIC": "1",
        "PYTHONPATH": f"{tmp_path / 'hook'}:{clients.ROOT}",
        "OUTGOING": str(log),
        "STREAMLIT_SERVER_ADDRESS": "0.0.0.0",
    }
    record, seen = clients.Record(), Seen()
    with clients.running_app(tmp_path / "home", **more) as app:
        own, evil = f"localhost:{app.port}", f"evil.example:{app.port}"
        # Before any page is drawn.
        assert clients.handshake(f"ws://{own}", app.port, "http://evil.example") == 403
        assert clients.handshake("ws://evil.example", app.port, "http://evil.example") == 403
        assert clients.handshake(f"ws://{evil}", app.port, f"http://{evil}") == 403
        query = "text=Rome+is+the+capital+of+___.&models=minilm-mlm"
        asyncio.run(ask(app.url, "127.0.0.1", query, seen))
        for page in ("results", "data", "models"):
            asyncio.run(clients.Client(app, record, random.Random(1)).open(page))
        assert clients.handshake(f"ws://{own}", app.port, "http://evil.example") == 403
        assert clients.handshake(f"ws://{own}", app.port, f"http://{own}") == 101
    assert (len(seen.answered), seen.refused, record.faults) == (1, {}, [])
    assert not log.exists(), log.read_text()
