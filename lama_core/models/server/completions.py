"""Client of the OpenAI-compatible completions API, with retries and validation.

    POST /v1/completions {"prompt": ..., "max_tokens": 1, "logprobs": k, "echo": true}

With `echo` the response contains the prompt's tokens, each with its log-probability and the k most
likely tokens at that position. The client checks the size and form of every response. A server that
answers 404 is asked once more without `/v1`, which some providers' addresses don't have.
"""

import hashlib
import json
import math
import os
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any, TypeVar
from urllib.parse import urljoin, urlsplit

import requests
from requests.adapters import HTTPAdapter

from lama_core.downloads.retry import Patience, TryAgain, passing_faults, retried
from lama_core.errors import TextRefusedError, UserError, int_from_env
from lama_core.models.server.addresses import CHAT, ENDPOINT, ServerAddress
from lama_core.models.server.refusals import refuses_text, stated_status
from lama_core.progress import report_wait

KEY = "LAMA_SERVER_KEY"
THREADS = "LAMA_SERVER_THREADS"
SECONDS = "LAMA_SERVER_SECONDS"
SHOWN_AFTER = 3.0  # seconds after which the user sees what is waited for
MAX_THREADS = 64
MAX_BYTES = 1 << 28  # of a response: enough for 30 tokens with lists of 150,000 tokens each
SPACE = "▁"  # a space, in tokens of servers that send SentencePiece tokens unchanged
BROKEN = "�"
SURROGATE = re.compile("[\ud800-\udfff]")  # half of a character, which no text can contain
BYTE = re.compile(r"<0x[0-9A-F]{2}>")  # a byte of a character, as SentencePiece writes it

# What reading a response of another form raises.
UNREADABLE = (LookupError, TypeError, ValueError, AttributeError, OverflowError)

Done = TypeVar("Done")
Lists = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Echo:
    """A prompt as a server echoes it.

    tokens: the text of each token; empty for a token that is only a part of a character.
    offsets: index of the character of the prompt at which each token begins. log_probs: NaN where
    the server gives none. lists: the most likely tokens at each position, text -> log-probability.
    """

    tokens: tuple[str, ...]
    offsets: tuple[int, ...]
    log_probs: tuple[float, ...]
    lists: tuple[Lists, ...] = ()

    @property
    def total(self) -> float:
        """Sum of the log-probabilities; a first token without context is not counted."""
        return float(sum(value for value in self.log_probs if not math.isnan(value)))

    def first_from(self, offset: int) -> int | None:
        """Return the index of the token that begins at an offset; None if no token does."""
        return self.offsets.index(offset) if offset in self.offsets else None


class RequestRefused(UserError):
    """The server refused a request. status: HTTP status code."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status

    def __reduce__(self) -> tuple[type["RequestRefused"], tuple[str, int]]:
        return type(self), (str(self), self.status)  # pickled by the scoring process


def _with_key(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Add the key to a request; the key is stored nowhere else."""
    if key := _key():
        request.headers["Authorization"] = f"Bearer {key}"
    return request


def _key() -> str:
    return os.environ.get(KEY, "").strip()


class Completions:
    """Completions of one model; at most LAMA_SERVER_THREADS requests run at once."""

    def __init__(self, address: ServerAddress, patience: Patience | None = None) -> None:
        """Raise UserError if an environment variable `LAMA_SERVER_...` has an invalid value."""
        self.address = address
        seconds = float(max(1, int_from_env(SECONDS, 300)))
        self._patience = patience or Patience(attempts=5, pause=0.5, read=seconds, whole=seconds)
        self._time = 0.0  # the server's, at its last response, in seconds
        self._prefix: str | None = None  # what stands before the path, once the server has answered
        n_threads = int_from_env(THREADS, 4)
        if not 1 <= n_threads <= MAX_THREADS:
            raise UserError(f"{THREADS} is {n_threads}: write a number from 1 to {MAX_THREADS}.")
        if not _key().isascii() or not _key().isprintable():
            raise UserError(f"{KEY} must consist of printable ASCII characters: set it again.")
        self._pool = ThreadPoolExecutor(n_threads, "server")
        self._session = requests.Session()
        self._session.auth = _with_key
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, HTTPAdapter(pool_maxsize=n_threads))

    def at_once(self, work: Callable[[Any], Done], items: Sequence[Any]) -> list[Done]:
        """Return `work(item)` of each item, computed in threads; raise the first failure."""
        futures = [self._pool.submit(work, item) for item in items]
        try:
            if wait(futures, SHOWN_AFTER, FIRST_EXCEPTION).not_done:
                self._report_wait()
            return [future.result() for future in futures]
        finally:
            for future in futures:
                future.cancel()

    def _report_wait(self) -> None:
        report_wait(
            f"{self.address.url} to answer ({self.address.model}), at most "
            f"{self._patience.whole:g} seconds"
        )

    def describe(self) -> dict[str, Any]:
        """Return the server's record of the model; empty if the server doesn't list its models.

        The date `created` is omitted if it is that of the response, within two minutes, as vLLM's.

        Raises UserError if the server lists models without this one, or can't be queried.
        """
        try:
            answer = self.ask("/models", None)
        except RequestRefused as error:
            if error.status == 404:
                return {}
            raise
        records = answer.get("data")
        if not isinstance(records, list):
            raise UserError(self._unusable("it returns no list of models"))
        known = {str(one.get("id")): one for one in records if isinstance(one, dict)}
        if self.address.model not in known:
            listed = ", ".join(sorted(known)[:5])[:200] or "none"
            raise UserError(
                f"The server {self.address.url} has no model {self.address.model[:100]!r}. It has: "
                f"{listed}."
            )
        record = dict(known[self.address.model])
        created = record.get("created")
        if isinstance(created, int) and abs(created - int(self._time)) < 120:
            del record["created"]
        return record

    def digest_of(self, record: Mapping[str, Any], fields: Sequence[str], *more: object) -> str:
        """Return NAME/DIGEST of the model.

        The digest covers its address, these fields of its record, and `more`.
        """
        known = {name: record[name] for name in fields if name in record}
        content = json.dumps([self.address.url, self.address.model, known, *more], sort_keys=True)
        return f"{self.address.model}/{hashlib.sha256(content.encode()).hexdigest()[:32]}"

    def next_tokens(self, prompt: str, n: int) -> Lists:
        """Return the `n` most likely next tokens: text -> log-probability; may be empty."""
        _, _, lists, _ = self._complete(prompt, n, echo=False)
        return lists[0] if lists else {}

    def echo(self, prompt: str, n: int) -> Echo:
        """Return the tokens of a text, each with the `n` most likely tokens at its position.

        Raises UserError if the server returns no tokens, or if they don't add up to the text.
        """
        tokens, log_probs, lists, n_prompt = self._complete(prompt, n, echo=True)
        tokens = tokens[:n_prompt]
        # A server may put up to two control tokens before a text.
        for n_before in range(min(2, len(tokens)) + 1):
            offsets = _offsets(prompt, tokens[n_before:])
            if offsets is not None:
                rows = slice(n_before, n_before + len(offsets))
                return Echo(
                    tuple(tokens[rows]), offsets, tuple(log_probs[rows]), tuple(lists[rows])
                )
        if len("".join(tokens)) <= len(prompt) // 2:
            raise UserError(self._no_prompt())
        raise UserError(self._unusable("the tokens that it returns don't add up to the text"))

    def _no_prompt(self) -> str:
        return (
            f"The server {self.address.url} can't score texts: it doesn't return log-probabilities "
            "of the prompt (echo with logprobs). vLLM and llama-cpp-python do. To ask it questions "
            f"without scores, write {CHAT}{self.address.url}#{self.address.model}."
        )

    def _complete(
        self, prompt: str, n: int, *, echo: bool
    ) -> tuple[list[str], list[float], list[Lists], int | None]:
        """Request a completion; raise UserError if it has no log-probabilities of a prompt.

        llama-server has those of the generated token only, as the list `content`; Ollama and LM
        Studio have none.

        Returns:
            The tokens, their log-probabilities, the list of likely tokens at each position, and the
            prompt's number of tokens (None if unknown).
        """
        body = {
            "model": self.address.model,
            "prompt": prompt,
            "max_tokens": 1,  # some servers read 0 as unlimited, others refuse it
            "temperature": 0,
            "logprobs": n,
            "echo": echo,
        }
        answer = self.ask("/completions", body)
        try:
            part = answer["choices"][0].get("logprobs")
            if part is None or (isinstance(part, dict) and "tokens" not in part):
                raise UserError(self._no_prompt())
            tokens = [_text(token) for token in part["tokens"]]
            log_probs = [_number(value) for value in part["token_logprobs"]]
            lists: list[Lists] = [
                {
                    _text(token): _number(value)
                    for token, value in ({} if one is None else one).items()
                }
                for one in part.get("top_logprobs") or [None] * len(tokens)
            ]
            counted = (answer.get("usage") or {}).get("prompt_tokens")
            n_prompt = int(counted) if isinstance(counted, int) and counted > 0 else None
        except UNREADABLE as error:
            raise UserError(self.unreadable("for completions", answer)) from error
        if not len(tokens) == len(log_probs) == len(lists):
            raise UserError(self._unusable("tokens and log-probabilities differ in number"))
        return tokens, log_probs, lists, n_prompt

    def unreadable(self, use: str, answer: object) -> str:
        """Return the message for a response of another form. use: Such as `for completions`."""
        said = message_of(json.dumps(answer, ensure_ascii=False).encode(errors="replace"))
        return (
            f"The server {self.address.url} can't be used {use}: its response has an unexpected "
            f"format: {said}."
        )

    def _unusable(self, what: str) -> str:
        return f"The server {self.address.url} can't be used for completions: {what}."

    def ask(self, path: str, body: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the server's response to a request; retry temporary failures.

        Args:
            path: What follows `/v1` in the address, such as `/completions`.
            body: The request; None to get the path.

        Raises:
            TextRefusedError: If the server refuses the text of this request.
            RequestRefused: If it refuses the request for another reason.
            UserError: If it doesn't answer, or its response isn't a JSON object.
        """
        refused: RequestRefused | None = None
        for prefix in ("/v1", "") if self._prefix is None else (self._prefix,):
            until = time.monotonic() + self._patience.whole
            try:
                answer = retried(
                    partial(self._ask_until, until, prefix + path, body), self._patience
                )
                self._prefix = prefix
                return answer
            except RequestRefused as error:
                if error.status not in (404, 405):
                    raise
                refused = refused or error
            except TryAgain as reason:
                raise UserError(
                    f"The server {self.address.url} doesn't answer ({reason}, "
                    f"{self._patience.attempts} times). Start it or try again later; finished "
                    f"parts are kept.{self._proxy_note()}"
                ) from reason
        assert refused is not None
        raise refused

    def _ask_until(self, until: float, path: str, body: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the response to one request.

        A timeout of the connection only limits each pause between received bytes, so the request
        is sent in a thread, which is given up at the time `until`.
        """
        done: Future[dict[str, Any]] = Future()
        opened: list[requests.Response] = []

        def ask() -> None:
            try:
                done.set_result(self._ask_once(path, body, opened))
            except BaseException as error:  # noqa: BLE001 - raised by `result` below
                done.set_exception(error)

        threading.Thread(target=ask, daemon=True).start()
        if wait([done], max(0.0, min(SHOWN_AFTER, until - time.monotonic()))).not_done:
            self._report_wait()
        if wait([done], max(0.0, until - time.monotonic())).not_done:
            for response in opened:
                response.raw.shutdown()  # ends the thread
            raise UserError(
                f"The server {self.address.url} hasn't finished its answer after "
                f"{self._patience.whole:g} seconds: try again later, or raise {SECONDS}."
            )
        return done.result()

    def _ask_once(
        self, path: str, body: Mapping[str, Any] | None, opened: list[requests.Response]
    ) -> dict[str, Any]:
        """Return the response to one request; `opened` gets the response that is being read."""
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
                    allow_redirects=False,  # never send the key to another address
                ) as response,
            ):
                opened.append(response)
                data = self._read(response)
                opened.clear()
        except (requests.exceptions.RequestException, ValueError) as error:
            raise UserError(
                f"Request to {self.address.url} failed: {type(error).__name__}.{self._proxy_note()}"
            ) from error
        try:  # by the server's clock, else by this machine's
            self._time = parsedate_to_datetime(response.headers.get("Date", "")).timestamp()
        except (ValueError, TypeError, OverflowError):
            self._time = time.time()
        status, answer = response.status_code, None
        if status == 200:
            answer = self._parsed(response, data)
            status = stated_status(answer)
        if body is not None and refuses_text(status, data):
            raise TextRefusedError(f"HTTP {response.status_code}: {message_of(data)}")
        if status == 429 or status >= 500:
            said = "" if answer is None else f": {message_of(data)}"
            after = response.headers.get("Retry-After", "")
            pause = float(after) if after.isdecimal() and after.isascii() else 0.0
            raise TryAgain(f"it answered {response.status_code}{said}", min(pause, 30.0))
        self._check_status(response, status, data)
        if not isinstance(answer, dict):
            raise UserError(self.unreadable("for completions", answer))
        return answer

    def _parsed(self, response: requests.Response, data: bytes) -> Any:
        """Return the content of a response: JSON in UTF-8, or in the encoding that it names."""
        named = requests.utils.get_encoding_from_headers(response.headers) or ""
        try:
            try:
                return json.loads(data)
            except UnicodeDecodeError:
                return json.loads(data.decode(named))
        except (ValueError, LookupError, RecursionError) as error:
            what = f"its response is not JSON in UTF-8: {message_of(data)}"
            what = "it returns a web page" if data[:200].lstrip().startswith(b"<") else what
            raise UserError(self._unusable(what) + self._proxy_note()) from error

    def _read(self, response: requests.Response) -> bytes:
        data = bytearray()
        for chunk in response.iter_content(1 << 16):
            data += chunk
            if len(data) > MAX_BYTES:
                raise UserError(self._unusable(f"a response exceeds {MAX_BYTES:,} bytes"))
        return bytes(data)

    def _check_status(self, response: requests.Response, status: int, data: bytes) -> None:
        """Raise RequestRefused for an error. status: As `stated_status` reads it."""
        url = self.address.url
        if status == 200:
            return
        if response.status_code == 200:
            said = f"The server {url} answered with an error: {message_of(data)}."
            raise RequestRefused(said, status)
        if status in (401, 403):
            what = "doesn't accept the key in" if _key() else "needs a key: set"
            raise RequestRefused(
                f"The server {url} {what} {KEY} (HTTP {status}).{self._proxy_note()}", status
            )
        if 300 <= status < 400:
            # As a server's address: without user, query and endpoint.
            to = urlsplit(urljoin(response.url, response.headers.get("Location", "")))
            host, path = to.netloc.rpartition("@")[2], ENDPOINT.sub("", to.path)
            target = f"{to.scheme}://{host}{path}"[:200]
            target = target if target.isprintable() else "another address"
            raise RequestRefused(
                f"The server {url} redirects to {target}: use that address.", status
            )
        if status == 404:
            raise RequestRefused(
                f"The server {url} has no completions for {self.address.model[:100]!r} (HTTP 404). "
                "It lists its models at /v1/models.",
                status,
            )
        raise RequestRefused(
            f"The server {url} answered HTTP {status}: {message_of(data)}.{self._proxy_note()}",
            status,
        )

    def _proxy_note(self) -> str:
        """Return a sentence that names the variable of the proxy that requests go through."""
        proxy = requests.utils.select_proxy(
            self.address.url, requests.utils.get_environ_proxies(self.address.url, None)
        )
        named = [name for name in os.environ if name.lower().endswith("_proxy")]
        name = next((name for name in named if proxy and os.environ[name] == proxy), "")
        if not name:
            return ""
        return (
            f" Requests go through the proxy in {name}: if the server isn't behind it, add "
            f"{urlsplit(self.address.url).hostname} to NO_PROXY."
        )


def message_of(data: bytes) -> str:
    """Return a server's error message on one line, without the key."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        read = None
    for name in ("error", "message", "detail"):
        if isinstance(read, dict) and read.get(name):
            read = read[name]
            text = read if isinstance(read, str) else json.dumps(read, ensure_ascii=False)
    text = "".join(char if char.isprintable() else " " for char in text[:4000])
    text = " ".join(text.split())
    if key := _key():
        text = text.replace(key, "…")
    return text[:200].rstrip(".") or "nothing"


def _text(token: object) -> str:
    if not isinstance(token, str):
        raise TypeError("a token is not a string")
    token = SURROGATE.sub(BROKEN, token)
    return "" if BYTE.fullmatch(token) else token.replace(SPACE, " ")


def _number(value: object) -> float:
    """Return a log-probability, at least -1e30; NaN for None."""
    if value is None:
        return math.nan
    if not isinstance(value, int | float) or isinstance(value, bool) or not value <= 0.01:
        raise ValueError("not a log-probability")
    return min(0.0, float(max(value, -1e30)))


def _offsets(prompt: str, tokens: Sequence[str]) -> tuple[int, ...] | None:
    """Return where the tokens begin in the prompt; None if they don't add up to it.

    Tokens after the prompt are ignored. A character that is split over several tokens has no text
    in these tokens: it is skipped if the next token with text matches the prompt after it.
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
            token = token.removeprefix(" ")  # SentencePiece adds a space before every text
        found = prompt.find(token, at, at + n_broken + len(token))
        if found < 0 and at >= len(prompt) - n_broken:
            break  # the prompt ends with a split character; this token was generated
        if found < 0:
            return None
        n_broken = 0
        offsets.append(found)
        at = found + len(token)
    return tuple(offsets) if at >= len(prompt) - n_broken and offsets else None
