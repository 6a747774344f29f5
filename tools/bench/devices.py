"""`bench devices`: the speed of the models on each device, compared with bare forward passes.

For each model, device and precision: cloze queries per second (also with other batch sizes, to
choose the default size) and tokens of texts per second. Lower bound of the time (the limit): the
forward passes of the same batches alone. On a CPU, the CPU seconds of all cores are counted,
because other load on the machine affects them little.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from lama_core.candidates.columns import Columns
from lama_core.candidates.lists import common_vocabulary
from lama_core.models.cache import CACHE, Precision, load_model
from lama_core.models.devices import (
    VARIABLE,
    available_devices,
    chosen_device,
    requested_device,
    use_device,
)
from lama_core.models.protocols import Context
from lama_core.models.sources.catalog import find_model
from lama_core.models.sources.locations import locate
from lama_core.scoring.batches import encode_queries, score_cloze
from lama_core.scoring.blanks import fill
from lama_core.types import Query
from tools.bench.measuring import BenchRow, Way, rates
from tools.bench.passes import bare_passes, batched, planned
from tools.bench.workload import CAUSAL, MASKED, SUBJECTS, TEMPLATES, trex_like_queries

N_TEXTS = 12
SENTENCES_PER_TEXT = 4
ROWS = (8, 16, 32, 64, 128, 256)
UNBOUNDED = 1 << 20  # tokens per batch
LEFT: Context = "left"  # causal models: one pass per query, without rescoring
PRECISIONS: tuple[Precision, ...] = ("fp32", "bf16")


def run(*, n_queries: int = 256, repetitions: int = 3) -> Iterator[BenchRow]:
    """Measure queries and tokens per second of the installed models, in fp32 and bf16.

    Raises:
        UserError: If the chosen device is missing.
    """
    queries = trex_like_queries(n_queries)
    for name in (MASKED, CAUSAL):
        if locate(find_model(name)) is None:
            continue
        for device in measured_devices():
            for precision in PRECISIONS:
                with computing_on(device):
                    model = load_model(name, precision=precision)
                    what = f"{name}, {precision} on {device}"
                    yield from of_queries(model, queries, what, repetitions)
                    yield from of_tokens(model, what, repetitions)
                    CACHE.drop(model.name, precision, device)


def measured_devices() -> tuple[str, ...]:
    """Return the chosen device; with `auto`, each device of this machine."""
    if requested_device() != "auto":
        return (chosen_device(),)
    return tuple(name for name in available_devices() if name != "spread")


@contextmanager
def computing_on(device: str) -> Iterator[None]:
    """Load models on this device in the block."""
    before = os.environ.get(VARIABLE)
    use_device(device)
    try:
        yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before


def seconds_of(model: Any) -> tuple[Callable[[], float], str]:
    """Return the clock for a model's device, and the unit of its seconds."""
    if model.device == "cpu":
        return time.process_time, "CPU s"
    return time.perf_counter, "s"


def long_texts() -> list[str]:
    """Return a text of several sentences for each subject; no two texts begin alike."""
    texts = []
    for first, subject in enumerate(SUBJECTS[:N_TEXTS]):
        numbers = range(first, first + SENTENCES_PER_TEXT)
        templates = (TEMPLATES[number % len(TEMPLATES)] for number in numbers)
        texts.append(" ".join(fill(template, subject).text("Paris") for template in templates))
    return texts


def of_queries(model: Any, queries: list[Query], what: str, repetitions: int) -> list[BenchRow]:
    """Measure cloze queries per second with the default batch size and with others."""
    columns = common_vocabulary([model.vocabulary]).columns(model.vocabulary)
    bounds: list[dict[str, int]] = [{}, *({"max_rows": n, "max_tokens": UNBOUNDED} for n in ROWS)]
    ways: list[Way] = [
        bare_passes(model, planned(encode_queries(model, queries, LEFT))),
        *(partial(_score, model, queries, columns, **bound) for bound in bounds),
    ]
    clock, second = seconds_of(model)
    bare, ours, *others = rates(len(queries), ways, repetitions, clock)
    unit = f"queries/{second}"
    return [
        BenchRow(f"{what}: cloze queries", unit, ours, None, "", bare, "body alone"),
        *(
            BenchRow(f"{what}: {n_rows} rows per batch", unit, rate, ours, "default bounds")
            for n_rows, rate in zip(ROWS, others, strict=True)
        ),
    ]


def _score(model: Any, queries: list[Query], columns: Columns, **bounds: int) -> None:
    for _ in score_cloze(model, queries, columns, context=LEFT, **bounds):
        pass


def of_tokens(model: Any, what: str, repetitions: int) -> list[BenchRow]:
    """Measure the tokens per second that pass through the model while it scores texts.

    A masked model needs one pass per token of a text, a causal model one pass per text.
    """
    texts = long_texts()
    rows = [model.framed(text) for text in texts]
    part, name = model.model, "whole model, padded"
    if model.kind == "masked":
        frame = len(model.framed(""))
        rows = [row for row in rows for _ in row[frame:]]
        part, name = model.model.base_model, "body alone"
    rows.sort(key=len, reverse=True)
    batches = batched(rows, max(1, model.tokens_per_pass // len(rows[0])))
    ways: list[Way] = [bare_passes(model, batches, part), partial(model.token_log_probs, texts)]
    clock, second = seconds_of(model)
    bare, ours = rates(sum(map(len, rows)), ways, repetitions, clock)
    unit = f"tokens/{second}"
    return [BenchRow(f"{what}: tokens of texts", unit, ours, None, "", bare, name)]
