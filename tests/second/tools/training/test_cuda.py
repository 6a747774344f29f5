"""Batches for a GPU have the loss and gradient of the CPU's."""

from functools import partial
from pathlib import Path

import numpy as np
import torch

from tools.training.cuda import UNUSED, Chunks, masked_loss
from tools.training.loss import mean_cross_entropy
from tools.training.modelling import hidden_logits
from tools.training.recipe import prepare
from tools.training.train import Settings, attention_mask, draw

SETTINGS = Settings(steps=100, tokens_per_batch=128, max_length=24, precision="fp32", threads=1)


def test_padded_batches_have_the_loss_of_the_batches(tiny_encoder: Path, text_file: Path) -> None:
    ready = prepare(
        SETTINGS, encoder=tiny_encoder, corpus_files=[text_file], folder=text_file.parent
    )
    model, mask_id, pad_id = ready.model.eval(), ready.tokenizer.mask_token_id, 0
    chunks = Chunks(ready.sampler, partial(draw, SETTINGS), mask_id, SETTINGS.steps)
    assert len(chunks) == 2  # 100 steps in chunks of 64
    chunk, start, padded = chunks[1], 0, 0
    for number, batch in enumerate(ready.sampler.chunk(1)):
        shape = chunk.shapes[number]
        sizes = [shape.passages * shape.width, shape.masked, shape.masked]
        flat, places, targets = torch.from_numpy(chunk.values[start : start + sum(sizes)]).split(
            sizes
        )
        start += sum(sizes)
        ids = flat.view(shape.passages, shape.width)
        mask = (ids != pad_id)[:, None, None, :]
        hidden = torch.from_numpy(draw(SETTINGS, batch, 64 + number))
        assert int((targets != UNUSED).sum()) == int(hidden.sum())
        padded += shape.passages > len(batch.ids)
        rows = torch.from_numpy(batch.ids)
        logits = hidden_logits(
            model, rows.masked_fill(hidden, mask_id), attention_mask(batch), hidden
        )
        ours = _gradient(model, masked_loss(model, ids, mask, places, targets))
        right = _gradient(model, mean_cross_entropy(logits, rows[hidden]))
        np.testing.assert_allclose(ours, right, rtol=1e-4, atol=1e-6)
    assert padded and start == len(chunk.values)


def _gradient(model: torch.nn.Module, loss: torch.Tensor) -> np.ndarray:
    model.zero_grad()
    loss.backward()
    gradients = [value.grad.flatten() for value in model.parameters() if value.grad is not None]
    return torch.cat([loss.detach().reshape(1), *gradients]).numpy()
