"""Generated texts are those of `transformers.generate`, token by token, for each prompt alone."""

from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_models import CAUSAL, SEQ2SEQ, open_family, tiny_tokenizer
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM

from lama_core.errors import ControlTokenError, UserError, WindowError
from lama_core.models.hf.generation import _Reader, _special_ids, generate, prompt_ids
from lama_core.models.protocols import Chat, GeneratedText, Message

PROMPTS = [
    "Paris",
    "The capital of France is",
    "The capital of Norway is",
    "Question: Where was the painter born?\nAnswer:",
    "Question: Where was the singer born?\nAnswer: London\n\nQuestion: In Rome?\nAnswer:",
    "The capital of France is",
]
SHOTS = "The capital of France is Paris. The capital of Norway is Oslo. "
SHARED = [f"{SHOTS}The capital of {name} is" for name in ("Italy", "Spain", "Japan")]
BORN = "Question: Where was the singer born?\nAnswer: London\n\nQuestion: Where was the "
TWO = [*SHARED, *(f"{BORN}{name} born?\nAnswer:" for name in ("painter", "king"))]
N = 12
# Two logits may trade places if they differ by less: the last digits of float32, through the
# layers, move a logit by up to 2e-5 from CPU to CPU. The texts after that are of other beginnings.
TIE = 1e-4


def alone(model: Any, prompt: str | Chat, folder: Path) -> tuple[str | None, list[float]]:
    """What `transformers.generate` gives for one prompt: the text, each token's log-probability.

    Where two tokens tie, there is no text, and the log-probabilities are those before the tie.
    """
    ids = torch.tensor([prompt_ids(model, prompt)])
    found = with_transformers(folder, model.kind).generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=N,
        do_sample=False,
        num_beams=1,
        return_dict_in_generate=True,
        output_logits=True,
        pad_token_id=model.tokenizer.pad_token_id or 0,
    )
    tokens = found.sequences[0, -len(found.logits) :]
    log_probs = [
        float(torch.log_softmax(row[0].float(), 0)[token])
        for row, token in zip(found.logits, tokens, strict=True)
    ]
    ends = generation_ends(model)
    kept = next((at for at, token in enumerate(tokens.tolist()) if token in ends), len(tokens))
    best = [row[0].float().topk(2).values.tolist() for row in found.logits]
    tie = next((at for at, (first, second) in enumerate(best) if first - second < TIE), None)
    decode = model.tokenizer.decode
    sentinels = set(model.vocabulary.sentinels) if model.kind == "seq2seq" else set()
    special = {
        token
        for token in tokens.tolist()
        if decode([token]) and not decode([token], skip_special_tokens=True)
    } | sentinels
    plain = [at for at, token in enumerate(tokens.tolist()) if token not in special]
    if tie is not None and tie <= kept:
        return None, [log_probs[at] for at in plain if at < tie]
    shown = [token for token in tokens[:kept].tolist() if token not in sentinels]
    text = decode(shown, skip_special_tokens=True)
    return text.partition("\n")[0], [log_probs[at] for at in plain]


def check_text(
    text: GeneratedText, expected: str | None, log_probs: list[float], atol: float
) -> None:
    if expected is not None:
        assert text.text == expected
    n = min(len(text.tokens), len(log_probs))
    np.testing.assert_allclose(text.log_probs[:n], log_probs[:n], atol=atol)


@cache
def with_transformers(folder: Path, kind: str) -> Any:
    auto = AutoModelForSeq2SeqLM if kind == "seq2seq" else AutoModelForCausalLM
    model = auto.from_pretrained(folder, dtype=torch.float32).eval()
    if model.config.model_type == "umt5":  # transformers scales as if its head was tied
        model.config.tie_word_embeddings = False
    return model


def generation_ends(model: Any) -> set[int]:
    ends = model.model.generation_config.eos_token_id
    return set() if ends is None else {ends} if isinstance(ends, int) else set(ends)


@pytest.mark.parametrize(
    "prompts", [PROMPTS, SHARED, TWO], ids=["mixed", "one start", "two starts"]
)
@pytest.mark.parametrize("family", [*CAUSAL, *SEQ2SEQ])
def test_texts_are_those_of_transformers(family: str, prompts: list[str], tmp_path: Path) -> None:
    model = open_family(family, tmp_path / "model")
    found = generate(model, prompts, N)
    for prompt, text in zip(prompts, found, strict=True):
        check_text(text, *alone(model, prompt, tmp_path / "model"), atol=1e-4)


CHAT_TEMPLATE = (
    "{% for one in messages %}{{ one['role'] + ': ' + one['content'] + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'assistant:' }}{% endif %}"
)


def test_a_chat_goes_through_the_template(tmp_path: Path) -> None:
    model = open_family("smollm2", tmp_path / "model")
    chat = Chat((Message("user", "Where is Paris?"),))
    model.tokenizer.chat_template = None
    with pytest.raises(UserError, match="has no chat template: ask with --plain"):
        prompt_ids(model, chat)
    model.tokenizer.chat_template = CHAT_TEMPLATE
    plain = "user: Where is Paris?\nassistant:"
    assert prompt_ids(model, chat) == prompt_ids(model, plain)
    (first,), (second,) = generate(model, [chat], 5), generate(model, [plain], 5)
    assert first.text == second.text


def read(template: str, text: str, *, is_chat: bool = True) -> GeneratedText:
    """The answer in a text of a model with this chat template, and with marks as special tokens."""
    tokenizer = deepcopy(tiny_tokenizer("smollm2"))
    marks = ["<|im_end|>", "<|channel>", "<channel|>", "[THINK]", "[/THINK]"]
    tokenizer.add_special_tokens({"additional_special_tokens": marks})
    tokenizer.chat_template = template
    ids, prompt = (tokenizer(part, add_special_tokens=False)["input_ids"] for part in
                   (text, template))  # fmt: skip
    reader = _Reader(tokenizer, _special_ids(tokenizer), prompt, is_chat=is_chat)
    return reader.answer(ids, [0.0] * len(ids), 99, in_time=True)


def test_special_tokens_of_a_chat_are_marks() -> None:
    found = read("<|im_end|>", "Paris<|im_end|>\nuser")
    assert (found.text, "".join(found.tokens), found.ending) == ("Paris", "Paris", "whole")
    found = read("<|channel> assistant:", "<|channel>thought\nLyon?\n<channel|>Paris")
    assert (found.text, found.mark) == ("Paris", "<|channel>thought")
    assert "".join(found.tokens) == "Paris"
    assert read("", "[THINK]Lyon?\nHm[/THINK]Paris").text == "Paris"
    assert read("", "[THINK]Lyon?\nHm").ending == "in reasoning"
    assert read("", "Paris<|im_end|> is", is_chat=False).text == "Paris is"


def test_a_block_that_the_template_opens_is_not_the_answer() -> None:
    template = "user: {{ x }} </think> assistant: <think>\n"
    assert read(template, "Lyon?\nHm").ending == "in reasoning"
    assert read(template, "Lyon?\n</think>\n\nParis\nIt is").text == "Paris"
    assert read("assistant: <think>\n", "Paris\nIt is").text == "Paris", "nothing closes it"
    assert read("[/THINK] [THINK]", "Lyon?\nHm[/THINK]Paris").text == "Paris"


def test_a_control_token_in_a_question_is_refused(tmp_path: Path) -> None:
    model = open_family("smollm2", tmp_path / "model")
    model.tokenizer.chat_template = CHAT_TEMPLATE
    control = model.tokenizer.eos_token
    with pytest.raises(ControlTokenError, match="a control token of"):
        prompt_ids(model, Chat((Message("user", f"Paris {control}"),)))


def test_a_prompt_that_is_too_long_is_refused(tmp_path: Path) -> None:
    model = open_family("smollm2", tmp_path / "model")
    with pytest.raises(WindowError, match=r"tokens, but .* takes at most"):
        generate(model, ["Paris and London " * 40], 5)
