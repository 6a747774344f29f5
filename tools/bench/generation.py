"""`bench generation`: answers generated to questions about the starter facts, with SmolLM2.

Peers: `transformers.generate` on batches of 32 prompts sorted by length, and, if
lm-evaluation-harness is installed, its `generate_until` with the same batch size. All use the same
chats, generate greedily and stop at the line break. Limit: the forward passes of whole prompts,
without decoding or stopping rules. One pass reads a batch; then each pass adds one token to every
unfinished text, until the texts have as many tokens as ours. Ours can be faster than this limit,
because it computes shared beginnings of prompts only once.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

from lama_core.models.hf.chat_templates import render_chat
from lama_core.models.hf.generation import generate, prompt_ids
from lama_core.models.hf.products import use_faster_products
from lama_core.models.protocols import Chat
from tools.bench.measuring import BenchRow, Way, rates
from tools.bench.workload import plain_model

MODEL = "smollm2-135m"
ROWS = 32
MAX_TOKENS = 32
FACTS = 20  # of each relation


def chats(n_queries: int, shots: int) -> list[Chat]:
    """Return prompts of `n_queries` starter facts, in the order of a run with `--limit 20`.

    Args:
        n_queries: Number of prompts.
        shots: Number of examples in each prompt.
    """
    from lama_core.datasets import load_dataset
    from lama_core.queries.question_prompts import (
        draw_examples,
        make_prompt,
        question_of,
        shuffle_facts,
    )

    dataset = load_dataset("starter")
    made: list[Chat] = []
    for relation in dataset.relations:
        shuffled = shuffle_facts(dataset, relation, 0)
        for fact in dataset.facts_of(relation.name)[:FACTS]:
            examples = [
                (question_of(relation, one), one.object)
                for one in draw_examples(shuffled, fact, shots)
            ]
            prompt = make_prompt(question_of(relation, fact), examples, "chat")
            if isinstance(prompt, Chat):
                made.append(prompt)
    return made[:n_queries]


def run(*, n_queries: int = 256, repetitions: int = 3) -> Iterator[BenchRow]:
    """Measure `n_queries` questions per second, without examples and with three each."""
    from lama_core.models.cache import load_model

    model: Any = load_model(MODEL, precision="fp32")
    network, tokenizer, _ = plain_model(MODEL, "fp32")
    use_faster_products(network)  # as in our model
    plain = SimpleNamespace(name=MODEL, model=network, tokenizer=tokenizer)
    for shots in (0, 3):
        prompts = chats(n_queries, shots)
        what = f"{len(prompts)} questions, {shots}-shot, {MODEL}, fp32"
        ways: list[Way] = [
            partial(generate, model, prompts, MAX_TOKENS),
            partial(by_transformers, plain, prompts),
            partial(bare_passes, plain, prompts, _lengths(model, prompts)),
        ]
        names = [f"transformers.generate, batches of {ROWS}"]
        harness = _harness(plain)
        if harness is not None:
            ways.append(partial(by_harness, harness, plain, prompts))
            names.append(f"lm-evaluation-harness, batches of {ROWS}")
        ours, peer, limit, *other = rates(len(prompts), ways, repetitions)
        for name, value in zip(names, (peer, *other), strict=True):
            yield BenchRow(
                what, "questions/s", ours, value, name, limit, "forward passes of whole prompts"
            )


def _sorted_batches(model: Any, prompts: Sequence[Chat]) -> list[list[list[int]]]:
    rows = sorted((prompt_ids(model, one) for one in prompts), key=len, reverse=True)
    return [rows[first : first + ROWS] for first in range(0, len(rows), ROWS)]


def _padded(model: Any, rows: Sequence[Sequence[int]]) -> dict[str, Any]:
    """Return the inputs of rows padded on the left, as `transformers.generate` needs them."""
    import torch

    width = max(map(len, rows))
    padding = model.tokenizer.pad_token_id or 0
    return {
        "input_ids": torch.tensor([[padding] * (width - len(row)) + list(row) for row in rows]),
        "attention_mask": torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows]),
    }


def by_transformers(model: Any, prompts: Sequence[Chat]) -> list[str]:
    """Generate with `transformers.generate`, which computes a batch until all its texts end."""
    import torch

    texts = []
    for rows in _sorted_batches(model, prompts):
        given = _padded(model, rows)
        with torch.inference_mode():
            found = model.model.generate(
                **given,
                max_new_tokens=MAX_TOKENS,
                do_sample=False,
                stop_strings=["\n"],
                tokenizer=model.tokenizer,
                pad_token_id=model.tokenizer.pad_token_id or 0,
            )
        texts += model.tokenizer.batch_decode(
            found[:, given["input_ids"].shape[1] :], skip_special_tokens=True
        )
    return texts


def _lengths(model: Any, prompts: Sequence[Chat]) -> list[int]:
    """Return each text's number of generated tokens (at least 1), as in `_sorted_batches`."""
    order = sorted(prompts, key=lambda one: len(prompt_ids(model, one)), reverse=True)
    return [max(1, len(one.tokens)) for one in generate(model, order, MAX_TOKENS)]


def bare_passes(model: Any, prompts: Sequence[Chat], lengths: Sequence[int]) -> None:
    """Run the forward passes that generate texts of these lengths, with a cache.

    lengths: number of generated tokens of each text, as `_lengths` returns them.
    """
    import torch

    at = 0
    for rows in _sorted_batches(model, prompts):
        left = lengths[at : at + len(rows)]
        at += len(rows)
        given = _padded(model, rows)
        with torch.inference_mode():
            cache = model.model(**given, use_cache=True, logits_to_keep=1).past_key_values
            going = list(range(len(rows)))
            mask = given["attention_mask"]
            for step in range(1, max(left)):
                kept = [place for place, row in enumerate(going) if left[row] > step]
                if len(kept) < len(going):
                    chosen = torch.tensor(kept)
                    cache.batch_select_indices(chosen)
                    mask, going = mask[chosen], [going[place] for place in kept]
                mask = torch.cat([mask, torch.ones((len(kept), 1), dtype=torch.int64)], dim=1)
                model.model(
                    input_ids=torch.zeros((len(kept), 1), dtype=torch.int64),
                    attention_mask=mask,
                    past_key_values=cache,
                    use_cache=True,
                )


def _harness(model: Any) -> Any | None:
    """Return the model in lm-evaluation-harness's wrapper; None if it isn't installed."""
    try:
        from lm_eval.models.huggingface import HFLM
    except ModuleNotFoundError:
        return None
    return HFLM(
        pretrained=model.model, tokenizer=model.tokenizer, backend="causal", batch_size=ROWS
    )


def by_harness(harness: Any, model: Any, prompts: Sequence[Chat]) -> list[str]:
    """Generate with lm-evaluation-harness's `generate_until`."""
    from lm_eval.api.instance import Instance

    options = {"until": ["\n"], "max_gen_toks": MAX_TOKENS, "do_sample": False}
    texts = [render_chat(model.name, model.tokenizer, prompt) for prompt in prompts]
    requests = [
        Instance("generate_until", {}, (text, options), number) for number, text in enumerate(texts)
    ]
    return list(harness.generate_until(requests, disable_tqdm=True))
