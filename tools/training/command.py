"""`train-mlm`: make a masked language model from an encoder and text."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from lama_core.cli import show
from lama_core.errors import UserError
from lama_core.paths import training_dir
from lama_core.rounding import fixed, percent

if TYPE_CHECKING:
    from tools.training.outcome import Outcome
    from tools.training.train import Progress as TrainingProgress

EXAMPLE = """
Example: python -m lama_core train-mlm --out my-model

With your own text: python -m lama_core train-mlm --corpus notes.txt --steps 500 --out my-model
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="train-mlm", epilog=EXAMPLE)(train_mlm)


def train_mlm(
    out: Annotated[Path, typer.Option(help="Folder that the finished model is written to.")],
    encoder: Annotated[
        Path | None,
        typer.Option(help="Folder with a BERT or RoBERTa encoder; without it, MiniLM is fetched."),
    ] = None,
    corpus: Annotated[
        list[Path] | None,
        typer.Option(help="A text file to train on; repeat it. Without it, the corpus is fetched."),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(help="A source of the fetched corpus to leave out; repeat it."),
    ] = None,
    steps: Annotated[int, typer.Option(min=1, help="Batches to train on.")] = 5000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of order, masks and the new head.")] = 0,
    run: Annotated[
        Path | None,
        typer.Option(help="Folder for corpus, log and checkpoints; a run there is resumed."),
    ] = None,
    batch_tokens: Annotated[int, typer.Option(min=64, help="Tokens of a batch.")] = 2048,
    max_length: Annotated[int, typer.Option(min=8, max=512, help="Tokens of a passage.")] = 64,
    learning_rate: Annotated[float, typer.Option(min=0.0, help="Peak rate, encoder.")] = 5e-4,
    head_learning_rate: Annotated[float, typer.Option(min=0.0, help="Peak rate, head.")] = 1e-3,
    warmup_steps: Annotated[int, typer.Option(min=0, help="Steps in which it rises.")] = 200,
    decay_steps: Annotated[int, typer.Option(min=0, help="Last steps, in which it falls.")] = 2500,
    precision: Annotated[str, typer.Option(help="bf16 or fp32.")] = "bf16",
    threads: Annotated[int, typer.Option(min=1, help="Processor threads.")] = 2,
    checkpoint_minutes: Annotated[
        float, typer.Option(min=0.1, help="Minutes between checkpoints.")
    ] = 4.0,
    facts: Annotated[
        Path | None, typer.Option(help="Folder in LAMA's layout: measure P@1 on its facts, too.")
    ] = None,
    json: Annotated[bool, typer.Option(help="Print the result as JSON.")] = False,
) -> None:
    """Give an encoder a masked-LM head, train both, and write a model that the app can use.

    Stopped, the same command goes on where its last checkpoint was.
    """
    if precision not in ("bf16", "fp32"):
        raise UserError(f"--precision is bf16 or fp32, not {precision!r}")
    from tools.training.outcome import run_recipe
    from tools.training.train import Settings

    settings = Settings(
        steps=steps,
        seed=seed,
        tokens_per_batch=batch_tokens,
        max_length=max_length,
        learning_rate=learning_rate,
        head_learning_rate=head_learning_rate,
        warmup_steps=warmup_steps,
        decay_steps=decay_steps,
        precision=precision,
        threads=threads,
    )
    with _progress(steps) as (report, on_progress):
        outcome = run_recipe(
            settings,
            encoder=encoder,
            corpus_files=corpus or [],
            without=without or [],
            run_folder=run or training_dir(),
            out=out,
            facts=facts,
            checkpoint_seconds=checkpoint_minutes * 60,
            report=report,
            on_progress=on_progress,
        )
    _print(outcome, as_json=json)


def _print(outcome: "Outcome", *, as_json: bool) -> None:
    if as_json:
        show.print_json(outcome.to_json())
        return
    rows = [
        (name, fixed(score.loss, 3), fixed(score.accuracy, 3), score.n_hidden)
        for name, score in outcome.held_out.items()
    ]
    show.print_table(
        ["held-out text", "loss", "accuracy", "hidden tokens"],
        rows,
    )
    if outcome.relations:
        show.print_table(
            ["relation", "facts", "P@1", "P@10"],
            [
                (s.relation, s.n_facts, percent(s.p_at_1), percent(s.p_at_10))
                for s in outcome.relations
            ],
        )
    print(f"model: {outcome.folder}")


@contextmanager
def _progress(
    steps: int,
) -> Iterator[tuple[Callable[[str], None], Callable[["TrainingProgress"], None]]]:
    """Two reporters to standard error: a line for a stage, and the bar of the training itself."""
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[state]}", markup=False),
        console=Console(stderr=True),
    )
    with bar:
        task = bar.add_task("preparing", total=steps, state="")

        def report(stage: str) -> None:
            bar.update(task, description=stage)

        def on_progress(now: "TrainingProgress") -> None:
            state = f"loss {now.loss:.3f}, {now.tokens_per_second:,.0f} tokens/s"
            bar.update(task, description="training", completed=now.step, state=state)

        yield report, on_progress
