"""`python -m lama_core`: the command line, with the project's tools where they are beside it."""

import importlib.util

from lama_core.cli import main

if __name__ == "__main__":
    if importlib.util.find_spec("tools") and importlib.util.find_spec("tools.commands"):
        from tools.commands import register

        main(register)
    else:
        main()
