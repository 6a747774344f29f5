"""`python -m tools.training.average`: average the weights of a model and of its continuation.

A model that was trained further on other text is better at this text and has forgotten some of the
first; the average of both is nearly as good at either (Wortsman et al. 2022, "Robust fine-tuning of
zero-shot models", section 3).
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import torch

from tools.training.export import export_model
from tools.training.modelling import load_encoder, load_tokenizer


def main(words: Sequence[str] | None = None) -> None:
    """Run the command with these arguments: store (1 - share) first + share second."""
    options = argparse.ArgumentParser("python -m tools.training.average", description=__doc__)
    options.add_argument("first", type=Path, help="Folder of the model.")
    options.add_argument("second", type=Path, help="Folder of the model that was trained further.")
    options.add_argument("--share", type=float, required=True, help="Share of the second model.")
    options.add_argument("--out", type=Path, required=True, help="Output folder.")
    given = options.parse_args(words)
    if not 0 <= given.share <= 1:
        options.error("--share must be between 0 and 1")
    model = load_encoder(given.first)
    theirs = dict(load_encoder(given.second).named_parameters())
    with torch.no_grad():
        for name, value in model.named_parameters():
            value.copy_((1 - given.share) * value + given.share * theirs[name])
    export_model(model, load_tokenizer(given.first), given.out)
    print(f"model: {given.out}")


if __name__ == "__main__":
    main()
