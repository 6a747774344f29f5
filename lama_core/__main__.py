"""`python -m lama_core`: the command line."""

from lama_core.cli import main

if __name__ == "__main__":
    main()
