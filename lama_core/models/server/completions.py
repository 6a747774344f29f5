"""A server's completions, by the interface that OpenAI began: asked, tried again, read, checked.

    POST /v1/completions {"prompt": ..., "max_tokens": 1, "logprobs": k, "echo": true}

With `echo` the answer holds the prompt's own tokens, each with its log-probability and the k
likeliest tokens in its place. What a server sends is believed in nothing: neither in its length nor
in its form.
"""

import json
import math
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import requests
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase

from lama_core.downloads.retry import Patience, TryAgain, passing_faults, retried
from lama_core.errors import UserError
from lama_core.models.server.addresses import Address

KEY = "LAMA_SERVER_KEY"
THREADS = "LAMA_SERVER_THREADS"
N_THREADS = 4
MAX_THREADS = 64
MAX_BYTES = 1 << 28  # 30 tokens with a list of 150,000 each
CHUNK = 1 << 16
LONGEST_WAIT = 30.0
SPACE = "▁"  # in the tokens of servers that send SentencePiece's pieces as they are
BROKEN = "�"
LEAST = -1e30  # a log-probability below it is as good as it
BYTE = re.compile(r"<0x[0-9A-F]{2}>")  # a part of a character, as SentencePiece writes it
PATIENCE = Patience(read=120.0, attempts=5, pause=0.5)
MAX_BEFORE = 2  # control tokens that a server puts before a text

Done = TypeVar("Done")
Lists = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Echo:
    """A prompt as a server gives it back.

    tokens: what of the prompt each stands for, in order; parts of one character may be empty.
    offsets: where each begins in the prompt. log_probs: NaN where the server gives none.
    lists: the likeliest tokens that the server sets beside each, text -> log-probability.
    """

    tokens: tuple[str, ...]
    offsets: tuple[int, ...]
    log_probs: tuple[float, ...]
    lists: tuple[Lists, ...]

    def first_from(self, offset: int) -> int | None:
        """The token that begins at an offset; None if one goes across it."""
        return self.offsets.index(offset) if offset in self.offsets else None


class Refused(UserError):
    """The server doesn't take what it was asked for. status: of HTTP."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


class _Key(AuthBase):
    """Puts the key into a request, where there is one; it is kept nowhere else."""

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if key := _key():
            request.headers["Authorization"] = f"Bearer {key}"
        return request


def _key() -> str:
    return os.environ.get(KEY, "").strip()


class Completions:
    """One model's completions. At most LAMA_SERVER_THREADS requests are under way at once."""

    def __init__(self, address: Address, patience: Patience | None = None) -> None:
        """Raises UserError if LAMA_SERVER_THREADS is no number, or LAMA_SERVER_KEY no key."""
        self.address = address
        self._patience = patience or PATIENCE
        n_threads = _n_threads()
        if not _key().isascii() or not _key().isprintable():
            raise UserError(f"{KEY} holds signs that no key has: set it again.")
        self._pool = ThreadPoolExecutor(n_threads, "server")
        self._session = requests.Session()
        self._session.auth = _Key()
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, HTTPAdapter(pool_maxsize=n_threads))

    def at_once(self, work: Callable[[Any], Done], items: Sequence[Any]) -> list[Done]:
        """`work` of each item, a few at a time. Raises what the first that fails raises."""
        waiting = [self._pool.submit(work, item) for item in items]
        try:
            return [one.result() for one in waiting]
        finally:
            for one in waiting:
                one.cancel()

    def describe(self) -> dict[str, Any]:
        """What the server says of the model. Raises UserError if it has another, or can't be asked.

        Empty where it keeps no list of its models.
        """
        try:
            answer = self.ask("/v1/models", None)
        except Refused as error:
            if error.status == 404:
                return {}
            raise
        records = answer.get("data")
        if not isinstance(records, list):
            raise UserError(self._strange("it gives no list of models"))
        known = {str(one.get("id")): one for one in records if isinstance(one, dict)}
        if self.address.model not in known:
            listed = ", ".join(sorted(known)[:5])[:200] or "none"
            raise UserError(
                f"The server {self.address.url} has no model {self.address.model[:100]!r}; it has: "
                f"{listed}."
            )
        return known[self.address.model]

    def next_tokens(self, prompt: str, n: int) -> Lists:
        """The `n` likeliest tokens behind a text: text -> log-probability, or none at all."""
        found = self._complete(prompt, n, echo=False)
        if found is None:
            raise UserError(self._strange("it gives no log-probabilities"))
        _, _, lists, _ = found
        return lists[0] if lists else {}

    def echo(self, prompt: str, n: int) -> Echo:
        """The tokens of a text, each with the `n` likeliest of its place.

        Raises UserError if the server gives none, or such as don't make up the text.
        """
        found = self._complete(prompt, n, echo=True)
        if found is None:
            raise UserError(self._no_prompt())
        tokens, log_probs, lists, n_prompt = found
        tokens = tokens[:n_prompt]
        for n_before in range(min(MAX_BEFORE, len(tokens)) + 1):
            offsets = _offsets(prompt, tokens[n_before:])
            if offsets is not None:
                rows = slice(n_before, n_before + len(offsets))
                return Echo(
                    tuple(tokens[rows]), offsets, tuple(log_probs[rows]), tuple(lists[rows])
                )
        if len("".join(tokens)) <= len(prompt) // 2:
            raise UserError(self._no_prompt())
        raise UserError(self._strange("the tokens of a text don't make up that text"))

    def _no_prompt(self) -> str:
        return (
            f"The server {self.address.url} gives no log-probabilities of what it is sent (echo "
            "with logprobs), so nothing can be scored with it: vLLM's does, and llama-cpp-python's."
        )

    def _complete(
        self, prompt: str, n: int, *, echo: bool
    ) -> tuple[list[str], list[float], list[Lists], int | None] | None:
        """Tokens, log-probabilities and lists of an answer; None if it has none of them.

        Last, how many tokens are the prompt's, where the server says it.
        """
        body = {
            "model": self.address.model,
            "prompt": prompt,
            "max_tokens": 1,  # 0 means no end to some servers, and is refused by others
            "temperature": 0,
            "logprobs": n,
            "echo": echo,
        }
        answer = self.ask("/v1/completions", body)
        try:
            part = answer["choices"][0]["logprobs"]
            if part is None:
                return None
            tokens = [_text(token) for token in part["tokens"]]
            log_probs = [_number(value) for value in part["token_logprobs"]]
            given = part.get("top_logprobs") or [None] * len(tokens)
            lists = [_list(one) for one in given]
            counted = (answer.get("usage") or {}).get("prompt_tokens")
            n_prompt = int(counted) if isinstance(counted, int) and counted > 0 else None
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise UserError(self._strange("its answer has another form")) from error
        if not len(tokens) == len(log_probs) == len(lists):
            raise UserError(self._strange("it gives more tokens than log-probabilities, or fewer"))
        return tokens, log_probs, lists, n_prompt

    def _strange(self, what: str) -> str:
        return f"The server {self.address.url} can't be used for completions: {what}."

    def ask(self, path: str, body: Mapping[str, Any] | None) -> dict[str, Any]:
        """A server's answer to a request, tried again a few times where that may help."""
        try:
            return retried(lambda: self._ask_once(path, body), self._patience)
        except TryAgain as reason:
            raise UserError(
                f"The server {self.address.url} doesn't answer ({reason}, "
                f"{self._patience.attempts} times): start it, or try again later; what was scored "
                "before is kept."
            ) from reason

    def _ask_once(self, path: str, body: Mapping[str, Any] | None) -> dict[str, Any]:
        patience = self._patience
        try:
            with (
                passing_faults(patience),
                self._session.request(
                    "GET" if body is None else "POST",
                    self.address.url + path,
                    json=body,
                    stream=True,
                    timeout=(patience.connect, patience.read),
                    allow_redirects=False,  # the key is for this address alone
                ) as response,
            ):
                data = self._read(response)
        except (requests.exceptions.RequestException, ValueError) as error:
            kind = type(error).__name__
            raise UserError(f"{self.address.url} can't be asked: {kind}.") from error
        status = response.status_code
        if status == 429 or status >= 500:
            raise TryAgain(f"it answered {status}", _wait(response))
        self._check_status(status, data)
        try:
            answer = json.loads(data)
        except (ValueError, RecursionError) as error:
            web_page = data[:200].lstrip().startswith(b"<")
            said = "it answers with a web page" if web_page else "its answer is not JSON"
            raise UserError(self._strange(said)) from error
        if not isinstance(answer, dict):
            raise UserError(self._strange("its answer has another form"))
        return answer

    def _read(self, response: requests.Response) -> bytes:
        until = time.monotonic() + self._patience.whole
        data = bytearray()
        for chunk in response.iter_content(CHUNK):
            data += chunk
            if len(data) > MAX_BYTES:
                raise UserError(self._strange(f"an answer has more than {MAX_BYTES:,} bytes"))
            if time.monotonic() > until:
                raise UserError(self._strange(f"an answer takes over {self._patience.whole:g} s"))
        return bytes(data)

    def _check_status(self, status: int, data: bytes) -> None:
        url = self.address.url
        if status == 200:
            return
        if status in (401, 403):
            what = "doesn't take the key in" if _key() else "asks for a key: set"
            raise Refused(f"The server {url} {what} {KEY} (it answered {status}).", status)
        if 300 <= status < 400:
            raise Refused(f"The server {url} sends on to another: give that address.", status)
        if status == 404:
            raise Refused(
                f"The server {url} has no completions of {self.address.model[:100]!r} (it answered "
                "404): its models are listed at /v1/models.",
                status,
            )
        raise Refused(f"The server {url} answered {status}: {_said(data)}.", status)


def _n_threads() -> int:
    given = os.environ.get(THREADS, "").strip() or str(N_THREADS)
    if not (given.isdecimal() and len(given) < 4 and 1 <= int(given) <= MAX_THREADS):
        raise UserError(f"{THREADS} is {given[:40]!r}: write a number from 1 to {MAX_THREADS}.")
    return int(given)


def _wait(response: requests.Response) -> float:
    """Seconds that a server asks to be left alone for, as many as it is granted."""
    given = response.headers.get("Retry-After", "")
    return min(float(given), LONGEST_WAIT) if given.isdecimal() and given.isascii() else 0.0


def _said(data: bytes) -> str:
    """A server's own words, on one line and without the key."""
    text = data[:4000].decode("utf-8", errors="replace")
    try:
        read = json.loads(data)
    except (ValueError, RecursionError):
        read = None
    for name in ("error", "message", "detail"):
        if isinstance(read, dict) and name in read:
            read = read[name]
            text = str(read)
    text = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    if key := _key():
        text = text.replace(key, "…")
    return text[:200].rstrip(".") or "nothing"


def _text(token: object) -> str:
    if not isinstance(token, str):
        raise TypeError("a token is no text")
    return "" if BYTE.fullmatch(token) else token.replace(SPACE, " ")


def _number(value: object) -> float:
    """A log-probability; NaN for none."""
    if value is None:
        return math.nan
    if not isinstance(value, int | float) or isinstance(value, bool) or not value <= 0.01:
        raise ValueError("no log-probability")
    return min(0.0, float(max(value, LEAST)))


def _list(given: object) -> Lists:
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise TypeError("no list")
    return {_text(token): _number(value) for token, value in given.items()}


def _offsets(prompt: str, tokens: Sequence[str]) -> tuple[int, ...] | None:
    """Where the tokens of a prompt begin in it; None if they don't make it up.

    What follows the prompt is left out. A character in several tokens has no text in them: it is
    passed over where the next token that has some fits behind it.
    """
    offsets = []
    at = n_broken = 0
    for token in tokens:
        if at >= len(prompt):
            break
        if not token or BROKEN in token:
            n_broken += 1
            offsets.append(at)
            continue
        if not offsets and not prompt.startswith(token):
            token = token.removeprefix(" ")  # SentencePiece begins every text with one
        found = prompt.find(token, at, at + n_broken + len(token))
        if found < 0 and at >= len(prompt) - n_broken:
            break  # the prompt ends with such a character, and this is the new token
        if found < 0:
            return None
        n_broken = 0
        offsets.append(found)
        at = found + len(token)
    return tuple(offsets) if at >= len(prompt) - n_broken and offsets else None
