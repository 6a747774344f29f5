"""Training steps on an NVIDIA GPU.

A step of a small model is hundreds of short kernels, and starting them one by one takes longer than
computing them. So each shape of batch is captured once as a CUDA graph of the whole step: passes,
clipping and optimizer. Batches are prepared in other processes, and padded to few shapes. Order
and masks are those of a run on a CPU; the weights differ only by rounding.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from tools.training.checkpoints import MOMENTS
from tools.training.masking import Mask
from tools.training.modelling import head_of
from tools.training.tokens import Batch, BatchSampler

Masks = Callable[[Batch, int], Mask]
WIDTHS, PASSAGES, MASKED = 8, 64, 256
"""Positions, passages and masked positions of a shape are multiples of these."""
WORKERS = 6
UNUSED = -100  # target of the masked positions that only fill the shape


@dataclass(frozen=True)
class BatchShape:
    """Size of a padded batch: passages, positions, masked positions."""

    passages: int
    width: int
    masked: int


@dataclass(frozen=True)
class Chunk:
    """Consecutive batches: their shapes, and one int32 array of their ids, places and targets."""

    shapes: tuple[BatchShape, ...]
    values: npt.NDArray[np.int32]


class Chunks(torch.utils.data.Dataset[Chunk]):
    """The padded batches of each chunk of the sampler, with masked tokens replaced."""

    def __init__(self, sampler: BatchSampler, masks: Masks, mask_id: int, steps: int) -> None:
        self._sampler, self._masks, self._mask_id = sampler, masks, mask_id
        self._steps = steps

    @property
    def n_batches(self) -> int:
        """Number of batches of a chunk."""
        return self._sampler.batches_per_chunk

    def __len__(self) -> int:
        """Return the number of chunks that the steps need."""
        return -(-self._steps // self.n_batches)

    def __getitem__(self, number: int) -> Chunk:
        """Return one chunk."""
        first = number * self.n_batches
        shapes, values = [], []
        for offset, batch in enumerate(self._sampler.chunk(number)):
            shape, arrays = self._padded(batch, self._masks(batch, first + offset))
            shapes.append(shape)
            values += arrays
        return Chunk(tuple(shapes), np.concatenate(values))

    def _padded(self, batch: Batch, hidden: Mask) -> tuple[BatchShape, list[npt.NDArray[np.int32]]]:
        n, width = batch.ids.shape
        shape = BatchShape(
            _multiple(n, PASSAGES), _multiple(width, WIDTHS), _multiple(int(hidden.sum()), MASKED)
        )
        ids = np.full((shape.passages, shape.width), self._sampler.pad_id, dtype=np.int32)
        ids[:n, :width] = np.where(hidden, self._mask_id, batch.ids)
        ids[n:, 0] = self._mask_id  # attention over no position would be undefined
        rows, columns = np.nonzero(hidden)
        places = np.zeros(shape.masked, dtype=np.int32)
        places[: len(rows)] = rows * shape.width + columns
        targets = np.full(shape.masked, UNUSED, dtype=np.int32)
        targets[: len(rows)] = batch.ids[hidden]
        return shape, [ids.ravel(), places, targets]


class CudaSteps:
    """Runs training steps on a GPU, in order from `first_step`.

    Args:
        model: Encoder with a masked-LM head, on the GPU.
        optimizer: Its optimizer, `capturable` and with learning rates as tensors on the GPU.
        chunks: The batches.
        pad_id: Token id of the padding.
        clip_norm: Maximum norm of the gradient.
        bf16: Whether to compute in bf16.
    """

    def __init__(
        self,
        model: Any,
        optimizer: torch.optim.Optimizer,
        chunks: Chunks,
        *,
        pad_id: int,
        clip_norm: float,
        bf16: bool,
    ) -> None:
        self._model, self._optimizer, self._chunks = model, optimizer, chunks
        self._pad_id, self._clip_norm, self._bf16 = pad_id, clip_norm, bf16
        self._captured: dict[
            BatchShape, tuple[torch.cuda.CUDAGraph, torch.Tensor, torch.Tensor]
        ] = {}
        self._pool = torch.cuda.graph_pool_handle()
        model.set_attn_implementation("sdpa")
        for value in model.parameters():
            optimizer.state.setdefault(value, _no_moments(value))

    def losses(self, first_step: int) -> Iterator[torch.Tensor]:
        """Yield the loss of each step, a scalar on the GPU, after computing the step."""
        chunk, skipped = divmod(first_step, self._chunks.n_batches)
        loader = torch.utils.data.DataLoader(
            self._chunks,
            batch_size=None,
            sampler=range(chunk, len(self._chunks)),
            num_workers=WORKERS,
            prefetch_factor=4,
            collate_fn=_as_it_is,
        )
        for one in loader:
            values = torch.from_numpy(one.values).pin_memory().cuda(non_blocking=True)
            start = 0
            for number, shape in enumerate(one.shapes):
                end = start + shape.passages * shape.width + 2 * shape.masked
                if number >= skipped:
                    yield self._step(shape, values[start:end])
                start = end
            skipped = 0

    def _step(self, shape: BatchShape, values: torch.Tensor) -> torch.Tensor:
        if shape not in self._captured:
            self._captured[shape] = self._capture(shape, values)
        graph, inputs, loss = self._captured[shape]
        inputs.copy_(values)
        graph.replay()
        return loss.clone()

    def _capture(
        self, shape: BatchShape, values: torch.Tensor
    ) -> tuple[torch.cuda.CUDAGraph, torch.Tensor, torch.Tensor]:
        inputs = values.clone()
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):  # libraries choose their kernels, weights stay
            self._loss(shape, inputs).backward()
            self._optimizer.zero_grad(set_to_none=True)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):
            loss = self._loss(shape, inputs)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self._model.parameters(), self._clip_norm, foreach=True)
            self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        return graph, inputs, loss.detach()

    def _loss(self, shape: BatchShape, inputs: torch.Tensor) -> torch.Tensor:
        sizes = [shape.passages * shape.width, shape.masked, shape.masked]
        flat, places, targets = inputs.split(sizes)
        ids = flat.view(shape.passages, shape.width)
        mask = (ids != self._pad_id)[:, None, None, :]
        with torch.autocast(
            ids.device.type, dtype=torch.bfloat16, enabled=self._bf16, cache_enabled=False
        ):
            return masked_loss(self._model, ids, mask, places, targets)


def masked_loss(
    model: Any,
    ids: torch.Tensor,
    mask: torch.Tensor,
    places: torch.Tensor,
    targets: torch.Tensor,
) -> torch.Tensor:
    """Return the mean cross-entropy at the masked positions, a float32 scalar.

    Args:
        model: Encoder with a masked-LM head.
        ids: Token ids, int32 [passage, position].
        mask: True for tokens, bool [passage, 1, 1, position].
        places: Masked positions in the flattened ids, int32 [masked position].
        targets: Right token ids, int32 [masked position]; `UNUSED` for places that don't count.
    """
    states = model.base_model(input_ids=ids, attention_mask=mask)[0]
    logits = head_of(model)(states.flatten(0, 1).index_select(0, places))
    return torch.nn.functional.cross_entropy(logits.float(), targets.long(), ignore_index=UNUSED)


def _no_moments(value: torch.Tensor) -> dict[str, torch.Tensor]:
    step = torch.zeros((), dtype=torch.float32, device=value.device)
    return {"step": step} | {moment: torch.zeros_like(value) for moment in MOMENTS}


def _multiple(n: int, of: int) -> int:
    return -(-n // of) * of


def _as_it_is(chunk: Any) -> Any:
    return chunk
