"""`data build-corpus` and `data find-stated`: the embedded model's training text."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from lama_core.cli import commands, show
from lama_core.corpus import build
from lama_core.corpus.catalog import all_but
from lama_core.datasets import load_dataset
from lama_core.datasets.library import installed
from lama_core.metrics import stated
from lama_core.metrics.stated import STATED_FILE as STATED_FILE
from lama_core.paths import training_dir
from lama_core.progress import Progress


def _built() -> build.Corpus:
    """The corpus, built where it isn't here yet."""
    with show.progress() as on_progress:
        return build.build_corpus(
            training_dir() / "corpus", report=lambda stage: on_progress(Progress(stage))
        )


def build_corpus(*, json: commands.Json = False) -> None:
    """Build the embedded model's training text in the cache, from fetched sources.

    `prompts mine`, `extract`, `read` and `--open-book starter` read it.
    """
    built = _built()
    n_passages = sum(source.n_passages for source in built.summary)
    if json:
        show.print_json({"passages": n_passages, "sources": len(built.summary)})
        return
    print(f"{n_passages:,} passages of {len(built.summary)} sources: {training_dir() / 'corpus'}")


def find_stated(
    *,
    out: Annotated[Path, Parameter(help="File to write, in the model's folder.")],
    dataset: Annotated[
        str, Parameter(help="A dataset's name, or a folder in LAMA's layout.")
    ] = installed.STARTER,
    without: Annotated[
        list[str] | None,
        Parameter(help="A source that the model hasn't read; repeat it for several.", negative=""),
    ] = None,
    json: commands.Json = False,
) -> None:
    """Find the facts whose subject and object occur together in a training passage.

    `results --slices` and `compare --slices` read the file in a model's folder.
    """
    kept = {source.name for source in all_but(without or ())}
    train = [path for name, _, path in _built().train if name in kept]
    pairs = [(fact.subject, fact.object) for fact in load_dataset(dataset).facts]
    found = stated.find_stated(pairs, (line for path in train for line in build.read_lines(path)))
    stated.save_stated(pairs, found, out)
    if json:
        show.print_json({"pairs": len(set(pairs)), "stated": len(found)})
        return
    print(f"{len(found):,} of {len(set(pairs)):,} pairs of subject and object are stated: {out}")
