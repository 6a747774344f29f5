"""`python -m tools.training`: train a masked language model from an encoder and text.

A masked-LM head is added to the encoder, both are trained, and the model is written to a folder
that the app can use. If the command is stopped, the same command resumes from its last checkpoint.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from lama_core.cli import output
from lama_core.errors import UserError
from lama_core.paths import training_dir
from lama_core.rounding import fixed

# Option -> field of `Settings`, default, minimum and help.
SETTINGS: dict[str, tuple[str, float, float, str]] = {
    "--steps": ("steps", 5000, 1, "Training steps, one batch each."),
    "--seed": ("seed", 0, 0, "Random seed of data order, masks and the new head."),
    "--batch-tokens": ("tokens_per_batch", 2048, 64, "Tokens per batch."),
    "--learning-rate": ("learning_rate", 5e-4, 0, "Peak learning rate of the encoder."),
    "--head-learning-rate": ("head_learning_rate", 1e-3, 0, "Peak learning rate of the head."),
    "--warmup-steps": ("warmup_steps", 200, 0, "Linear warm-up steps."),
    "--decay-steps": ("decay_steps", 2500, 0, "Linear decay steps at the end."),
    "--threads": ("threads", 2, 1, "CPU threads."),
}


def main(words: Sequence[str]) -> None:
    """Run the command with these arguments. Raises UserError for invalid ones."""
    options = argparse.ArgumentParser("python -m tools.training", description=__doc__)
    options.add_argument("--out", type=Path, required=True, help="Output folder of the model.")
    options.add_argument(
        "--encoder", type=Path, help="Folder of a BERT encoder. Default: MiniLM, downloaded."
    )
    options.add_argument(
        "--without", action="append", default=[], help="Source to exclude; can be repeated."
    )
    options.add_argument(
        "--run",
        type=Path,
        default=training_dir(),
        help="Folder for corpus and checkpoints; a run in it is resumed.",
    )
    for option, (name, default, _, text) in SETTINGS.items():
        text = f"{text} (default {default:g})"
        options.add_argument(option, dest=name, type=type(default), default=default, help=text)
    options.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    options.add_argument(
        "--history", type=Path, help="Folder for the models at steps 0, 1, 2, 4, ... and the last."
    )
    given = options.parse_args(words)
    for option, (name, _, minimum, _) in SETTINGS.items():
        if not getattr(given, name) >= minimum:
            raise UserError(f"{option} must be at least {minimum:g}, not {getattr(given, name):g}")
    # Check the arguments before loading torch, which takes seconds.
    from tools.training.corpus.source_list import all_but
    from tools.training.recipe import run_recipe
    from tools.training.train import Settings

    scores = run_recipe(
        Settings(
            **{name: getattr(given, name) for name, *_ in SETTINGS.values()}, device=given.device
        ),
        encoder=given.encoder,
        sources=all_but(given.without),
        folder=given.run,
        out=given.out,
        history=given.history,
        report=output.print_note,
    )
    rows = [
        (name, fixed(score.loss, 3), fixed(score.accuracy, 3), score.n_hidden)
        for name, score in scores.items()
    ]
    output.print_table(["held-out text", "loss", "accuracy", "hidden tokens"], rows)
    print(f"model: {given.out}")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except UserError as error:
        output.print_error(str(error))
        sys.exit(2)
