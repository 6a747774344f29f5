"""`python -m lama_core` and `lama-explorer`: the command line."""

import atexit
import os
import threading

from lama_core import cli


def main() -> None:
    """Run the command line, then end the process without freeing its objects one by one.

    Freeing torch's objects takes half a second of CPU time. Threads and functions registered with
    `atexit` end as usual.
    """
    try:
        cli.main()
    except SystemExit as end:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        cli.flush()
        os._exit(end.code if isinstance(end.code, int) else 1)


if __name__ == "__main__":
    main()
