"""`bench analogy`: the speed of the unsupervised probes beside the bare forward passes.

The workload is what a probe run asks: the four probes of one relation, drawn with one seed, so the
right pairs' sentences come back in every probe. The limit is the forward passes of the distinct
sentences alone, on tensors made before, with only the scored positions sent through the vocabulary
projection. The peer is the usual script: one sentence after the other as the instances come, all of
its positions projected. All ways are measured in turn, and the median is taken.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from lama_core.bench import BenchRow, rates
from lama_core.bench.passes import copy_passes, full_passes
from lama_core.bench.workload import CAUSAL, MASKED
from lama_core.datasets.dataset import AnalogyRelation
from lama_core.models.cache import load_model
from lama_core.probes.analogy.instances import PROBES, Instance, ProbeOptions, make_probe
from lama_core.probes.analogy.scorers import ModelJudge
from lama_core.probes.analogy.templates import TEMPLATES, fill

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
    """Instances of the four probes of one relation, `n_each` of every probe."""
    relation = AnalogyRelation("bench", "encyclopedic", tuple((a, (b,)) for a, b in PAIRS))
    options = ProbeOptions(limit=n_each)
    return [one for probe in PROBES for one in make_probe(relation, probe, options)]


def sentences_of(instances: Sequence[Instance]) -> list[str]:
    """Each instance's two sentences, in their order, repeated ones as often as they come."""
    template = TEMPLATES["what-to"]
    return [
        fill(template, (*one.query, *pair)).text
        for one in instances
        for pair in (one.positive, one.negative or one.positive)
    ]


def run(*, repetitions: int = 3) -> list[BenchRow]:
    """The unsupervised probes on the embedded masked model and on a causal one."""
    instances = probe_instances(N_EACH)
    return [
        _measure("pseudo-perplexity", load_model(MASKED), instances, repetitions),
        _measure("perplexity", load_model(CAUSAL), instances, repetitions),
    ]


def _measure(what: str, model: Any, instances: Sequence[Instance], repetitions: int) -> BenchRow:
    masked = model.kind == "masked"
    every = sentences_of(instances)
    distinct = list(dict.fromkeys(every))

    def ours() -> None:
        # A new judge each time: it remembers what it has scored. Its features aren't needed.
        judge = ModelJudge(model, _none, template=TEMPLATES["what-to"], normalise="sum")
        judge.prefer(instances)

    plain = (plain_masked if masked else plain_causal)(model, every)
    bare = (bare_masked if masked else bare_causal)(model, distinct)
    mine, peer, limit = rates(len(instances), (ours, plain, bare), repetitions)
    name = f"analogy probes, {what}, {model.name}"
    return BenchRow(name, "instances/s", mine, peer, PEER, limit, LIMIT)


def _none(*_: object) -> Any:
    raise RuntimeError("the benchmark is of the unsupervised probes")


def bare_masked(model: Any, texts: Sequence[str]) -> Callable[[], None]:
    """A call that sends all masked copies through the model."""
    copies = []
    for text in texts:
        ids = model.framed(text)
        n_tokens = len(model.text_ids(text))
        start = (len(ids) - n_tokens) // 2
        for at in range(start, start + n_tokens):
            copies.append(([*ids[:at], model.hidden_id, *ids[at + 1 :]], at))
    return copy_passes(model, copies)


def plain_masked(model: Any, texts: Sequence[str]) -> Callable[[], None]:
    """The usual script: one sentence's masked copies at a time, every position projected."""

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
    """A call that sends as many tokens through as the sentences have different beginnings."""
    rows = [model.text_ids(text) for text in texts]
    beginnings = {tuple(row[:end]) for row in rows for end in range(1, len(row))}
    return full_passes(model, len(beginnings))


def plain_causal(model: Any, texts: Sequence[str]) -> Callable[[], None]:
    """The usual script: one sentence at a time."""

    def scores() -> None:
        for text in texts:
            ids = torch.tensor([model.text_ids(text)])
            with torch.inference_mode():
                log_probs = model.model(input_ids=ids).logits[0, :-1].log_softmax(-1)
            log_probs.gather(1, ids[0, 1:, None]).sum().item()

    return scores
