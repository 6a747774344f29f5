"""Scores of many cloze queries, batched by length and streamed batch by batch.

The batches depend only on the queries and the model, so a resumed run has the same batches as one
that wasn't stopped, and bit-identical scores.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lama_core.candidates.columns import Columns
from lama_core.grouping import grouped
from lama_core.models.protocols import KINDS, BlankFiller, Context, Encoded
from lama_core.scoring.blanks import follows_only_punctuation
from lama_core.types import Query

# Maximum batch size. With short queries and a BERT-base encoder, 32 rows were the fastest of 8, 16,
# 32 and 64 (64 took 10 % longer). The logits of a batch take rows x vocabulary x 4 bytes.
MAX_ROWS = 32
MAX_TOKENS = 1024


@dataclass(frozen=True, slots=True)
class ScoreBlock:
    """The scores of one batch.

    Attributes:
        number: Index of the batch.
        indices: Indices of the batch's queries, int64 [query].
        log_probs: float32 [query, candidate], as in `models.protocols.Scores`.
        order: float32 [query, candidate], as in `models.protocols.Scores`.
        gold: float32 [query], as in `models.protocols.Scores`.
        gold_log_probs: float32 [query], as in `models.protocols.Scores`.
    """

    number: int
    indices: NDArray[np.int64]
    log_probs: NDArray[np.float32]
    order: NDArray[np.float32] | None
    gold: NDArray[np.float32] | None = None
    gold_log_probs: NDArray[np.float32] | None = None


def choose_context(model: BlankFiller, query: Query, wanted: Context | None = None) -> Context:
    """Return the context that a query is scored with.

    This is `wanted` if the model supports it. Otherwise, it is the first context of the model's
    kind if only punctuation follows every blank, else the last one. For causal models the first is
    `left` and the last is `both`.
    """
    contexts = KINDS[model.kind].contexts
    if wanted in contexts:
        return wanted
    ends = all(follows_only_punctuation(query, blank) for blank in range(query.n_blanks))
    return contexts[0] if ends else contexts[-1]


def encode_queries(
    model: BlankFiller, queries: Sequence[Query], context: Context | None = None
) -> list[Encoded]:
    """Return queries, of one blank each, as the model's tokens.

    Raises:
        UserError: If a query doesn't fit the model's window.
        ValueError: If a query has several blanks.
    """
    if any(query.n_blanks != 1 for query in queries):
        raise ValueError("a query has several blanks; one is scored at a time")
    contexts = [choose_context(model, query, context) for query in queries]
    encoded: dict[int, Encoded] = {}
    for chosen, numbers in grouped(zip(contexts, range(len(queries)), strict=True)).items():
        rows = model.encode_all([queries[number] for number in numbers], chosen)
        encoded |= zip(numbers, rows, strict=True)
    return [encoded[number] for number in range(len(queries))]


def plan_batches(
    encoded: Sequence[Encoded], *, max_rows: int = MAX_ROWS, max_tokens: int = MAX_TOKENS
) -> list[list[int]]:
    """Return the indices of the queries in each batch: the longest first, ties in given order.

    The first batch needs most memory, so a run that lacks memory fails at its start.
    """
    order = sorted(range(len(encoded)), key=lambda number: -len(encoded[number].token_ids))
    batches: list[list[int]] = []
    for number in order:
        batch = batches[-1] if batches else None
        width = len(encoded[batch[0]].token_ids) if batch else 0
        if batch and len(batch) < max_rows and (len(batch) + 1) * width <= max_tokens:
            batch.append(number)
        else:
            batches.append([number])
    return batches


def score_cloze(
    model: BlankFiller,
    queries: Sequence[Query],
    columns: Columns,
    *,
    context: Context | None = None,
    max_rows: int = MAX_ROWS,
    max_tokens: int = MAX_TOKENS,
) -> Iterator[ScoreBlock]:
    """Yield the candidates' scores for queries of one blank each, batch by batch.

    The log-softmax is over the whole vocabulary, before the candidates are selected.
    Source: Petroni et al. 2019, section 4.4.
    """
    encoded = encode_queries(model, queries, context)
    for number, batch in enumerate(plan_batches(encoded, max_rows=max_rows, max_tokens=max_tokens)):
        scores = model.blank_log_probs([encoded[index] for index in batch], columns)
        yield ScoreBlock(number, np.array(batch, dtype=np.int64), scores.log_probs, scores.order)
