"""A server of completions on this machine, with a tiny causal model behind it and faults on demand.

It answers `/v1/completions` as vLLM does, or with the quirks of other servers, from a plain pass
through the model that a test can repeat: so numbers can be compared with it exactly.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from local_http import SilentHandler, serving
from tiny_models import make_model

from lama_core.downloads.retry import Patience
from lama_core.models.server.chat import ChatModel, open_chat

NAME = "tiny"
QUICK = Patience(connect=5, read=20, whole=60, attempts=3, pause=0.01)
Choice = Callable[[dict[str, Any]], dict[str, Any]]


@dataclass
class Server:
    """What the server does.

    family: of `tiny_models`. models: the names that it says it has. key: that it asks for.
    max_list: the longest list that it gives; more is refused with 400.
    shift: sets what belongs to a token one place too early, as llama-cpp-python does. wrong: adds
    this to the log-probabilities of prompts. no_prompt: gives those of the new token only.
    no_logprobs: gives none at all. page: answers with a web page.
    status: answers so many requests with this status, `n_faults` of them. dies_after: requests that
    are answered before the connection breaks, for good. moved: sends on to this address.
    seconds: that it waits before each answer. body: answers with this, whatever it is asked.
    says: further words about the model. chats: words of a question -> the chat's answer to it:
    its text, or made of the request, a choice. lacks: fields that chats are refused with, and why.
    counts: the tokens of a chat's prompt that it says it read.
    form: of the answers to completions: vLLM's, or that of another server. prefix: what stands
    before the paths. refused: texts with these words are refused, with the status and error
    `refusal`.
    """

    family: str = "smollm2"
    models: tuple[str, ...] = (NAME,)
    key: str = ""
    max_list: int = 2000
    shift: bool = False
    wrong: float = 0.0
    no_prompt: bool = False
    no_logprobs: bool = False
    page: bool = False
    status: int = 0
    n_faults: int = 0
    dies_after: int = 1 << 30
    moved: str = ""
    seconds: float = 0.0
    body: bytes = b""
    says: dict[str, Any] = field(default_factory=dict)
    chats: dict[str, str | Callable[[dict[str, Any]], dict[str, Any]]] = field(default_factory=dict)
    lacks: dict[str, str] = field(default_factory=dict)
    counts: int = 0
    form: str = "vllm"
    prefix: str = "/v1"
    refused: str = ""
    refusal: tuple[int, Any] = (400, {})
    address: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def reference(self) -> str:
        return f"server:{self.address}#{NAME}"

    @cached_property
    def model(self) -> tuple[Any, Any]:
        return make_model(self.family)

    def complete(self, body: dict[str, Any]) -> dict[str, Any]:
        model, tokenizer = self.model
        plain = tokenizer(body["prompt"], add_special_tokens=False)["input_ids"]
        ids = tokenizer(body["prompt"])["input_ids"]
        ids = ids[: len(ids) - len(plain)] + plain
        with torch.inference_mode(), self.lock:
            log_probs = model(torch.tensor([ids])).logits[0].log_softmax(-1)
        best = int(log_probs[-1, : len(tokenizer)].argmax())
        n = body["logprobs"]
        rows: list[tuple[int, Any]] = []  # a token, and the distribution that stands at it
        if body["echo"]:
            before = [None, *(log_probs[:-1] + self.wrong)]
            after = [None, *log_probs[1:]]
            rows = list(zip(ids, after if self.shift else before, strict=True))
        if not self.shift or not body["echo"]:
            rows.append((best, log_probs[-1]))
        if self.no_prompt:
            rows = rows[-1:]
        part = None
        if not self.no_logprobs:
            part = {
                "tokens": [self.text(token) for token, _ in rows],
                "token_logprobs": [None if row is None else float(row[one]) for one, row in rows],
                "top_logprobs": [None if row is None else self.list(row, one, n)
                                 for one, row in rows],
            }  # fmt: skip
        text = (body["prompt"] if body["echo"] else "") + self.text(best)
        usage = {"prompt_tokens": len(ids), "completion_tokens": 1}
        choice: dict[str, Any] = {"text": text, "index": 0, "finish_reason": "length"}
        if self.form == "llama-server":  # of the new token only, in the form of chats
            listed = [{"token": one, "logprob": value}
                      for one, value in self.list(log_probs[-1], best, n).items()]  # fmt: skip
            first = {**listed[0], "bytes": [], "top_logprobs": listed}
            choice["logprobs"] = {"content": [first]}
        elif self.form != "ollama":
            choice["logprobs"] = part
        return {"choices": [choice], "usage": usage}

    def chat(self, body: dict[str, Any]) -> dict[str, Any]:
        """A chat's answer: that of the first words of `chats` in the last message, else `Paris`."""
        question = body["messages"][-1]["content"]
        text = next((text for words, text in self.chats.items() if words in question), "Paris")
        if callable(text):
            choice = text(body)
        else:
            choice = {"message": {"role": "assistant", "content": text}}
            choice["finish_reason"] = "stop"
        if isinstance(text, str) and body.get("logprobs"):
            tokens = [{"token": one, "logprob": -0.5} for one in text]
            choice["logprobs"] = {"content": tokens}
        return {"choices": [choice], "usage": {"prompt_tokens": self.counts}}

    def list(self, row: Any, token: int, n: int) -> dict[str, float]:
        n = min(n, self.max_list, len(self.model[1]))
        values, ids = row[: len(self.model[1])].topk(n)
        found = {self.text(one): value for one, value in zip(ids.tolist(), values.tolist(),
                                                             strict=True)}  # fmt: skip
        return found | {self.text(token): float(row[token])}

    def text(self, token: int) -> str:
        """A token as a server writes it: SentencePiece's as it is, else its bytes where whole."""
        tokenizer = self.model[1]
        if self.family == "llama":
            return str(tokenizer.convert_ids_to_tokens(token))
        return str(tokenizer.decode([token])).replace("�", "")


class _Handler(SilentHandler):
    server_of: Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        server = self.server_of
        if self._is_faulty():
            return
        if self.path != f"{server.prefix}/models":
            self._send(404, b"{}")
            return
        records = [{"id": one, "object": "model", **server.says} for one in server.models]
        self._send(200, json.dumps({"object": "list", "data": records}).encode())

    def do_POST(self) -> None:
        server = self.server_of
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with server.lock:
            server.asked.append(body)
            server.at_once += 1
            server.most_at_once = max(server.most_at_once, server.at_once)
        time.sleep(server.seconds)
        try:
            if self._is_faulty():
                return
            if not self.path.startswith(server.prefix + "/c"):
                self._send(404, b"{}")
                return
            if server.refused and server.refused in json.dumps(body):
                status, said = server.refusal
                data = said if isinstance(said, bytes) else json.dumps(said).encode()
                self._send(status, data)
                return
            if self.path.endswith("/chat/completions"):
                lacks = {"logprobs": "are not supported"} if server.no_logprobs else server.lacks
                for name in lacks.keys() & body.keys():
                    said = {"error": {"message": f"{name} {lacks[name]}", "param": name}}
                    self._send(400, json.dumps(said).encode())
                    return
                self._send(200, json.dumps(server.chat(body)).encode())
                return
            if body["logprobs"] > server.max_list:
                said = {"error": {"message": f"at most {server.max_list} logprobs"}}
                self._send(400, json.dumps(said).encode())
                return
            self._send(200, json.dumps(server.complete(body)).encode())
        finally:
            with server.lock:
                server.at_once -= 1

    def _is_faulty(self) -> bool:
        server = self.server_of
        key = self.headers.get("Authorization", "")
        server.keys.append(key)
        if len(server.asked) > server.dies_after:
            self.close_connection = True
            return True
        if server.key and key != f"Bearer {server.key}":
            self._send(401, json.dumps({"error": {"message": f"bad key {key}"}}).encode())
        elif server.n_faults > 0 and server.status:
            server.n_faults -= 1
            said = json.dumps({"error": {"message": f"no place for {key}"}}).encode()
            self._send(server.status, said)
        elif server.moved:
            self._send(302, b"", {"Location": server.moved})
        elif server.page:
            self._send(200, b"<!DOCTYPE html><html><body>Welcome</body></html>")
        elif server.body:
            self._send(200, server.body)
        else:
            return False
        return True

    def _send(self, status: int, data: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)


@contextmanager
def serve(server: Server) -> Iterator[Server]:
    with serving(_Handler, server_of=server) as server.address:
        yield server


def opened_chat(stack: ExitStack, server: Server) -> ChatModel:
    """The chat of a server that is started, until the stack ends."""
    stack.enter_context(serve(server))
    return open_chat(f"chat:{server.address}#{NAME}", QUICK)


def choice(content: Any, ending: str = "stop", **fields: Any) -> Choice:
    """A choice with this content and these fields of its message."""
    return lambda _: {"message": {"content": content, **fields}, "finish_reason": ending}
