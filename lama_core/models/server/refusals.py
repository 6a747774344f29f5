"""Whether a server refuses a text, or the request for another reason.

A text that is too long for the server's context, or that its content filter stops, is refused
whenever it is sent; other texts are answered. Servers report this with different statuses, codes
and words (OpenAI, vLLM, SGLang, llama-server, llama-cpp-python, Ollama, LM Studio, TGI and others),
so both the status and the content of the response decide.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

# A limit on tokens per minute that a single request exceeds; waiting doesn't help.
BUSY = 429
LARGER_THAN_LIMIT = re.compile(r"request (is )?too large", re.IGNORECASE)
TOO_LONG = re.compile(
    r"context[ _-]?(length|size|window)"
    r"|max(imum)? (model|sequence|input|prompt)[ _](length|size)"
    r"|(prompt|input|text|message)s?\b[^.\n]*\b(too (long|large)|longer than|exceeds?\b)"
    r"|(prompt|input)s?\b[^.\n]*\btokens?\b[^.\n]*(less than|at most|<=)"
    r"|too many (input |prompt )?tokens"
    r"|string_above_max_length"
    # llama-cpp-python 0.3.36, for a text with more tokens than --n_ctx
    r"|could not broadcast input array from shape",
    re.IGNORECASE,
)
FILTERED = re.compile(
    r"content[ _-]?(filter|policy|management|moderation|exists risk)"
    r"|moderation|flagged|usage polic|inappropriate content|data_inspection_failed",
    re.IGNORECASE,
)
# The fields of an error with the server's own words; others repeat the request.
FIELDS = ("error", "message", "msg", "detail", "code", "type", "innererror", "errors", "metadata")
MAX_BYTES = 1 << 16
RESULTS = ("choices", "data")  # the fields of a response that isn't an error


def refuses_text(status: int, data: bytes) -> bool:
    """Return whether a response refuses the text of the request.

    Args:
        status: The HTTP status.
        data: The body of the response.
    """
    if status == 413:  # the body of the request is too large, whatever the response says
        return True
    # Statuses with which servers refuse a text; of llama.cpp's, earlier versions used 500.
    if status not in (400, 403, 422, 500, BUSY):
        return False
    said = "\n".join(_words(data))
    if status == BUSY:
        return bool(LARGER_THAN_LIMIT.search(said))
    long = (TOO_LONG.search(said) or LARGER_THAN_LIMIT.search(said)) and status != 403
    return bool(long or (FILTERED.search(said) and status != 500))


def stated_status(answer: object) -> int:
    """Return the status of a body that came with HTTP status 200.

    Some servers and proxies send errors with this status. It is then the code of the error, or 400
    if the error has none.
    """
    if not isinstance(answer, dict):
        return 200
    error = answer.get("error")
    has_words = any(answer.get(name) for name in ("message", "detail"))
    if not error and (not has_words or any(name in answer for name in RESULTS)):
        return 200
    parts = [part for part in (error, answer) if isinstance(part, dict)]
    codes = [part.get(name) for part in parts for name in ("code", "status", "status_code")]
    return next((code for code in codes if isinstance(code, int) and 400 <= code < 600), 400)


def _words(data: bytes) -> list[str]:
    """Return the texts in the fields of an error; the whole text of a body that isn't JSON."""
    try:
        answer = json.loads(data[:MAX_BYTES])
    except (ValueError, RecursionError):
        return [data[:MAX_BYTES].decode("utf-8", errors="replace")]
    return list(_texts(answer))


def _texts(part: Any) -> Iterator[str]:
    if isinstance(part, str):
        yield part
    elif isinstance(part, list):
        for one in part:
            yield from _texts(one)
    elif isinstance(part, dict):
        for name in FIELDS:
            if name in part:
                yield from _texts(part[name])
