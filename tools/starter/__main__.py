"""`python -m tools.starter`: reproduce the starter facts and analogies, byte for byte."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from lama_core.cli import output
from lama_core.datasets.library import installed
from lama_core.errors import UserError
from tools.starter.build import build_analogies, build_facts


def build(words: Sequence[str]) -> None:
    """Run the command with these arguments. Raises UserError for a missing source."""
    parser = argparse.ArgumentParser(
        "python -m tools.starter",
        description="Reproduce the starter facts and analogies from their sources.",
        epilog="Example: python -m tools.starter --folder /tmp/again",
    )
    parser.add_argument("--folder", type=Path, help="Output folder. Default: the project's assets.")
    given = parser.parse_args(words)
    facts_dir, pairs_dir = installed.starter_dir(), installed.starter_analogies_dir()
    if given.folder:
        facts_dir = given.folder / installed.STARTER
        pairs_dir = given.folder / installed.STARTER_ANALOGIES
    facts, pairs = build_facts(facts_dir), build_analogies(pairs_dir)
    print(f"{sum(facts.values()):,} facts in {len(facts)} relations: {facts_dir}")
    print(f"{sum(pairs.values()):,} pairs in {len(pairs)} relations: {pairs_dir}")


if __name__ == "__main__":
    try:
        build(sys.argv[1:])
    except UserError as error:
        output.print_error(str(error))
        sys.exit(2)
