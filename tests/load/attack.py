"""One address tries to lock everyone else out of a public app; another visitor asks meanwhile.

    python tests/load/attack.py --seconds 60
    python tests/load/attack.py --seconds 60 --nginx             # through nginx (deploy/nginx.conf)
    python tests/load/attack.py --seconds 60 --url URL           # an app that runs already
    python tests/load/attack.py --seconds 60 --checkout FOLDER   # another version

The attacker opens connections from 127.0.0.2. Each asks a causal model about two blanks, with 1,000
rescored words among its whole vocabulary, again and again. The visitor asks short questions from
127.0.0.3. Prints how many of the visitor's questions were answered, and how long they took.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from load.clients import Drawn, running_app  # noqa: E402
from load.proxy import NAME, running_nginx, unverified  # noqa: E402

ATTACKER, VISITOR = "127.0.0.2", "127.0.0.3"
CONNECTIONS = 72
LOST_SECONDS = 150.0
PAUSE_SECONDS = 2.0


@dataclass
class Seen:
    """What one address saw: seconds until each answer, and how often each refusal."""

    answered: list[float] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        """How many were answered and how fast, and the refusals."""
        n = len(self.answered) + self.refused.total()
        said = f"{len(self.answered)} of {n} questions answered"
        if self.answered:
            half, most = np.percentile(self.answered, [50, 100])
            said += f", p50 {half:.1f} s, slowest {most:.1f} s"
        return said + "".join(f"\n    {n} refused: {why}" for why, n in self.refused.items())


async def ask(url: str, address: str, query: str, seen: Seen) -> None:
    """Ask one question from an address, in a session of its own."""
    start = time.monotonic()
    request = BackMsg()
    request.rerun_script.query_string = query
    request.rerun_script.context_info.url = url
    drawn = Drawn()
    try:
        async with (
            asyncio.timeout(LOST_SECONDS),
            connect(
                url.replace("http", "ws") + "/_stcore/stream",
                host="127.0.0.1",
                ssl=unverified() if url.startswith("https") else None,
                origin=url,  # type: ignore[arg-type]  # a NewType of str
                subprotocols=["streamlit"],  # type: ignore[list-item]
                max_size=None,
                open_timeout=LOST_SECONDS,
                ping_interval=None,
                local_addr=(address, 0),
            ) as connection,
        ):
            await connection.send(request.SerializeToString())
            while not drawn.finished:
                message = ForwardMsg()
                message.ParseFromString(await connection.recv(decode=False))
                drawn.take(message)
    except (WebSocketException, OSError) as error:  # TimeoutError is an OSError
        drawn.faults.append(f"{type(error).__name__}: {error}")
    if drawn.faults:
        seen.refused[drawn.faults[0][:90]] += 1
        await asyncio.sleep(PAUSE_SECONDS)
    else:
        seen.answered.append(time.monotonic() - start)


def expensive(number: int) -> str:
    """A question that costs a causal model as much as the limits allow."""
    return urlencode(
        {
            "text": f"The {number}th ___ of the kingdom of France was called ___ by its people.",
            "models": "smollm2-135m",
            "context": "both",
            "candidates": "full",
            "rescored": "1000",
        }
    )


async def attack(url: str, seconds: float, n_connections: int) -> tuple[Seen, Seen]:
    """Attack for so long; return what the visitor and the attacker saw."""
    visitor, attacker = Seen(), Seen()
    for model in ("minilm-mlm", "smollm2-135m"):  # loaded before the attack
        query = urlencode({"text": "Rome is the capital of ___.", "models": model})
        await ask(url, VISITOR, query, Seen())
    until = time.monotonic() + seconds

    async def ask_always(first: int) -> None:
        number = first
        while True:
            await ask(url, ATTACKER, expensive(number), attacker)
            number += n_connections

    async def visit() -> None:
        number = 0
        await asyncio.sleep(seconds / 6)
        while time.monotonic() < until:
            text = f"Visitor {number} lives in the capital of France, which is ___."
            query = urlencode({"text": text, "models": "minilm-mlm"})
            await ask(url, VISITOR, query, visitor)
            number += 1
            await asyncio.sleep(PAUSE_SECONDS)

    attacking = [asyncio.create_task(ask_always(number)) for number in range(n_connections)]
    await visit()
    for task in attacking:
        task.cancel()
    with suppress(asyncio.CancelledError):
        await asyncio.gather(*attacking)
    return visitor, attacker


def main() -> None:
    """Attack an app, or a URL, and print what came of it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--connections", type=int, default=CONNECTIONS)
    parser.add_argument("--url", default="", help="An app that runs already.")
    parser.add_argument("--nginx", action="store_true", help="Put nginx in front of the app.")
    parser.add_argument("--checkout", type=Path, default=ROOT, help="The version to attack.")
    given = parser.parse_args()
    with ExitStack() as stack:
        url = given.url
        if not url:
            place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            more = {"LAMA_PUBLIC": "1", "PYTHONPATH": str(given.checkout)}
            if given.nginx:
                more["STREAMLIT_SERVER_ALLOWED_HOSTS"] = NAME
            app = running_app(place / "home", root=given.checkout, **more)
            url = stack.enter_context(app).url
        if given.nginx:
            (place / "nginx").mkdir()
            port = stack.enter_context(running_nginx(place / "nginx", url))
            url = f"https://{NAME}:{port}"
        visitor, attacker = asyncio.run(attack(url, given.seconds, given.connections))
    print(f"visitor: {visitor}\nattacker: {attacker}")


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    main()
