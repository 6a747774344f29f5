"""`bench devices`: what a device makes of the models that are here, next to its bare passes.

For each model, device and precision: cloze queries a second, tokens of sentences a second, and
batches of other sizes, from which the bounds of batches are chosen. The limit is the same batches
through the model with nothing done before or after, timed in turn with ours. On a CPU the seconds
are its own, of all cores together: what else the machine does then counts for little.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import Any

from lama_core.bench import BenchRow, Way, rates
from lama_core.bench.passes import bare_passes, batched, planned
from lama_core.bench.workload import CAUSAL, MASKED, SUBJECTS, TEMPLATES, trex_like_queries
from lama_core.candidates.columns import Columns
from lama_core.candidates.lists import common_vocabulary
from lama_core.models.cache import CACHE, Precision, load_model
from lama_core.models.devices import (
    VARIABLE,
    chosen_device,
    devices_here,
    use_device,
    wanted_device,
)
from lama_core.models.protocols import Context
from lama_core.models.sources.catalog import find_model
from lama_core.models.sources.locations import locate
from lama_core.scoring.batches import encode_queries, score_cloze
from lama_core.scoring.blanks import fill
from lama_core.types import Query

N_TEXTS = 12
SENTENCES_A_TEXT = 4
ROWS = (8, 16, 32, 64, 128, 256)
ANY = 1 << 20  # tokens: no bound
LEFT: Context = "left"  # of causal models: a pass a query, and no words rescored
PRECISIONS: tuple[Precision, ...] = ("fp32", "bf16")


def run(*, n_queries: int = 256, repetitions: int = 3) -> list[BenchRow]:
    """All rows, for the models that are here. Raises UserError for a device that isn't."""
    queries = trex_like_queries(n_queries)
    found = []
    for name in (MASKED, CAUSAL):
        if locate(find_model(name)) is None:
            continue
        for device in measured_devices():
            for precision in PRECISIONS:
                with computing_on(device):
                    model = load_model(name, precision=precision)
                    what = f"{name}, {precision} on {device}"
                    found += of_queries(model, queries, what, repetitions)
                    found += of_tokens(model, what, repetitions)
                    CACHE.drop(model.name, precision, device)
    return found


def measured_devices() -> tuple[str, ...]:
    """The device that was asked for; with `auto` all that are here, each by itself."""
    if wanted_device() != "auto":
        return (chosen_device(),)
    return tuple(name for name in devices_here() if name != "spread")


@contextmanager
def computing_on(device: str) -> Iterator[None]:
    """Models are loaded on that device in the block."""
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
    """The clock that a model's device is measured by, and what its seconds are called."""
    if model.device == "cpu":
        return time.process_time, "processor s"
    return time.perf_counter, "s"


def long_texts() -> list[str]:
    """A text a subject, of several sentences; no two begin alike."""
    texts = []
    for number, subject in enumerate(islice(SUBJECTS, N_TEXTS)):
        asked = [TEMPLATES[(number + step) % len(TEMPLATES)] for step in range(SENTENCES_A_TEXT)]
        texts.append(" ".join(fill(template, subject).text("Paris") for template in asked))
    return texts


def of_queries(model: Any, queries: list[Query], what: str, repetitions: int) -> list[BenchRow]:
    """Cloze queries a second with the default bounds, and with batches of other sizes."""
    columns = common_vocabulary([model.vocabulary]).columns(model.vocabulary)
    bounds: list[dict[str, int]] = [{}, *({"max_rows": n, "max_tokens": ANY} for n in ROWS)]
    ways: list[Way] = [
        bare_passes(model, planned(encode_queries(model, queries, LEFT))),
        *(partial(_score, model, queries, columns, **one) for one in bounds),
    ]
    clock, second = seconds_of(model)
    bare, ours, *others = rates(len(queries), ways, repetitions, clock)
    unit = f"queries/{second}"
    return [
        BenchRow(f"{what}: cloze queries", unit, ours, None, "", bare, "body alone"),
        *(
            BenchRow(f"{what}: {n_rows} rows a batch", unit, one, ours, "default bounds")
            for n_rows, one in zip(ROWS, others, strict=True)
        ),
    ]


def _score(model: Any, queries: list[Query], columns: Columns, **bounds: int) -> None:
    for _ in score_cloze(model, queries, columns, context=LEFT, **bounds):
        pass


def of_tokens(model: Any, what: str, repetitions: int) -> list[BenchRow]:
    """Tokens a second that go through the model while it scores every token of some texts.

    A masked model is sent a text as often as it has tokens, a causal one once.
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
