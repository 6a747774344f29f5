"""`data build-corpus` and `data find-stated`: the embedded model's training text."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from lama_core.api import corpus as api
from lama_core.api.corpus import STARTER
from lama_core.api.corpus import STATED_FILE as STATED_FILE
from lama_core.cli import commands, show


def build_corpus(*, json: commands.Json = False) -> None:
    """Build the embedded model's training text in the cache, from fetched sources.

    `prompts mine`, `extract`, `read` and `--open-book starter` read it.
    """
    with show.progress() as on_progress:
        built = api.build_corpus(on_progress=on_progress)
    n_passages = sum(source.n_passages for source in built.summary)
    if json:
        show.print_json({"passages": n_passages, "sources": len(built.summary)})
        return
    print(f"{n_passages:,} passages of {len(built.summary)} sources: {api.corpus_dir()}")


def find_stated(
    *,
    out: Annotated[Path, Parameter(help="File to write, in the model's folder.")],
    dataset: Annotated[
        str, Parameter(help="A dataset's name, or a folder in LAMA's layout.")
    ] = STARTER,
    without: Annotated[
        list[str] | None,
        Parameter(help="A source that the model hasn't read; repeat it for several.", negative=""),
    ] = None,
    json: commands.Json = False,
) -> None:
    """Find the facts whose subject and object occur together in a training passage.

    `results --slices` and `compare --slices` read the file in a model's folder.
    """
    with show.progress() as on_progress:
        found = api.find_stated(
            out, dataset=dataset, without=without or (), on_progress=on_progress
        )
    if json:
        show.print_json({"pairs": found.n_pairs, "stated": found.n_stated})
        return
    print(f"{found.n_stated:,} of {found.n_pairs:,} pairs of subject and object are stated: {out}")
