"""Retries of requests whose failure may be temporary."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import requests
import urllib3
from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_attempt

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait and how often to try.

    connect, read: seconds without an answer or a byte. whole: seconds for an answer that is read
    into memory. attempts: tries in a row without progress before giving up. pause: seconds before
    the second try, doubled for each further one.
    """

    connect: float = 10.0
    read: float = 30.0
    attempts: int = 4
    pause: float = 1.0
    whole: float = 600.0


class TryAgain(Exception):
    """A failure that may be temporary. wait: seconds that the server asks for."""

    def __init__(self, reason: str, wait: float = 0.0) -> None:
        super().__init__(reason)
        self.wait = wait


@contextmanager
def passing_faults(patience: Patience) -> Iterator[None]:
    """Raise TryAgain for a failure of the block's connection that may be temporary."""
    try:
        yield
    except (requests.exceptions.Timeout, urllib3.exceptions.ReadTimeoutError) as error:
        raise TryAgain(f"nothing within {patience.read:g} seconds") from error
    except (
        requests.exceptions.ConnectionError,
        requests.exceptions.ChunkedEncodingError,
        urllib3.exceptions.HTTPError,
    ) as error:
        refused = "Connection refused" in str(error)
        raise TryAgain(f"the connection {'is refused' if refused else 'broke'}") from error


def retried(work: Callable[[], T], patience: Patience, done: Callable[[], int] = lambda: 0) -> T:
    """Return `work()`, tried again after TryAgain; raise the last one when patience ends.

    done: how far the work is: a try that got further than all before starts the count again.
    """
    best = done()

    def count(state: RetryCallState) -> None:
        nonlocal best
        if done() > best:
            best, state.attempt_number = done(), 1

    def pause(state: RetryCallState) -> float:
        reason = state.outcome.exception() if state.outcome else None
        asked = reason.wait if isinstance(reason, TryAgain) else 0.0
        return max(asked, patience.pause * 2 ** (state.attempt_number - 1))

    return Retrying(
        retry=retry_if_exception_type(TryAgain),
        stop=stop_after_attempt(patience.attempts),
        wait=pause,
        after=count,
        reraise=True,
    )(work)
