"""References to models behind a server: `server:URL#model` and `chat:URL#model`."""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from lama_core.errors import UserError

SERVER, CHAT = "server:", "chat:"
MAX_LENGTH = 500
EXAMPLE = "server:http://127.0.0.1:8000#NAME"
# The end of a path that isn't part of a server's address, as when a whole endpoint is pasted.
ENDPOINT = re.compile(r"(/v1)?(/(chat/)?completions|/models|/responses|/embeddings)?/*$")


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """The address of a served model. url: without `/v1`. model: its name on the server.

    scheme: `server:` for completions with log-probabilities, `chat:` for a chat server.
    """

    url: str
    model: str
    scheme: str = SERVER

    @property
    def reference(self) -> str:
        """The address as a reference, such as `server:URL#model`."""
        return f"{self.scheme}{self.url}#{self.model}"


def is_server(reference: str) -> bool:
    """Whether a reference names a model behind a server."""
    return reference.startswith((SERVER, CHAT))


def is_chat(reference: str) -> bool:
    """Whether a reference names a chat server."""
    return reference.startswith(CHAT)


def check_gives_scores(reference: str) -> None:
    """Raise UserError if a reference names a chat server, which gives no scores."""
    if is_chat(reference):
        raise UserError(
            f"{reference} is a chat server, which generates text and gives no scores: use ask, "
            "generate or batch, or in the app the tabs Question and Several."
        )


def read_address(reference: str) -> ServerAddress:
    """Return the address that a reference names, without `/v1` or an endpoint at its end.

    Raises:
        UserError: If the reference isn't a valid server address; the message shows the format.
    """
    scheme = CHAT if is_chat(reference) else SERVER
    given, _, model = reference.removeprefix(scheme).partition("#")
    shown = re.sub(r"//[^/#@]*@|\?[^#]*", "…", reference)[:80]  # may contain a key
    try:
        url = urlsplit(given.strip())
        port = url.port
    except ValueError as error:
        raise UserError(f"Not a server address: {shown!r}. Write {EXAMPLE}.") from error
    if url.scheme not in ("http", "https") or not url.hostname or not given.isprintable():
        raise UserError(f"Not a server address: {shown!r}. Write {EXAMPLE}.")
    if url.username is not None or url.password is not None:
        raise UserError("Remove the key from the server's address and set LAMA_SERVER_KEY instead.")
    if url.query or len(reference) > MAX_LENGTH or port == 0:
        raise UserError(
            f"Server address {shown!r} is too long, or has a query string or port 0. Write "
            f"{EXAMPLE}."
        )
    if not model.strip() or not model.isprintable():
        raise UserError(
            f"No model name in {shown!r}: add it after a #, as in {EXAMPLE}. The server lists its "
            "models at /v1/models."
        )
    host = f"[{url.hostname}]" if ":" in url.hostname else url.hostname
    path = ENDPOINT.sub("", url.path)
    return ServerAddress(
        f"{url.scheme}://{host}{f':{port}' if port else ''}{path}", model.strip(), scheme
    )
