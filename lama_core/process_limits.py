"""Limits of the memory and CPU time of a process that reads untrusted files."""

import math
import sys
import time


def limit_memory(n_bytes: int) -> None:
    """Limit this process's memory, if the system supports it; Windows doesn't."""
    _limit("RLIMIT_DATA", n_bytes)


def limit_cpu(seconds: float) -> None:
    """End this process after more CPU seconds from now on, if the system supports it.

    Another call replaces the limit.
    """
    _limit("RLIMIT_CPU", math.ceil(time.process_time() + seconds))


def _limit(name: str, value: int) -> None:
    if sys.platform == "win32":
        return
    import resource

    what = getattr(resource, name)
    hard = resource.getrlimit(what)[1]
    soft = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(what, (soft, hard))
