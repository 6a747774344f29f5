"""`data build-corpus` and `data find-stated`: the embedded model's training text."""

from pathlib import Path
from typing import Annotated

import typer

from lama_core.cli import options, show
from lama_core.corpus import build
from lama_core.corpus.catalog import all_but
from lama_core.datasets import load_dataset
from lama_core.datasets.library import installed
from lama_core.metrics import stated
from lama_core.paths import training_dir
from lama_core.progress import Progress


def register(app: typer.Typer) -> None:
    """Add both commands to those of `data`."""
    data = next(group for group in app.registered_groups if group.name == "data").typer_instance
    assert data is not None
    data.command("build-corpus", epilog="Example: python -m lama_core data build-corpus")(
        build_corpus
    )
    example = f"Example: python -m lama_core data find-stated --out {stated.STATED_FILE}"
    data.command("find-stated", epilog=example)(find_stated)


def _built() -> build.Corpus:
    """The corpus, built where it isn't here yet."""
    with show.progress() as on_progress:
        return build.build_corpus(
            training_dir() / "corpus", report=lambda stage: on_progress(Progress(stage))
        )


def build_corpus(as_json: options.Json = False) -> None:
    """Fetch the sources of the embedded model's training text, and write it to the cache.

    `prompts mine`, `extract`, `read` and `--open-book starter` read it.
    """
    built = _built()
    n_passages = sum(source.n_passages for source in built.summary)
    if as_json:
        show.print_json({"passages": n_passages, "sources": len(built.summary)})
        return
    print(f"{n_passages:,} passages of {len(built.summary)} sources: {training_dir() / 'corpus'}")


def find_stated(
    out: Annotated[Path, typer.Option(help="File to write, in the model's folder.")],
    dataset: options.Dataset = installed.STARTER,
    without: Annotated[
        list[str] | None,
        typer.Option(help="A source that the model hasn't read; repeat it for several."),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Find the facts that the embedded model's training text states.

    Those whose subject and object occur together in a passage. `results --slices` and
    `compare --slices` read the file in a model's folder.
    """
    kept = {source.name for source in all_but(without or ())}
    train = [path for name, _, path in _built().train if name in kept]
    pairs = [(fact.subject, fact.object) for fact in load_dataset(dataset).facts]
    found = stated.find_stated(pairs, (line for path in train for line in build.read_lines(path)))
    stated.save_stated(pairs, found, out)
    if as_json:
        show.print_json({"pairs": len(set(pairs)), "stated": len(found)})
        return
    print(f"{len(found):,} of {len(set(pairs)):,} pairs of subject and object are stated: {out}")
