"""The commands of the tools, which the library's command line shows among its own."""

from pathlib import Path
from typing import Annotated

import typer

from lama_core.cli import options, show
from lama_core.datasets.library import installed
from lama_core.paths import training_dir
from lama_core.progress import Progress
from tools.bench import command as bench
from tools.stress import command as stress
from tools.training import command as training


def register(app: typer.Typer) -> None:
    """Add `train-mlm`, `bench`, `stress`, `data build-starter` and `data build-corpus`."""
    training.register(app)
    bench.register(app)
    stress.register(app)
    data = next(group for group in app.registered_groups if group.name == "data")
    assert data.typer_instance is not None
    example = "Example: python -m lama_core data build-starter"
    data.typer_instance.command("build-starter", epilog=example)(build_starter)
    example = "Example: python -m lama_core data build-corpus"
    data.typer_instance.command("build-corpus", epilog=example)(build_corpus)


def build_starter(
    folder: Annotated[
        Path | None, typer.Option(help="Where to write them; the project's assets if left.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Build the starter facts and analogies again, the same from the same sources."""
    from tools.starter.build import build_analogies, build_facts

    facts_dir = folder / installed.STARTER if folder else installed.starter_dir()
    pairs_dir = (
        folder / installed.STARTER_ANALOGIES if folder else installed.starter_analogies_dir()
    )
    facts, pairs = build_facts(facts_dir), build_analogies(pairs_dir)
    if as_json:
        show.print_json({"facts": facts, "pairs": pairs})
        return
    print(f"{sum(facts.values()):,} facts in {len(facts)} relations: {facts_dir}")
    print(f"{sum(pairs.values()):,} pairs in {len(pairs)} relations: {pairs_dir}")


def build_corpus(as_json: options.Json = False) -> None:
    """Fetch the sources of the embedded model's training text, and write it to the cache.

    `prompts mine`, `extract`, `read` and `--open-book starter` read it.
    """
    from tools.training import corpus

    with show.progress() as on_progress:
        built = corpus.build_corpus(
            training_dir() / "corpus", report=lambda stage: on_progress(Progress(stage))
        )
    n_passages = sum(source.n_passages for source in built.summary)
    if as_json:
        show.print_json({"passages": n_passages, "sources": len(built.summary)})
        return
    print(f"{n_passages:,} passages of {len(built.summary)} sources: {training_dir() / 'corpus'}")
