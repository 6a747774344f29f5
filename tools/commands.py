"""The commands of the tools, which the library's command line shows among its own."""

from pathlib import Path
from typing import Annotated

import typer

from lama_core.cli import options, show
from lama_core.datasets.library import installed
from lama_core.metrics.stated import STATED_FILE
from lama_core.paths import training_dir
from lama_core.progress import Progress
from tools.bench import command as bench
from tools.stress import command as stress
from tools.training import command as training


def register(app: typer.Typer) -> None:
    """Add `train-mlm`, `bench`, `stress`, `data build-starter`, `data build-corpus` and
    `data find-stated`."""
    training.register(app)
    bench.register(app)
    stress.register(app)
    data = next(group for group in app.registered_groups if group.name == "data")
    assert data.typer_instance is not None
    example = "Example: python -m lama_core data build-starter"
    data.typer_instance.command("build-starter", epilog=example)(build_starter)
    example = "Example: python -m lama_core data build-corpus"
    data.typer_instance.command("build-corpus", epilog=example)(build_corpus)
    example = f"Example: python -m lama_core data find-stated --out {STATED_FILE}"
    data.typer_instance.command("find-stated", epilog=example)(find_stated)


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


def find_stated(
    out: Annotated[Path, typer.Option(help="File to write, in the model's folder.")],
    dataset: options.Dataset = installed.STARTER,
    without: Annotated[
        list[str] | None,
        typer.Option(help="A source that the model hasn't read, as of `train-mlm`; repeat it."),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Find the facts that the embedded model's training text states.

    Those whose subject and object stand together in a passage. `results --slices` and
    `compare --slices` read the file in a model's folder.
    """
    from lama_core.datasets import load_dataset
    from lama_core.metrics import stated
    from tools.training.catalog import all_but
    from tools.training.corpus import build_corpus as build
    from tools.training.corpus import read_lines

    kept = {source.name for source in all_but(without or ())}
    with show.progress() as on_progress:
        corpus = build(training_dir() / "corpus", report=lambda stage: on_progress(Progress(stage)))
    pairs = [(fact.subject, fact.object) for fact in load_dataset(dataset).facts]
    texts = (line for name, _, path in corpus.train if name in kept for line in read_lines(path))
    found = stated.find_stated(pairs, texts)
    stated.save_stated(pairs, found, out)
    if as_json:
        show.print_json({"pairs": len(set(pairs)), "stated": len(found)})
        return
    print(f"{len(found):,} of {len(set(pairs)):,} pairs of subject and object are stated: {out}")
