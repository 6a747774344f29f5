"""`bench devices`: what a device makes of the models that are here, beside its bare passes.

For each model, device and precision: cloze queries a second, tokens of sentences a second, and
batches of other sizes, from which the bounds of batches are chosen. The limit is the same batches
through the model with nothing done before or after, timed in turn with ours. On a processor the
seconds are its own, of all cores together: what else the machine does then counts for little.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

from lama_core.asking.blanks import fill
from lama_core.asking.scoring import encode_queries, plan_batches, score_cloze
from lama_core.candidates.columns import Columns
from lama_core.candidates.lists import common_vocabulary
from lama_core.models.base import Context
from lama_core.models.catalog import find_model
from lama_core.models.devices import (
    VARIABLE,
    chosen_device,
    devices_here,
    use_device,
    wanted_device,
)
from lama_core.models.loader import CACHE, Precision, load_model
from lama_core.models.sources import locate
from lama_core.types import Query
from tools.bench import BenchRow
from tools.bench.cloze import CAUSAL, MASKED, SUBJECTS, TEMPLATES, medians, trex_like_queries

N_QUERIES = 256
REPETITIONS = 3
N_TEXTS = 12
SENTENCES_A_TEXT = 4
ROWS = (8, 16, 32, 64, 128, 256)
ANY = 1 << 20  # tokens: no bound
LEFT: Context = "left"  # of causal models: a pass a query, and no words rescored
PRECISIONS: tuple[Precision, ...] = ("fp32", "bf16")


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


def bare_passes(
    model: Any, batches: Sequence[Sequence[Sequence[int]]], part: Any
) -> Callable[[], None]:
    """A call that sends rows of token ids through a part of the model and does nothing else."""
    import torch

    from lama_core.models.devices import host

    made = []
    for rows in batches:
        ids, mask = model.padded(rows)
        made.append((ids.to(model.device), mask.to(model.device)))

    def run() -> None:
        with torch.inference_mode():
            for ids, mask in made:
                output = part(input_ids=ids, attention_mask=mask)[0]
            host(output.flatten()[:1])  # a card is done when its last number is here

    return run


def of_queries(model: Any, queries: list[Query], what: str, repetitions: int) -> list[BenchRow]:
    """Cloze queries a second with the default bounds, and with batches of other sizes."""
    columns = common_vocabulary([model.vocabulary]).columns(model.vocabulary)
    encoded = encode_queries(model, queries, LEFT)
    batches = [[encoded[n].token_ids for n in batch] for batch in plan_batches(encoded)]
    ways: list[Callable[[], object]] = [
        bare_passes(model, batches, model.model.base_model),
        lambda: _score(model, queries, columns),
    ]
    ways += [
        lambda n_rows=n_rows: _score(model, queries, columns, max_rows=n_rows, max_tokens=ANY)  # type: ignore[misc]
        for n_rows in ROWS
    ]
    clock, second = seconds_of(model)
    taken = medians(ways, repetitions, clock)
    bare, ours, *others = (len(queries) / seconds for seconds in taken)
    unit = f"queries/{second}"
    return [
        BenchRow(f"{what}: cloze queries", unit, ours, None, "", bare, "body alone"),
        *(
            BenchRow(f"{what}: {n_rows} rows a batch", unit, one, ours, "default bounds")
            for n_rows, one in zip(ROWS, others, strict=True)
        ),
    ]


def _score(model: Any, queries: list[Query], columns: Columns, **bounds: Any) -> None:
    for _ in score_cloze(model, queries, columns, context=LEFT, **bounds):
        pass


def of_tokens(model: Any, what: str, repetitions: int) -> list[BenchRow]:
    """Tokens a second that go through the model while it scores every token of some texts.

    A masked model is sent a text as often as it has tokens, a causal one once.
    """
    texts = long_texts()
    rows = [model.framed(text) for text in texts]
    part = model.model
    if model.kind == "masked":
        frame = len(model.framed("")) if texts else 0
        rows = [row for row in rows for _ in row[frame:]]
        part = model.model.base_model
    rows.sort(key=len, reverse=True)
    size = max(1, model.tokens_per_pass // len(rows[0]))
    batches = [rows[first : first + size] for first in range(0, len(rows), size)]
    ways = [bare_passes(model, batches, part), lambda: model.token_log_probs(texts)]
    n_tokens = sum(map(len, rows))
    clock, second = seconds_of(model)
    bare, ours = (n_tokens / seconds for seconds in medians(ways, repetitions, clock))
    name = "body alone" if model.kind == "masked" else "whole model, padded"
    row = BenchRow(f"{what}: tokens of texts", f"tokens/{second}", ours, None, "", bare, name)
    return [row]


def run(*, n_queries: int = N_QUERIES, repetitions: int = REPETITIONS) -> list[BenchRow]:
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
                    how = f"{precision} on {device}"
                    found += of_queries(model, queries, f"{name}, {how}", repetitions)
                    found += of_tokens(model, f"{name}, {how}", repetitions)
                    CACHE.drop(model.name, precision, device)
    return found
