"""`python -m tools.training.average`: average the weights of a model and of its continuation.

A model that was trained further on other text is better at this text and has forgotten some of the
first; the average of both is nearly as good at either (Wortsman et al. 2022, "Robust fine-tuning of
zero-shot models", section 3).
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from lama_core.cli import output
from lama_core.errors import UserError
from tools.training.export import export_model
from tools.training.modelling import load_encoder, load_tokenizer


def average(first: Path, second: Path, share: float, out: Path) -> Path:
    """Store the model (1 - share) first + share second in `out`; return it.

    Raises:
        UserError: If the share isn't between 0 and 1, or the models have other weights.
    """
    if not 0 <= share <= 1:
        raise UserError(f"--share must be between 0 and 1, not {share:g}")
    model, other = load_encoder(first), load_encoder(second)
    theirs = dict(other.named_parameters())
    shapes = {name: value.shape for name, value in model.named_parameters()}
    if shapes != {name: value.shape for name, value in theirs.items()}:
        raise UserError(f"{first} and {second} don't have weights of the same names and shapes")
    with torch.no_grad():
        for name, value in model.named_parameters():
            value.copy_((1 - share) * value + share * theirs[name])
    return export_model(model, load_tokenizer(first), out, counts=None)


def main(words: Sequence[str] | None = None) -> None:
    """Run the command with these arguments."""
    options = argparse.ArgumentParser("python -m tools.training.average", description=__doc__)
    options.add_argument("first", type=Path, help="Folder of the model.")
    options.add_argument("second", type=Path, help="Folder of the model that was trained further.")
    options.add_argument("--share", type=float, required=True, help="Share of the second model.")
    options.add_argument("--out", type=Path, required=True, help="Output folder.")
    given = options.parse_args(words)
    print(f"model: {average(given.first, given.second, given.share, given.out)}")


if __name__ == "__main__":
    try:
        main()
    except UserError as error:
        output.print_error(str(error))
        sys.exit(2)
