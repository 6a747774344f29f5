"""`python -m tools.training`: train a masked language model from an encoder and text."""

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
    from tools.training.train import TrainingProgress

DESCRIPTION = """Give an encoder a masked-LM head, train both, and write a model that the app can
use. If the command is stopped, the same command resumes from its last checkpoint."""
EXAMPLES = """
Example: python -m tools.training --out my-model

With your own text: python -m tools.training --corpus notes.txt --steps 500 --out my-model
"""
# Field of `Settings` -> option, type, default, minimum and help.
SETTINGS: dict[str, tuple[str, type[int] | type[float], float, float, str]] = {
    "steps": ("--steps", int, 5000, 1, "Training steps, one batch each."),
    "seed": ("--seed", int, 0, 0, "Random seed of data order, masks and the new head."),
    "tokens_per_batch": ("--batch-tokens", int, 2048, 64, "Tokens per batch."),
    "max_length": ("--max-length", int, 64, 8, "Maximum tokens per passage, at most 512."),
    "learning_rate": ("--learning-rate", float, 5e-4, 0, "Peak learning rate of the encoder."),
    "head_learning_rate": (
        "--head-learning-rate",
        float,
        1e-3,
        0,
        "Peak learning rate of the head.",
    ),
    "warmup_steps": ("--warmup-steps", int, 200, 0, "Linear warm-up steps."),
    "decay_steps": ("--decay-steps", int, 2500, 0, "Linear decay steps at the end."),
    "threads": ("--threads", int, 2, 1, "CPU threads."),
}
MAX_TOKENS = 512


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    options = argparse.ArgumentParser(
        "python -m tools.training",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("--out", type=Path, required=True, help="Output folder of the model.")
    options.add_argument(
        "--encoder",
        type=Path,
        help="Folder of a BERT or RoBERTa encoder. Default: MiniLM, downloaded.",
    )
    options.add_argument(
        "--corpus",
        type=Path,
        action="append",
        default=[],
        help="Text file to train on; can be repeated. Default: the project's corpus.",
    )
    options.add_argument(
        "--without",
        action="append",
        default=[],
        help="Source of the project's corpus to exclude; can be repeated.",
    )
    options.add_argument(
        "--run", type=Path, help="Folder for corpus, log and checkpoints; a run in it is resumed."
    )
    for name, (option, kind, default, _, text) in SETTINGS.items():
        text = f"{text} (default {default:g})"
        options.add_argument(option, dest=name, type=kind, default=default, help=text)
    options.add_argument("--precision", choices=("bf16", "fp32"), default="bf16")
    options.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    options.add_argument(
        "--checkpoint-minutes", type=float, default=4.0, help="Minutes between checkpoints."
    )
    options.add_argument(
        "--facts", type=Path, help="Folder in LAMA's layout; also evaluate P@k on its facts."
    )
    options.add_argument(
        "--history", type=Path, help="Folder for the models at steps 0, 1, 2, 4, ... and the last."
    )
    options.add_argument("--json", action="store_true", help="Print the result as JSON.")
    return options


def train(words: Sequence[str]) -> None:
    """Run the command with these arguments. Raises UserError for invalid ones."""
    given = parser().parse_args(words)
    settings = {name: getattr(given, name) for name in (*SETTINGS, "precision", "device")}
    for name, (option, _, _, minimum, _) in SETTINGS.items():
        if not settings[name] >= minimum:
            raise UserError(f"{option} must be at least {minimum:g}, not {settings[name]:g}")
    if given.max_length > MAX_TOKENS:
        raise UserError(f"--max-length must be at most {MAX_TOKENS}, not {given.max_length}")
    # Check the arguments before loading torch, which takes seconds.
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
    """Yield two functions that report to standard error: the current stage, and the progress."""
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
            state = f"loss {now.loss:.3f}, {now.steps_per_second:.1f} steps/s"
            bar.update(task, description="training", completed=now.step, state=state)

        yield report, on_progress


if __name__ == "__main__":
    try:
        train(sys.argv[1:])
    except UserError as error:
        output.print_error(str(error))
        sys.exit(2)
