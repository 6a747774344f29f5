"""Models behind a server, by reference: `server:URL#model`."""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from lama_core.errors import UserError

SERVER, CHAT = "server:", "chat:"
MAX_LENGTH = 500
EXAMPLE = "server:http://127.0.0.1:8000#NAME"


@dataclass(frozen=True, slots=True)
class Address:
    """Where a model is asked. url: what stands before `/v1`. model: as the server names it.

    scheme: `server:` for completions with log-probabilities, `chat:` for a chat server.
    """

    url: str
    model: str
    scheme: str = SERVER

    @property
    def reference(self) -> str:
        """The one way in which it is written."""
        return f"{self.scheme}{self.url}#{self.model}"


def is_server(reference: str) -> bool:
    """Whether a model's name means one behind a server."""
    return reference.startswith((SERVER, CHAT))


def is_chat(reference: str) -> bool:
    """Return whether a reference means a chat server."""
    return reference.startswith(CHAT)


def read_address(reference: str) -> Address:
    """The address that a reference means. Raises UserError, saying how it is written, for others.

    A `/v1` at the end of the URL is understood and left out.
    """
    scheme = CHAT if is_chat(reference) else SERVER
    said, _, model = reference.removeprefix(scheme).partition("#")
    shown = re.sub(r"//[^/#@]*@|\?[^#]*", "…", reference)[:80]  # a key may stand there
    try:
        url = urlsplit(said.strip())
        port = url.port
    except ValueError as error:
        raise UserError(f"{shown!r} holds no address: write {EXAMPLE}.") from error
    if url.scheme not in ("http", "https") or not url.hostname or not said.isprintable():
        raise UserError(f"{shown!r} holds no address: write {EXAMPLE}.")
    if url.username is not None or url.password is not None:
        raise UserError("A server's key stands in LAMA_SERVER_KEY, and not in its address.")
    if url.query or len(reference) > MAX_LENGTH or port == 0:
        raise UserError(f"{shown!r} holds more than an address: write {EXAMPLE}.")
    if not model.strip() or not model.isprintable():
        raise UserError(
            f"{shown!r} names no model: write it behind a #, as {EXAMPLE}; the server lists its "
            "models at /v1/models."
        )
    host = f"[{url.hostname}]" if ":" in url.hostname else url.hostname
    path = re.sub(r"(/v1)?/*$", "", url.path)
    return Address(
        f"{url.scheme}://{host}{f':{port}' if port else ''}{path}", model.strip(), scheme
    )
