"""`bench trace`: causal traces, compared with bare forward passes of as many texts.

A text of 12 tokens is traced at every layer and token with 2 draws of noise. Peer: as many texts in
batches of 10, as the paper's code runs the draws of one layer and token. Limit: as many texts in
full batches without the LM head. A ratio above 1 is possible: texts of a draw share the layers
before the first restored layer. CPU seconds of one thread are counted, because other load on
the machine affects them little; several threads would also count the time they wait.
"""

import os
import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from lama_core.models.cache import load_model
from lama_core.models.protocols import Encoded, TracedPart
from lama_core.models.sources.catalog import find_model
from lama_core.models.sources.locations import locate
from lama_core.scoring.blanks import parse_query
from tools.bench.measuring import BenchRow, called_in_a_fresh_process, rates
from tools.bench.passes import bare_passes, batched
from tools.bench.workload import CAUSAL, MASKED

TEXT = "It is widely known that the capital of Norway is the old city of ___."
N_TOKENS, N_DRAWS = 12, 2
PAPER_BATCH = 10  # draws of noise in one pass
PARTS: tuple[TracedPart, ...] = ("states", "mlp")


def run(*, repetitions: int = 3) -> Iterator[BenchRow]:
    """Measure the restored texts per CPU second of the installed models.

    Args:
        repetitions: Number of measurements.
    """
    for name in (MASKED, CAUSAL):
        if locate(find_model(name)) is not None:
            os.environ["OMP_NUM_THREADS"] = "1"
            found = called_in_a_fresh_process(measure, name, repetitions)
            yield from (BenchRow(**row) for row in found)


def measure(name: str, repetitions: int) -> list[dict[str, Any]]:
    """Return a `BenchRow` as a dictionary for each restored part in `PARTS`."""
    model: Any = load_model(name, precision="fp32")
    encoded = encode(model)
    n_tokens, n_layers = len(encoded.token_ids), model.model.config.num_hidden_layers
    texts = [encoded.token_ids] * (N_DRAWS * n_tokens * n_layers)
    paper = bare_passes(model, list(batched(texts, PAPER_BATCH)))
    full = bare_passes(model, list(batched(texts, max(1, model.tokens_per_pass // n_tokens))))
    found = []
    for part in PARTS:

        def ours(part: TracedPart = part) -> None:
            model.trace(encoded, (n_tokens // 2,), [7], part=part, draws=N_DRAWS)

        rate, peer, limit = rates(len(texts), (ours, paper, full), repetitions, time.process_time)
        what = f"{model.name}, {part}, {n_tokens} tokens by {n_layers} layers"
        peer_name = f"passes of {PAPER_BATCH} texts"
        found.append(
            asdict(
                BenchRow(what, "texts/CPU s", rate, peer, peer_name, limit, "bare forward passes")
            )
        )
    return found


def encode(model: Any) -> Encoded:
    """Return a text of `N_TOKENS` tokens with a blank at its end."""
    query = parse_query(TEXT)
    encoded: Encoded = model.encode(query, "left" if model.kind == "causal" else "both")
    ids, blank = encoded.token_ids, encoded.positions[0]
    n_after = len(ids) - blank - 1
    ids = (*ids[: N_TOKENS - 1 - n_after], *ids[blank:])
    return Encoded(ids, (len(ids) - 1 - n_after,), encoded.places)
