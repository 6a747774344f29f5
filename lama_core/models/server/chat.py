"""A chat model behind an OpenAI-compatible server; it generates text and ranks no candidates.

    POST /v1/chat/completions
    {"model": ..., "messages": [...], "max_tokens": n, "temperature": 0, "stop": [LINE BREAK]}

Answers are stored on disk under the digest of the request, so that a resumed or repeated run
doesn't send a request again. Log-probabilities are stored if the server returns them.
"""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lama_core.candidates.spelling import OpenVocabulary
from lama_core.downloads.retry import Patience
from lama_core.errors import UserError
from lama_core.files import read_file, write_text_atomically
from lama_core.models.protocols import Chat, GeneratedText, Kind, Message
from lama_core.models.server.addresses import check_gives_scores, read_address
from lama_core.models.server.completions import Completions, RequestRefused
from lama_core.paths import cache_dir

PATH = "/chat/completions"
ANSWER_BYTES = 1 << 20  # maximum size of a stored answer
LONGEST_TEXT = 20_000  # maximum number of characters of an answer; the rest is dropped
# The fields of a model's record that don't change between requests.
IDENTITY_FIELDS = ("id", "root", "owned_by")


class ChatModel:
    """A chat model behind a server. Several threads may use it at once.

    Attributes:
        identity: Digest of the address, the model's name and the server's record of the model;
            its weights can't be hashed.
    """

    kind: Kind = "causal"
    max_tokens = 1 << 20  # unknown: the server reports a text that is too long
    n_bytes = 0
    precision = "auto"  # the server chooses
    device = "server"

    def __init__(self, name: str, server: Completions, *, identity: str) -> None:
        self.name = name
        self.identity = identity
        self.vocabulary = OpenVocabulary()
        self.notes = (
            "Its weights are on a server and can't be hashed: runs identify it by the server's "
            "URL and the model's name.",
        )
        self._server = server
        self._takes_log_probs = True

    def generate(self, prompts: Sequence[str | Chat], max_tokens: int) -> list[GeneratedText]:
        """Return the server's answer to each prompt, up to the first line break.

        Raises:
            UserError: If a prompt is a plain text to continue, or the server's response isn't that
                of a chat server.
        """
        bodies = [self._body(prompt, max_tokens) for prompt in prompts]
        different = {json.dumps(body, sort_keys=True): body for body in bodies}
        found = self._server.at_once(self._answer, list(different.values()))
        answers = dict(zip(different, found, strict=True))
        return [answers[json.dumps(body, sort_keys=True)] for body in bodies]

    def n_waiting(self, prompts: Sequence[str | Chat], max_tokens: int) -> int:
        """Return how many different prompts have no stored answer yet."""
        bodies = (self._body(prompt, max_tokens) for prompt in prompts)
        return len({path for path in map(self._stored_at, bodies) if not path.is_file()})

    def encode(self, *_: object) -> None:
        """Refuse a query for scores, which a chat server doesn't give.

        Raises:
            UserError: Always.
        """
        check_gives_scores(self.name)

    encode_all = token_log_probs = encode

    def _body(self, prompt: str | Chat, max_tokens: int) -> dict[str, Any]:
        if isinstance(prompt, str):
            raise UserError(f"{self.name} is a chat server: ask without --plain.")
        return {
            "model": self._server.address.model,
            "messages": [_message(one) for one in prompt.messages],
            "max_tokens": max_tokens,
            "temperature": 0,
            "stop": ["\n"],
        }

    def _stored_at(self, body: Mapping[str, Any]) -> Path:
        content = json.dumps([self._server.address.url, body], sort_keys=True)
        digest = hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()
        return cache_dir() / "chats" / digest[:2] / f"{digest}.json"

    def _answer(self, body: Mapping[str, Any]) -> GeneratedText:
        """Return the stored answer to a request; if there is none, request and store it."""
        path = self._stored_at(body)
        if path.is_file():
            try:
                kept = json.loads(read_file(path, ANSWER_BYTES))
                return _text(kept["text"], kept["tokens"], kept["log_probs"])
            except (UserError, ValueError, TypeError, KeyError):
                path.unlink(missing_ok=True)  # damaged: requested again below
        text, tokens, log_probs = self._request(body)
        kept = {"text": text, "tokens": tokens, "log_probs": log_probs}
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text_atomically(path, json.dumps(kept, ensure_ascii=True))
        return _text(text, tokens, log_probs)

    def _request(self, body: Mapping[str, Any]) -> tuple[str, list[str], list[float | None]]:
        """Return the server's answer up to the first line break: text, tokens, log-probabilities.

        Tokens and log-probabilities are [] if the server returns none.
        """
        more: dict[str, Any] = {"logprobs": True} if self._takes_log_probs else {}
        try:
            answer = self._server.ask(PATH, {**body, **more})
        except RequestRefused as error:
            if not more or error.status not in (400, 422):
                raise
            answer = self._server.ask(PATH, body)
            self._takes_log_probs = False
        try:
            choice = answer["choices"][0]
            text = choice["message"]["content"] or ""
            if not isinstance(text, str):
                raise TypeError("the content isn't text")
            given = (choice.get("logprobs") or {}).get("content") or []
            tokens = [(str(one["token"]), float(one["logprob"])) for one in given]
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise UserError(
                f"The server {self._server.address.url} can't be used as a chat server: its "
                "response has an unexpected format."
            ) from error
        text = text[:LONGEST_TEXT].partition("\n")[0]
        kept, length = [], 0
        for token, log_prob in tokens:
            if length >= len(text):
                break
            length += len(token)
            kept.append((token, log_prob if math.isfinite(log_prob) else None))
        return text, [token for token, _ in kept], [value for _, value in kept]


def open_chat(reference: str, patience: Patience | None = None) -> ChatModel:
    """Return the chat model of a reference, such as `chat:http://127.0.0.1:8000#NAME`.

    Raises:
        UserError: If the server can't be reached or has no such model.
    """
    address = read_address(reference)
    server = Completions(address, patience)
    record = server.describe()
    identity = f"chat:{server.digest_of(record, IDENTITY_FIELDS)}"
    return ChatModel(address.reference, server, identity=identity)


def _message(one: Message) -> dict[str, str]:
    return {"role": one.role, "content": one.text}


def _text(text: str, tokens: Sequence[str], log_probs: Sequence[float | None]) -> GeneratedText:
    """Return an answer; if its log-probabilities are unknown, they are a single NaN."""
    values = [math.nan if value is None else value for value in log_probs] or [math.nan]
    return GeneratedText(text, tuple(tokens), np.array(values, np.float32))
