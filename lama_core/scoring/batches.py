"""Scores of many cloze queries: batched by length, streamed block by block.

The plan of the batches depends on the queries and the model alone, so a run that stops can go on
with the batch it stopped at and gets the same numbers to the last bit.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lama_core.candidates.columns import Columns
from lama_core.models.protocols import KINDS, BlankFiller, Context, Encoded
from lama_core.scoring.blanks import follows_only_punctuation
from lama_core.types import Query

# What a batch may hold. Of 8, 16, 32 and 64 rows of short queries, 32 took the least time of an
# encoder of BERT base's size (64 took a tenth more), and logits are rows x vocabulary in memory.
MAX_ROWS = 32
MAX_TOKENS = 1024


@dataclass(frozen=True, slots=True)
class ScoreBlock:
    """The scores of one batch.

    number: of the batch in the plan. indices: int64 [query], positions in the list of queries.
    log_probs, order: float32 [query, candidate], as in `models.base.Scores`.
    """

    number: int
    indices: NDArray[np.int64]
    log_probs: NDArray[np.float32]
    order: NDArray[np.float32] | None


def choose_context(model: BlankFiller, query: Query, wanted: Context | None = None) -> Context:
    """The context a query is scored with.

    The one that is asked for, where the model has it. Else the left alone, where nothing but
    punctuation follows the blank, and both sides where something does.
    """
    contexts = KINDS[model.kind].contexts
    if wanted in contexts:
        return wanted
    ends = all(follows_only_punctuation(query, blank) for blank in range(query.n_blanks))
    return contexts[0] if ends else contexts[-1]


def encode_queries(
    model: BlankFiller, queries: Sequence[Query], context: Context | None = None
) -> list[Encoded]:
    """Queries of one blank each as tokens, in their order.

    Raises UserError if one doesn't fit the model's window, ValueError for one with several blanks.
    """
    for number, query in enumerate(queries):
        if query.n_blanks != 1:
            raise ValueError(f"query {number} has {query.n_blanks} blanks; one is scored at a time")
    contexts = [choose_context(model, query, context) for query in queries]
    encoded: dict[int, Encoded] = {}
    for chosen in sorted(set(contexts)):
        at = [number for number, here in enumerate(contexts) if here == chosen]
        rows = model.encode_all([queries[number] for number in at], chosen)
        encoded |= dict(zip(at, rows, strict=True))
    return [encoded[number] for number in range(len(queries))]


def n_tokens(query: Encoded) -> int:
    """About how many tokens a model computes for a query.

    Where both sides of a causal model's blank count: the right one anew behind each rescored word.
    """
    again = query.n_rescored * (1 + query.n_suffix) if query.suffix else 0
    return len(query.token_ids) + again


def plan_batches(
    encoded: Sequence[Encoded], *, max_rows: int = MAX_ROWS, max_tokens: int = MAX_TOKENS
) -> list[list[int]]:
    """Indices of the queries of each batch, the longest first, equal lengths in given order.

    The longest first: a machine that has too little memory says so at once.
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
    """Scores of queries of one blank each, a block a batch.

    The log-softmax is over the whole vocabulary before the candidates are picked.
    Source: Petroni et al. 2019, section 4.4.
    """
    encoded = encode_queries(model, queries, context)
    batches = plan_batches(encoded, max_rows=max_rows, max_tokens=max_tokens)
    for number, batch in enumerate(batches):
        scores = model.blank_log_probs([encoded[index] for index in batch], columns)
        yield ScoreBlock(number, np.array(batch, dtype=np.int64), scores.log_probs, scores.order)
