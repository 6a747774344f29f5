"""`bench analogy`: the speed of the unsupervised analogy probes.

Workload: the four probes of one relation as in a probe run, drawn with one seed, so that every
probe contains the sentences of the same right pairs. Lower bound of the time (the limit): the
forward passes of the distinct sentences alone, on prepared tensors, with logits at the scored
positions only. Peer: a simple script that scores one sentence at a time, with logits at all
positions.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from lama_core.datasets.dataset import AnalogyRelation
from lama_core.models.cache import load_model
from lama_core.probes.analogy.instances import (
    PROBES,
    Instance,
    ProbeOptions,
    distinct_pairs,
    make_probe,
)
from lama_core.probes.analogy.scorers import ModelPairScorer
from lama_core.queries.analogy_templates import TEMPLATES, fill_template
from tools.bench.measuring import BenchRow, rates
from tools.bench.passes import copy_passes, full_passes
from tools.bench.workload import CAUSAL, MASKED

N_EACH = 10
LIMIT = "bare forward passes, scored positions only"
PEER = "sentence by sentence"
PAIRS = (
    ("Paris", "France"),
    ("Rome", "Italy"),
    ("Tokyo", "Japan"),
    ("Kuala Lumpur", "Malaysia"),
    ("Addis Ababa", "Ethiopia"),
    ("Ottawa", "Canada"),
    ("Reykjavik", "Iceland"),
    ("Tegucigalpa", "Honduras"),
    ("bird", "flock"),
    ("unhappy", "unhappily"),
    ("go", "went"),
    ("achieve", "achievement"),
)


def probe_instances(n_each: int) -> list[Instance]:
    """Return instances of the four probes of one relation, `n_each` for each probe."""
    relation = AnalogyRelation("bench", "encyclopedic", tuple((a, (b,)) for a, b in PAIRS))
    options = ProbeOptions(limit=n_each)
    pairs = distinct_pairs(relation)
    return [
        instance
        for probe in PROBES
        for instance in make_probe(relation, probe, options, pairs=pairs, part="all")
    ]


def sentences_of(instances: Sequence[Instance]) -> list[str]:
    """Return the two sentences of each instance in order, including repeated sentences."""
    template = TEMPLATES["what-to"]
    return [
        fill_template(template, (*instance.query, *pair)).text
        for instance in instances
        for pair in (instance.positive, instance.negative or instance.positive)
    ]


def run(*, repetitions: int = 3) -> Iterator[BenchRow]:
    """Measure the unsupervised probes with the embedded masked model and a causal model."""
    instances = probe_instances(N_EACH)
    yield _measure("pseudo-perplexity", load_model(MASKED), instances, repetitions)
    yield _measure("perplexity", load_model(CAUSAL), instances, repetitions)


def _measure(what: str, model: Any, instances: Sequence[Instance], repetitions: int) -> BenchRow:
    masked = model.kind == "masked"
    sentences = sentences_of(instances)
    distinct = list(dict.fromkeys(sentences))

    def score() -> None:
        # A new scorer each time, because scorers cache scores. Features aren't needed.
        judge = ModelPairScorer(model, _no_features, template=TEMPLATES["what-to"], normalise="sum")
        judge.prefer(instances)

    plain = (plain_masked if masked else plain_causal)(model, sentences)
    bare = (bare_masked if masked else bare_causal)(model, distinct)
    ours, peer, limit = rates(len(instances), (score, plain, bare), repetitions)
    name = f"analogy probes, {what}, {model.name}"
    return BenchRow(name, "instances/s", ours, peer, PEER, limit, LIMIT)


def _no_features(*_: object) -> Any:
    raise RuntimeError("Only supervised probes need features; this benchmark has none.")


def bare_masked(model: Any, texts: Sequence[str]) -> Callable[[], None]:
    """Return a function that runs the forward passes of copies, each with one masked token."""
    copies = []
    for text in texts:
        ids = model.framed(text)
        n_tokens = len(model.vocabulary.encode(text))
        start = (len(ids) - n_tokens) // 2
        for at in range(start, start + n_tokens):
            copies.append(([*ids[:at], model.hidden_id, *ids[at + 1 :]], at))
    return copy_passes(model, copies)


def plain_masked(model: Any, texts: Sequence[str]) -> Callable[[], None]:
    """Return a function that scores one sentence at a time, in copies with one masked token."""

    def scores() -> None:
        for text in texts:
            ids = torch.tensor(model.tokenizer(text)["input_ids"])
            at = torch.arange(1, len(ids) - 1)
            copies = ids.repeat(len(at), 1)
            copies[torch.arange(len(at)), at] = model.tokenizer.mask_token_id
            with torch.inference_mode():
                log_probs = model.model(input_ids=copies).logits.log_softmax(-1)
            log_probs[torch.arange(len(at)), at, ids[at]].sum().item()

    return scores


def bare_causal(model: Any, texts: Sequence[str]) -> Callable[[], None]:
    """Return a function that runs as many tokens as the sentences have distinct prefixes."""
    rows = [model.vocabulary.encode(text) for text in texts]
    prefixes = {tuple(row[:end]) for row in rows for end in range(1, len(row))}
    return full_passes(model, len(prefixes))


def plain_causal(model: Any, texts: Sequence[str]) -> Callable[[], None]:
    """Return a function that scores one sentence at a time."""

    def scores() -> None:
        for text in texts:
            ids = torch.tensor([model.vocabulary.encode(text)])
            with torch.inference_mode():
                log_probs = model.model(input_ids=ids).logits[0, :-1].log_softmax(-1)
            log_probs.gather(1, ids[0, 1:, None]).sum().item()

    return scores
