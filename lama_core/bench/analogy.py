"""`bench analogy`: the speed of scoring analogies beside the bare forward passes.

Masked models are measured on pseudo-perplexities (one masked copy a token), the causal one on one
query with many candidate pairs. The limit is the forward passes alone, on tensors made before, with
only the scored positions sent through the vocabulary projection; the peer is the usual script:
one sentence after the other, all of its positions projected. Sentences differ in length. All ways
are measured in turn, and the median is taken.
"""

from collections.abc import Callable, Sequence
from itertools import permutations, product
from typing import Any

from lama_core.analogy.templates import TEMPLATES, fill
from lama_core.bench import BenchRow
from lama_core.bench.cloze import CAUSAL, MASKED, base_sized_model, medians

REPETITIONS = 3
N_SENTENCES = 120
N_SENTENCES_BASE = 24
N_CANDIDATES = 60
LIMIT = "bare forward passes, scored positions only"
PEER = "sentence by sentence"
PAIRS = (
    ("Paris", "France"), ("Rome", "Italy"), ("Tokyo", "Japan"), ("Kuala Lumpur", "Malaysia"),
    ("Addis Ababa", "Ethiopia"), ("Ottawa", "Canada"), ("Reykjavik", "Iceland"),
    ("Tegucigalpa", "Honduras"), ("bird", "flock"), ("unhappy", "unhappily"), ("go", "went"),
    ("achieve", "achievement"),
)  # fmt: skip


def analogy_sentences(n_sentences: int) -> list[str]:
    """Analogies of different lengths in the paper's template, each once."""
    template = TEMPLATES["what-to"]
    found = [fill(template, (*query, *pair)).text for query, pair in permutations(PAIRS, 2)]
    found += [fill(template, (*query, *pair[::-1])).text for query, pair in permutations(PAIRS, 2)]
    return found[:n_sentences]


def candidate_sentences(n_sentences: int) -> list[str]:
    """One query with many candidate pairs."""
    words = [word for pair in PAIRS[1:] for word in pair]
    pairs = [(head, tail) for head, tail in product(words, words) if head != tail]
    template = TEMPLATES["what-to"]
    return [fill(template, (*PAIRS[0], *pair)).text for pair in pairs[:n_sentences]]


def run(*, repetitions: int = REPETITIONS) -> list[BenchRow]:
    """Pseudo-perplexity of two sizes of masked model, and perplexity of a causal one."""
    from lama_core.models.loader import load_model

    return [
        _measure(
            "pseudo-perplexity, BERT base's size",
            base_sized_model(),
            analogy_sentences(N_SENTENCES_BASE),
            bare_masked,
            plain_masked,
            repetitions,
        ),
        _measure(
            f"pseudo-perplexity, {MASKED}",
            load_model(MASKED),
            analogy_sentences(N_SENTENCES),
            bare_masked,
            plain_masked,
            repetitions,
        ),
        _measure(
            f"perplexity of {N_CANDIDATES} candidate pairs, {CAUSAL}",
            load_model(CAUSAL),
            candidate_sentences(N_CANDIDATES),
            bare_causal,
            plain_causal,
            repetitions,
        ),
    ]


Make = Callable[[Any, Sequence[str]], Callable[[], object]]


def _measure(
    what: str, model: Any, texts: Sequence[str], bare: Make, plain: Make, repetitions: int
) -> BenchRow:
    ways = (lambda: model.token_log_probs(texts), plain(model, texts), bare(model, texts))
    ours, peer, limit = (len(texts) / seconds for seconds in medians(ways, repetitions))
    return BenchRow(what, "sentences/s", ours, peer, PEER, limit, LIMIT)


def bare_masked(model: Any, texts: Sequence[str]) -> Callable[[], None]:
    """A call that sends all masked copies through the model, those of one length together."""
    import torch

    rows: dict[int, list[tuple[list[int], int]]] = {}
    for text in texts:
        body = model.text_ids(text)
        ids = model.tokenizer(text)["input_ids"]
        start = (len(ids) - len(body)) // 2
        for at in range(start, start + len(body)):
            copy = [*ids[:at], model.tokenizer.mask_token_id, *ids[at + 1 :]]
            rows.setdefault(len(ids), []).append((copy, at))
    batches = []
    for width, copies in rows.items():
        size = max(1, 2048 // width)
        for first in range(0, len(copies), size):
            chunk = copies[first : first + size]
            where = (torch.arange(len(chunk)), torch.tensor([at for _, at in chunk]))
            batches.append((where, torch.tensor([ids for ids, _ in chunk])))

    def passes() -> None:
        for where, ids in batches:
            model.forward(where, input_ids=ids, attention_mask=torch.ones_like(ids))

    return passes


def plain_masked(model: Any, texts: Sequence[str]) -> Callable[[], None]:
    """The usual script: one sentence's masked copies at a time, every position projected."""
    import torch

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
    """A call that sends the shared beginning through once, and then the rest of every sentence."""
    import torch

    rows = [model.text_ids(text) for text in texts]
    shared = 0
    while len({tuple(row[: shared + 1]) for row in rows}) == 1:
        shared += 1
    width = max(len(row) for row in rows) - shared
    rest = torch.tensor([row[shared:] + [0] * (width - len(row) + shared) for row in rows])
    beginning = torch.tensor([rows[0][:shared]])
    first = (torch.zeros(shared, dtype=torch.int64), torch.arange(shared))
    later = (
        torch.tensor([n for n, row in enumerate(rows) for _ in row[shared + 1 :]]),
        torch.tensor([at for row in rows for at in range(len(row) - shared - 1)]),
    )

    def passes() -> None:
        _, output = model.forward(first, input_ids=beginning, use_cache=True)
        cache = output.past_key_values
        cache.batch_repeat_interleave(len(rows))
        model.forward(later, input_ids=rest, past_key_values=cache, use_cache=True)

    return passes


def plain_causal(model: Any, texts: Sequence[str]) -> Callable[[], None]:
    """The usual script: one sentence at a time."""
    import torch

    def scores() -> None:
        for text in texts:
            ids = torch.tensor([model.text_ids(text)])
            with torch.inference_mode():
                log_probs = model.model(input_ids=ids).logits[0, :-1].log_softmax(-1)
            log_probs.gather(1, ids[0, 1:, None]).sum().item()

    return scores
