"""The average of two models' weights."""

from pathlib import Path

import torch

from tools.training.average import average
from tools.training.export import export_model
from tools.training.modelling import load_encoder, load_tokenizer


def test_each_weight_is_between_those_of_the_two_models(tiny_encoder: Path, tmp_path: Path) -> None:
    tokenizer = load_tokenizer(tiny_encoder)
    folders = [tmp_path / "first", tmp_path / "second"]
    for seed, folder in enumerate(folders):
        model = load_encoder(tiny_encoder)
        torch.manual_seed(seed)
        with torch.no_grad():
            for value in model.parameters():
                value.copy_(torch.randn_like(value))
        export_model(model, tokenizer, folder, counts=None)
    first, second, mixed = (
        dict(load_encoder(folder).named_parameters())
        for folder in (*folders, average(*folders, 0.75, tmp_path / "mixed"))
    )
    for name, value in mixed.items():
        expected = 0.25 * first[name] + 0.75 * second[name]
        torch.testing.assert_close(value, expected.half().float())
