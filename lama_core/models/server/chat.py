"""A chat model behind an OpenAI-compatible server; it generates text and ranks no candidates.

    POST /v1/chat/completions
    {"model": ..., "messages": [...], "max_tokens": n, "temperature": 0}

The answer is the first line with text, after any reasoning (`models.answers`). A model that reasons
gets `REASONING_TOKENS` more, because its reasoning counts as tokens of the text.

Answers are stored on disk under the digest of the request and of the server's record of the model,
so that a resumed or repeated run doesn't send a request again, and another model under the same
name does. Log-probabilities are stored if the server returns them.
"""

import datetime
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lama_core.downloads.retry import Patience
from lama_core.errors import TextRefusedError, UserError
from lama_core.files import read_file, write_text_atomically
from lama_core.models.answers import FoundAnswer, find_answer
from lama_core.models.devices import map_distinct
from lama_core.models.protocols import Chat, Ending, GeneratedText
from lama_core.models.server.addresses import check_gives_scores, read_address
from lama_core.models.server.completions import (
    BROKEN,
    SURROGATE,
    UNREADABLE,
    Completions,
    RequestRefused,
    message_of,
)
from lama_core.models.server.served import ServedModel
from lama_core.paths import cache_dir

LONGEST_TEXT = 20_000  # maximum number of characters of an answer; the rest is dropped
REASONING_TOKENS = 4096
# The fields of a model's record that don't change between requests.
IDENTITY_FIELDS = ("id", "root", "owned_by", "digest", "revision", "sha", "meta")
# The fields of a message with reasoning, of vLLM, SGLang, llama-server, DeepSeek, OpenRouter etc.
REASONING_FIELDS = ("reasoning_content", "reasoning", "thinking", "reasoning_details")


class ChatModel(ServedModel):
    """A model that answers chats."""

    def __init__(self, name: str, server: Completions, *, identity: str) -> None:
        super().__init__(name, server, identity=identity)
        self.notes = (
            "Its weights are on a server and can't be hashed: runs identify it by the server's "
            "URL, the model's name and the server's record of it.",
        )
        # What is sent besides the messages; a field that the server refuses is omitted.
        self._fields = {"temperature": 0, "logprobs": True}
        self._limit = "max_tokens"
        self._n_more = 0  # tokens for reasoning
        self._tried_reasoning = False

    def generate(
        self, prompts: Sequence[str | Chat], max_tokens: int, *, again: bool = False
    ) -> list[GeneratedText]:
        """Return the server's answer to each prompt: one line, without reasoning.

        Args:
            prompts: Chats.
            max_tokens: Maximum tokens of an answer, without reasoning.
            again: Whether to ask the server even if an answer is stored.

        Raises:
            TextRefusedError: If the server refuses the text of a prompt.
            UserError: If a prompt is a plain text to continue, or the server's response isn't that
                of a chat server.
        """
        asked = self._asked(prompts, max_tokens)
        bodies = dict(asked)
        return map_distinct(
            lambda paths: self._server.at_once(
                lambda path: self._answer(path, bodies[path], again), paths
            ),
            [path for path, _ in asked],
        )

    def n_waiting(self, prompts: Sequence[str | Chat], max_tokens: int) -> int:
        """Return how many different prompts have no stored answer yet."""
        paths = {path for path, _ in self._asked(prompts, max_tokens)}
        return sum(not path.is_file() for path in paths)

    def encode(self, *_: object, **__: object) -> None:
        """Refuse a query for scores, which a chat server doesn't give.

        Raises:
            UserError: Always.
        """
        check_gives_scores(self.name)

    encode_all = token_log_probs = scores_first = encode

    def _record(self) -> str:
        """Return a digest of the server's present record of the model, with its date if it has one.

        The date isn't part of the model's identity, because some servers give the time at which
        they were started: then answers are asked for again, but a run can be resumed.
        """
        return self._server.digest_of(
            self._server.describe(), (*IDENTITY_FIELDS, "created", "modified_at")
        )

    def _asked(
        self, prompts: Sequence[str | Chat], max_tokens: int
    ) -> list[tuple[Path, dict[str, Any]]]:
        """Return where each answer is stored, and the part of the request that counts.

        The place depends on `_record`, too.
        """
        url, model, record = self._server.address.url, self._server.address.model, self._record()
        asked = []
        for prompt in prompts:
            if isinstance(prompt, str):
                raise UserError(f"{self.name} is a chat server: ask without --plain.")
            body = {"model": model, "messages": prompt.sent(), "max_tokens": max_tokens}
            content = json.dumps([url, record, body], sort_keys=True)
            digest = hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()
            asked.append((cache_dir() / "chats" / digest[:2] / f"{digest}.json", body))
        return asked

    def _answer(self, path: Path, body: Mapping[str, Any], again: bool) -> GeneratedText:
        """Return the stored answer to a request; if there is none, request and store it."""
        if path.is_file() and not again:
            try:
                stored = json.loads(read_file(path, 1 << 20))
                tokens, log_probs = tuple(stored.pop("tokens")), _log_probs(stored.pop("log_probs"))
                text, found = stored["text"], find_answer(stored["text"])
                if text[found.start : found.end] == text:  # else another version found another one
                    return GeneratedText(
                        tokens=tokens, log_probs=log_probs, **stored, is_stored=True
                    )
            except (UserError, ValueError, TypeError, LookupError, AttributeError):
                path.unlink(missing_ok=True)  # damaged
        answer = self._ask(body)
        values = [value if math.isfinite(value) else None for value in answer.log_probs.tolist()]
        kept = {
            name: getattr(answer, name) for name in ("text", "tokens", "ending", "made", "mark")
        }
        write_text_atomically(path, json.dumps({**kept, "log_probs": values}))
        return answer

    def _ask(self, body: Mapping[str, Any]) -> GeneratedText:
        """Return the server's answer; one whose reasoning is cut is asked for with more tokens.

        If the first answer that is cut shows no reasoning, it is asked for with more tokens, too:
        some chat templates open the reasoning themselves, so only its end shows it.
        """
        if self._n_more and (found := self._longer(body)):
            return found[0]
        answer, has_reasoning, is_cut = self._request(body, 0)
        is_done = answer.ending == "whole" if has_reasoning else self._tried_reasoning
        if not is_cut or is_done:
            return answer
        self._tried_reasoning = True
        longer = self._longer(body)
        if longer is None or not longer[1]:
            return answer
        self._n_more = REASONING_TOKENS
        return longer[0]

    def _longer(self, body: Mapping[str, Any]) -> tuple[GeneratedText, bool, bool] | None:
        """Return `_request` with tokens for reasoning; None if these don't fit the server."""
        try:
            return self._request(body, REASONING_TOKENS)
        except (TextRefusedError, RequestRefused):
            return None

    def _request(self, body: Mapping[str, Any], n_more: int) -> tuple[GeneratedText, bool, bool]:
        """Return the server's answer, whether it reasoned, and whether it used all tokens.

        n_more: Tokens for reasoning.
        """
        answer = self._post(body, n_more)
        try:
            choice = answer["choices"][0]
            message = choice.get("message")
            if message is None and choice.get("error"):
                said = message_of(json.dumps(choice, ensure_ascii=False).encode(errors="replace"))
                raise UserError(f"The server {self._server.address.url} gave no answer: {said}.")
            text, has_reasoning = _content(message)
            usage = answer.get("usage") or {}
            used = (usage.get("completion_tokens_details") or {}).get("reasoning_tokens")
            reason = choice.get("finish_reason")
            calls = message.get("tool_calls") or [{"function": message.get("function_call")}]
            called = calls[0].get("function") or {}
            # The tool that it calls, with its arguments.
            words = f"{called.get('name', '')} {called.get('arguments', '')}".split()
            call = "".join(char if char.isprintable() else " " for char in " ".join(words))[:100]
        except UNREADABLE as error:
            raise UserError(self._server.unreadable("as a chat server", answer)) from error
        if call and not text.strip():
            raise TextRefusedError(
                f"it answered with a call of a tool, {call}, instead of a text",
                "start the server without tools, or choose another model",
            )
        tokens: list[tuple[str, float]] = []
        with suppress(*UNREADABLE):
            tokens = [
                (SURROGATE.sub(BROKEN, str(one["token"])), float(one["logprob"]))
                for one in (choice.get("logprobs") or {}).get("content") or []
            ]
        if reason == "content_filter" and not text.strip():
            raise TextRefusedError("its content filter stopped the answer")
        # Every word is at least one token; a server that counts fewer read only a part of the
        # prompt, because it cuts it to its context, as Ollama does.
        counted = usage.get("prompt_tokens")
        n_words = sum(len(one["content"].split()) for one in body["messages"])
        if isinstance(counted, int) and 0 < counted < n_words:
            raise TextRefusedError(f"it read only {counted:,} tokens of {n_words:,} words")
        text = text[: LONGEST_TEXT + 8 * n_more]
        found = find_answer(text)
        has_reasoning = has_reasoning or found.has_reasoning or bool(used)
        shown = text[found.start : found.end][:LONGEST_TEXT]
        ending: Ending = "cut" if reason == "length" and not found.is_whole else "whole"
        if found.in_reasoning or (has_reasoning and not shown.strip()):
            ending = "in reasoning"
        kept = _tokens_of(tokens, text, replace(found, end=found.start + len(shown)))
        answered = GeneratedText(
            shown,
            tuple(token for token, _ in kept),
            _log_probs([value if math.isfinite(value) else None for _, value in kept]),
            ending=ending,
            mark=found.mark,
            made=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M"),
        )
        return answered, has_reasoning, reason == "length"

    def _post(self, body: Mapping[str, Any], n_more: int) -> dict[str, Any]:
        """Return the server's response; omit or rename the fields that it refuses."""
        while True:
            limit, fields = self._limit, dict(self._fields)
            sent = {name: part for name, part in body.items() if name != "max_tokens"}
            try:
                sent |= {limit: body["max_tokens"] + n_more, **fields}
                return self._server.ask("/chat/completions", sent)
            except RequestRefused as error:
                if error.status not in (400, 422):
                    raise
                said = str(error)
                if limit == "max_tokens" and "max_completion_tokens" in said:
                    self._limit = "max_completion_tokens"
                elif "temperature" in fields and "temperature" in said:
                    self._fields.pop("temperature", None)
                elif "logprobs" in fields:
                    self._fields.pop("logprobs", None)
                else:
                    raise


def open_chat(reference: str, patience: Patience | None = None) -> ChatModel:
    """Return the chat model of a reference, such as `chat:http://127.0.0.1:8000#NAME`.

    Raises:
        UserError: If the server can't be reached or has no such model.
    """
    address = read_address(reference)
    server = Completions(address, patience)
    identity = f"chat:{server.digest_of(server.describe(), IDENTITY_FIELDS)}"
    return ChatModel(address.reference, server, identity=identity)


def _log_probs(values: Sequence[float | None]) -> NDArray[np.float32]:
    """Return log-probabilities, float32 [token]; a single NaN if the server returned none."""
    return np.array(values or [None], np.float32)  # None becomes NaN


def _content(message: Mapping[str, Any]) -> tuple[str, bool]:
    """Return the text of a message, and whether it has reasoning apart from the text.

    The content is a text, a list of parts, or null, as when a model only reasoned or refused.
    """
    content = message.get("content")
    has_reasoning = any(message.get(name) for name in REASONING_FIELDS)
    if isinstance(content, list):
        parts = [one if isinstance(one, dict) else {"type": "text", "text": one} for one in content]
        texts = [one["text"] for one in parts if str(one.get("type")).endswith("text")]
        has_reasoning = has_reasoning or len(texts) < len(parts)
        content = "".join(texts)
    if content is None:
        content = message.get("refusal") or ""
    if not isinstance(content, str):
        raise TypeError("the content isn't text")
    return SURROGATE.sub(BROKEN, content), has_reasoning


def _tokens_of(
    tokens: Sequence[tuple[str, float]], text: str, found: FoundAnswer
) -> list[tuple[str, float]]:
    """Return the tokens of the answer in a text; [] if it isn't known which ones these are.

    Some servers also return the tokens of reasoning that isn't part of the text.
    """
    at = "".join(token for token, _ in tokens).rfind(text) if text else 0
    if at < 0 and found.start:
        return []
    start, end = max(at, 0) + found.start, max(at, 0) + found.end
    kept, place = [], 0
    for token, value in tokens:
        if place < end and place + len(token) > start:
            kept.append((token, value))
        place += len(token)
    return kept
