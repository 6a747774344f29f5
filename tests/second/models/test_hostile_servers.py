"""Servers that are slow, broken or hostile: each fault is one sentence with the server's words."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from socket import create_server, socket
from typing import Any

import pytest
from completions_server import NAME, QUICK, Choice, Server, choice, opened_chat

from lama_core.downloads.retry import Patience
from lama_core.errors import UserError
from lama_core.models.protocols import Chat, Message
from lama_core.models.server import completions
from lama_core.models.server.chat import ChatModel
from lama_core.progress import Progress, reporting

QUESTION = [Chat((Message("user", "What is the capital of France?"),))]
pytestmark = pytest.mark.usefixtures("home")


TOOL = {"function": {"name": "search", "arguments": '{"query": "capital"}'}}
ERRORS: dict[str, tuple[bytes, str]] = {
    "LM Studio's": (
        b'{"error": "Unexpected endpoint. Returning 200 anyway"}',
        "with an error: Unexpected endpoint. Returning 200 anyway.",
    ),
    "vLLM's": (
        b'{"object": "error", "message": "no such model", "code": 404}',
        "with an error: no such model.",
    ),
    "FastAPI's": (b'{"detail": "Not found here"}', "with an error: Not found"),
    "a busy provider's": (
        b'{"choices": null, "error": {"code": 429, "message": "provider failed"}}',
        r"doesn't answer \(it answered 200: provider failed, 3 times\)",
    ),
    "Latin-1": ('{"error": "Modèle inconnu"}'.encode("latin-1"), "not JSON in UTF-8: .*Modèle inc"),
    "a stream": (b'data: {"choices": []}\n\ndata: [DONE]', r'not JSON in UTF-8: data: \{"choices"'),
    "no choice": (b'{"choices": []}', r'unexpected format: \{"choices": \[\]\}'),
    "a number": (b"1" * 5000, "not JSON in UTF-8: 1111"),
    "an escape": (b'{"error": "\\u001b[31mred"}', r"with an error: \[31mred."),
}


@pytest.mark.parametrize("name", ERRORS)
def test_a_fault_is_one_sentence_with_the_servers_words(stack: ExitStack, name: str) -> None:
    server = Server()
    model = opened_chat(stack, server)
    server.body, expected = ERRORS[name]
    model._record = lambda: ""  # type: ignore[method-assign] # asked for before the fault
    with pytest.raises(UserError, match=expected) as error:
        model.generate(QUESTION, 7)
    assert str(error.value).isprintable() and len(str(error.value)) < 400


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (choice(None, "tool_calls", tool_calls=[TOOL]), 'a tool, search {"query": "capital"}'),
        (lambda _: {"error": {"message": "out of credit"}}, "gave no answer: out of credit."),
    ],
)
def test_a_choice_without_a_text_is_explained(
    stack: ExitStack, given: Choice, expected: str
) -> None:
    model = opened_chat(stack, Server(chats={"": given}))
    with pytest.raises(UserError) as error:
        model.generate(QUESTION, 7)
    assert expected in str(error.value)


def answer_of(address: str, patience: Patience = QUICK) -> Any:
    server = completions.Completions(completions.ServerAddress(f"http://{address}", NAME), patience)
    model = ChatModel("m", server, identity="m")
    model._record = lambda: ""  # type: ignore[method-assign]
    return model.generate(QUESTION, 7)[0]


@contextmanager
def raw_server(answer: Callable[[socket], object]) -> Iterator[str]:
    """Answer each connection with bytes, while the block runs."""
    listening = create_server(("127.0.0.1", 0))

    def serve_all() -> None:
        while True:
            try:
                client, _ = listening.accept()
                with client:
                    client.recv(1 << 16)
                    answer(client)
            except OSError:
                if listening.fileno() < 0:
                    return

    thread = threading.Thread(target=serve_all, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{listening.getsockname()[1]}"
    finally:
        listening.close()


@pytest.mark.parametrize("head", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n"])
def test_a_whole_answer_has_a_time_limit(head: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()

    def drip(client: socket) -> None:
        client.sendall(head)
        while not over.wait(0.02):
            client.sendall(b"x")

    monkeypatch.setattr(completions, "SHOWN_AFTER", 0.05)
    steps: list[Progress] = []
    patience = Patience(connect=5, read=20, whole=0.3, attempts=2, pause=0.01)
    began = time.monotonic()
    with (
        raw_server(drip) as address,
        reporting(steps.append),
        pytest.raises(UserError, match=r"hasn't finished its answer after 0.3 seconds: try again"),
    ):
        answer_of(address, patience)
    over.set()
    assert time.monotonic() - began < 15
    assert [step.stage for step in steps] == [
        f"Waiting for http://{address} to answer ({NAME}), at most 0.3 seconds"
    ]
