"""`bench cloze`: cloze queries, compared with bare forward passes and transformers' pipeline."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import torch

from lama_core.candidates.lists import common_vocabulary
from lama_core.models.cache import load_model
from lama_core.models.protocols import RESCORED
from lama_core.models.sources.catalog import find_model
from lama_core.models.sources.locations import locate
from lama_core.queries.blank_answers import query_model
from lama_core.scoring.blanks import parse_query
from lama_core.types import Query
from tools.bench.measuring import (
    TARGET,
    BenchRow,
    Way,
    medians,
    rates,
)
from tools.bench.passes import bare_passes, batched, planned
from tools.bench.workload import (
    CAUSAL,
    base_sized_model,
    first_answers,
    plain_base_sized_model,
    trex_like_queries,
)

PIPELINE_BATCH = 32
# This project's targets: maximum values.
BOTH_SECONDS = 2.0  # CPU seconds of a causal model's answer with context "both"
FIRST_SECONDS = 0.5  # CPU seconds until its preliminary ranking
BOTH_TEXT = "___ is the capital of France."
N_BOTH = RESCORED  # sentences that an answer with context "both" scores
PIPELINE = "fill-mask pipeline"
WARM_TEXT = "The capital of France is [MASK]."


def run(*, n_queries: int = 256, repetitions: int = 3) -> Iterator[BenchRow]:
    """Measure everything; the causal model's rows only if it is on this machine.

    Raises:
        UserError: If a model can't be loaded.
    """
    yield from throughput(n_queries, repetitions)
    if locate(find_model(CAUSAL)) is not None:
        yield from warm_answers(4 * repetitions)
        yield from both_sides(repetitions)


def throughput(n_queries: int, repetitions: int) -> list[BenchRow]:
    """Measure `score_cloze` on many queries in fp32 and bf16."""
    queries = trex_like_queries(n_queries)
    fp32, bf16 = base_sized_model(), base_sized_model("bf16")
    plain, tokenizer = plain_base_sized_model()
    candidates = common_vocabulary([fp32.vocabulary])
    ways: list[Way] = [
        encoder_only(fp32, queries),
        encoder_only(fp32, queries, plain.base_model),
        partial(first_answers, fp32, queries, candidates),
        fill_mask_pipeline(plain, tokenizer, queries),
        encoder_only(bf16, queries),
        partial(first_answers, bf16, queries, candidates),
    ]
    bare, plain_bare, ours, pipeline, bf16_limit, bf16_ours = rates(n_queries, ways, repetitions)
    limit = max(bare, plain_bare)  # the faster of our BERT and transformers' BERT
    what, unit = f"{n_queries} cloze queries, a BERT-base-sized model", "queries/s"
    peer, name = f"{PIPELINE}, batch {PIPELINE_BATCH}", "encoder only"
    return [
        BenchRow(f"{what}, fp32", unit, ours, pipeline, peer, limit, name),
        BenchRow(f"{what}, bf16", unit, bf16_ours, ours, "fp32", bf16_limit, f"{name}, bf16"),
    ]


def encoder_only(model: Any, queries: Sequence[Query], body: Any = None) -> Callable[[], None]:
    """Return a function that only runs an encoder on the queries, with the fastest batch size.

    Encoding and sorting the queries isn't part of the function.

    body: the encoder. Default: the model's.
    """
    encoded = model.encode_all(queries, "both")
    plans = [
        bare_passes(model, planned(encoded, max_rows=size, max_tokens=1 << 20), body)
        for size in (16, 32, 64)
    ]
    seconds = medians(plans, 1)
    return plans[seconds.index(min(seconds))]


def fill_mask_pipeline(model: Any, tokenizer: Any, queries: Sequence[Query]) -> partial[object]:
    """Return a function that fills the blanks with transformers' pipeline."""
    from transformers import pipeline

    filler = pipeline("fill-mask", model=model, tokenizer=tokenizer, top_k=10)
    texts = [query.text(tokenizer.mask_token) for query in queries]
    return partial(filler, texts, batch_size=PIPELINE_BATCH)


def warm_answers(repetitions: int) -> list[BenchRow]:
    """Measure the top 5 answers of a causal and a BERT-base-sized model, both already loaded.

    Lower bounds of the time (the limits): one bare pass of each model; and these with the causal
    model's pass over the six words that may continue, without which no answer is a whole word.
    """
    masked, causal = base_sized_model(), load_model(CAUSAL)
    query = parse_query(WARM_TEXT)
    candidates = common_vocabulary([masked.vocabulary, causal.vocabulary])
    passes = [
        bare_passes(masked, [[masked.encode(query, "both").token_ids]]),
        bare_passes(causal, [[causal.encode(query, "left").token_ids]]),
    ]

    of_words = bare_passes(causal, [[(number,) for number in range(1000, 1006)]])
    ways: list[Way] = [
        lambda: [one() for one in passes],
        lambda: [one() for one in (*passes, of_words)],
        lambda: [query_model(model, query, candidates) for model in (masked, causal)],
    ]
    limit, whole_words, ours = medians(ways, repetitions)
    what, passes_of = f"warm top 5, {CAUSAL} and a BERT-base-sized model", "bare forward passes"
    return [
        BenchRow(what, "s", ours, None, "", limit, passes_of),
        BenchRow(what, "s", ours, None, "", whole_words, f"{passes_of}, and one for whole words"),
    ]


def both_sides(repetitions: int) -> list[BenchRow]:
    """Measure the CPU time of a causal model's top 5 answers with context "both".

    Peer: scoring `N_BOTH` whole sentences. Lower bound of the time (the limit): the
    passes and logits of only the tokens after the beginning that all sentences share.
    """
    model: Any = load_model(CAUSAL)
    query = parse_query(BOTH_TEXT)
    candidates = common_vocabulary([model.vocabulary])
    columns = candidates.columns(model.vocabulary)
    texts = [query.parts[0] + word + query.parts[1] for word in columns.words[:N_BOTH]]
    sentences = [model.encode(Query((text, "")), "left").token_ids for text in texts]
    n_suffix = model.encode(query, "both").n_suffix
    rows = torch.randint(100, 1000, (100, n_suffix))

    def scores(input_ids: Any, attention_mask: Any) -> tuple[Any]:
        logits = model.model(input_ids=input_ids, attention_mask=attention_mask).logits
        return (torch.log_softmax(logits.float(), dim=-1),)

    def bare() -> None:
        with torch.inference_mode():
            for _ in range(2):
                states = model.model.base_model(input_ids=rows)[0]
                torch.logsumexp(model.model.lm_head(states), dim=-1)

    def first_ranking() -> None:
        with suppress(StopIteration):
            query_model(model, query, candidates, context="both", columns=columns, on_first=_stop)

    ways: list[Way] = [
        bare,
        partial(
            query_model, model, query, candidates, gold="Paris", context="both", columns=columns
        ),
        bare_passes(model, batched(sentences, 25), scores),
        first_ranking,
    ]
    limit, ours, peer, first = medians(ways, repetitions, time.process_time)
    what = f"top 5 of {CAUSAL} with context both, loaded"
    return [
        BenchRow(f"{what}: preliminary", "CPU s", first, ours, "final", FIRST_SECONDS, TARGET),
        BenchRow(what, "CPU s", ours, peer, "whole sentences", limit, "bare endings"),
        BenchRow(what, "CPU s", ours, None, "", BOTH_SECONDS, TARGET),
    ]


def _stop(_: object) -> None:
    raise StopIteration
