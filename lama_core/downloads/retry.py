"""Retries of requests after failures that may be temporary."""

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
    """Timeouts and retries; times in seconds.

    connect: limit for connecting. read: limit for a pause between received bytes. whole: limit for
    a complete response that is read into memory. attempts: maximum number of successive attempts
    without progress. pause: wait before the second attempt, doubled for each further one.
    """

    connect: float = 10.0
    read: float = 30.0
    attempts: int = 4
    pause: float = 1.0
    whole: float = 600.0


class TryAgain(Exception):
    """A failure that may be temporary. wait: seconds that the server asked to wait."""

    def __init__(self, reason: str, wait: float = 0.0) -> None:
        super().__init__(reason)
        self.wait = wait


@contextmanager
def passing_faults(patience: Patience) -> Iterator[None]:
    """Raise TryAgain for connection failures in the block that may be temporary."""
    try:
        yield
    except (requests.exceptions.Timeout, urllib3.exceptions.ReadTimeoutError) as error:
        raise TryAgain(f"no data within {patience.read:g} seconds") from error
    except (
        requests.exceptions.ConnectionError,
        requests.exceptions.ChunkedEncodingError,
        urllib3.exceptions.HTTPError,
    ) as error:
        refused = "Connection refused" in str(error)
        raise TryAgain(f"the connection {'was refused' if refused else 'broke'}") from error


def retried(work: Callable[[], T], patience: Patience, done: Callable[[], int] = lambda: 0) -> T:
    """Return `work()`, retried after TryAgain; raises the last TryAgain if no attempt succeeds.

    done: returns the progress so far; an attempt with progress resets the count of attempts.
    """
    best = done()

    def count(state: RetryCallState) -> None:
        nonlocal best
        if done() > best:
            best, state.attempt_number = done(), 1

    def pause(state: RetryCallState) -> float:
        reason = state.outcome.exception() if state.outcome else None
        requested = reason.wait if isinstance(reason, TryAgain) else 0.0
        return max(requested, patience.pause * 2 ** (state.attempt_number - 1))

    return Retrying(
        retry=retry_if_exception_type(TryAgain),
        stop=stop_after_attempt(patience.attempts),
        wait=pause,
        after=count,
        reraise=True,
    )(work)
