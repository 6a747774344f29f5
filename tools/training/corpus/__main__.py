"""`python -m tools.training.corpus`: build the embedded model's training text in the cache."""

import argparse
import sys
from pathlib import Path

from lama_core.errors import UserError
from lama_core.metrics.sentence_forms import FORMS_FILE, save_forms
from lama_core.paths import training_dir
from tools.training.corpus.build import build_corpus
from tools.training.corpus.source_forms import corpus_forms
from tools.training.corpus.source_list import all_but


def main() -> None:
    """Build the text; exit with status 2 and one line if a source can't be downloaded."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.training.corpus",
        description="Build MiniLM-MLM's training text in the cache, from fetched sources. The "
        "corpus `starter` of `prompts mine`, `extract`, `read` and --open-book is this text.",
    )
    parser.add_argument(
        "--forms", type=Path, help=f"Write the sources' sentence forms ({FORMS_FILE} of a model)."
    )
    parser.add_argument(
        "--without", action="append", default=[], help="A source without forms in this file."
    )
    given = parser.parse_args()
    try:
        if given.forms is not None:
            save_forms(corpus_forms(all_but(given.without)), given.forms)
        folder = training_dir() / "corpus"
        built = build_corpus(folder, report=lambda line: print(line, file=sys.stderr))
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    n_passages = sum(source.n_passages for source in built.summary)
    print(f"{n_passages:,} passages of {len(built.summary)} sources: {folder}")


if __name__ == "__main__":
    main()
