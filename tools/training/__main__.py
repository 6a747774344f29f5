"""`python -m tools.training`: make a masked language model from an encoder and text."""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from lama_core.cli import output
from lama_core.errors import UserError
from lama_core.paths import training_dir
from lama_core.rounding import fixed, percent

if TYPE_CHECKING:
    from tools.training.outcome import Outcome
    from tools.training.train import Progress as TrainingProgress

DESCRIPTION = """Give an encoder a masked-LM head, train both, and write a model that the app can
use. If the command is stopped, the same command resumes from its last checkpoint."""
EXAMPLES = """
Example: python -m tools.training --out my-model

With your own text: python -m tools.training --corpus notes.txt --steps 500 --out my-model
"""
# Option, type, default, least and help of each setting; by its name in `Settings`.
SETTINGS: dict[str, tuple[str, type[int] | type[float], float, float, str]] = {
    "steps": ("--steps", int, 5000, 1, "Batches to train on."),
    "seed": ("--seed", int, 0, 0, "Seed of order, masks and the new head."),
    "tokens_per_batch": ("--batch-tokens", int, 2048, 64, "Tokens of a batch."),
    "max_length": ("--max-length", int, 64, 8, "Tokens of a passage, at most 512."),
    "learning_rate": ("--learning-rate", float, 5e-4, 0, "Peak rate of the encoder."),
    "head_learning_rate": ("--head-learning-rate", float, 1e-3, 0, "Peak rate of the head."),
    "warmup_steps": ("--warmup-steps", int, 200, 0, "Steps in which the rate rises."),
    "decay_steps": ("--decay-steps", int, 2500, 0, "Last steps, in which the rate falls."),
    "threads": ("--threads", int, 2, 1, "CPU threads."),
}
MOST_TOKENS = 512


def parser() -> argparse.ArgumentParser:
    """The options of the command."""
    made = argparse.ArgumentParser(
        "python -m tools.training",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--out", type=Path, required=True, help="Folder of the finished model.")
    made.add_argument(
        "--encoder", type=Path, help="Folder of a BERT or RoBERTa encoder; else MiniLM is fetched."
    )
    made.add_argument(
        "--corpus",
        type=Path,
        action="append",
        default=[],
        help="A text file to train on; repeat it. Without it, the corpus is fetched.",
    )
    made.add_argument(
        "--without",
        action="append",
        default=[],
        help="A source of the fetched corpus to exclude; repeat it.",
    )
    made.add_argument(
        "--run", type=Path, help="Folder of corpus, log and checkpoints; a run there is resumed."
    )
    for name, (option, kind, default, _, text) in SETTINGS.items():
        text = f"{text} (default {default:g})"
        made.add_argument(option, dest=name, type=kind, default=default, help=text)
    made.add_argument("--precision", choices=("bf16", "fp32"), default="bf16")
    made.add_argument(
        "--checkpoint-minutes", type=float, default=4.0, help="Minutes between checkpoints."
    )
    made.add_argument(
        "--facts", type=Path, help="Folder in LAMA's layout: measure P@1 on its facts, too."
    )
    made.add_argument(
        "--history",
        type=Path,
        help="Folder for the models at steps 0, 1, 2, 4, ... and the last.",
    )
    made.add_argument("--json", action="store_true", help="Print the result as JSON.")
    return made


def train(words: Sequence[str]) -> None:
    """Train as the words of the command line say. Raises UserError for a mistake in them."""
    given = parser().parse_args(words)
    settings = {name: getattr(given, name) for name in (*SETTINGS, "precision")}
    for name, (option, _, _, least, _) in SETTINGS.items():
        if not settings[name] >= least:
            raise UserError(f"{option} is at least {least:g}, not {settings[name]:g}")
    if given.max_length > MOST_TOKENS:
        raise UserError(f"--max-length is at most {MOST_TOKENS}, not {given.max_length}")
    # Torch is loaded only after the command line was found right.
    from tools.training.outcome import run_recipe
    from tools.training.train import Settings

    with _progress(given.steps) as (report, on_progress):
        outcome = run_recipe(
            Settings(**settings),
            encoder=given.encoder,
            corpus_files=given.corpus,
            without=given.without,
            run_folder=given.run or training_dir(),
            out=given.out,
            facts=given.facts,
            history=given.history,
            checkpoint_seconds=given.checkpoint_minutes * 60,
            report=report,
            on_progress=on_progress,
        )
    _print(outcome, as_json=given.json)


def _print(outcome: "Outcome", *, as_json: bool) -> None:
    if as_json:
        output.print_json(outcome.to_json())
        return
    rows = [
        (name, fixed(score.loss, 3), fixed(score.accuracy, 3), score.n_hidden)
        for name, score in outcome.held_out.items()
    ]
    output.print_table(["held-out text", "loss", "accuracy", "hidden tokens"], rows)
    if outcome.relations:
        output.print_table(
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


if __name__ == "__main__":
    try:
        train(sys.argv[1:])
    except UserError as error:
        output.complain(str(error))
        sys.exit(2)
