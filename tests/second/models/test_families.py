"""Every family that transformers lists answers as a plain forward pass of it does, or is refused.

The reference is transformers' own model, asked one text at a time: nothing cut, padded or cached;
of a causal model, each token by a pass over what stands left of it and no more. Every kind of query
and of run asks each family, too: it answers, or says in a sentence why it can't.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from every_kind import PAIRS, QUESTION, SENTENCES, ask_every_kind
from families import LISTED, WINDOW, families, make_family, tokenizer_of
from huggingface_hub.errors import StrictDataclassError
from plain_model import Plain
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from lama_core.candidates.columns import Candidates
from lama_core.candidates.spelling import AFTER_SPACE
from lama_core.errors import UserError
from lama_core.models.hf.generation import generate
from lama_core.models.protocols import Kind
from lama_core.models.registry import SPAN_FILLERS, find_kind, open_model
from lama_core.models.sources.locations import LocatedModel
from lama_core.scoring.blanks import parse_query

FULL = Candidates("full", None)
QUERIES = tuple(
    parse_query(text)
    for text in (
        "The capital of France is [MASK].",
        "Anna was a [MASK] who didn't live in Kraków, said Ann (the painter).",
        "Oslo's [MASK]",
    )
)
STATEMENTS = (
    "The capital of France is Paris.",
    "The capital of France is Rome, said Ann.",
    "Oslo is a city",
)
SHORT = ("Oslo is", "Oslo may")  # they share their beginning even within the shortest window
PROMPTS = (
    "Paris",
    "The capital of France is",
    "The capital of France is Paris. The capital of Norway is Oslo. The capital of Italy is",
    "The capital of France is Paris. The capital of Norway is Oslo. Ann",
    "The capital of France is",
)
N_GENERATED = 5
# Two logits may trade places if they differ by less.
TIE = 1e-3
TOLERANCE = 1e-4
# Of a value after several cached steps, each of which adds its last digits to the state: a hybrid
# of Mamba layers and attention is off by 1.6e-4.
IN_STEPS = 5e-4
# Of a value itself: the last digits of fp32 logits differ between CPUs. -53.7426 is off by 1.1e-4
# on an EPYC with bf16, whose libraries add in another order.
RELATIVE = 1e-5
# Of all families, those that are refused, and words of the sentence that says why.
FUTURE = "depend on the right context"
REFUSED: dict[tuple[Kind, str], str] = {
    ("masked", "perceiver"): "have no token embeddings",
    ("masked", "reformer"): "at random",
    ("causal", "cpmant"): FUTURE,
    ("causal", "emu3"): "Can't load a model from",  # what is saved names no language model
    ("causal", "mllama"): "Can't load a model from",
    ("causal", "prophetnet"): FUTURE,
    ("causal", "reformer"): "at random",
    ("causal", "xlnet"): FUTURE,
}
# Those of one class for both kinds, which a folder is read as a masked model of.
BOTH_KINDS = ("xlm",)
# What a model may say that it can't, and words of the sentence that says why.
CANNOT = {
    "ask": "can't generate text: choose a causal",
    "generation": "can't generate text: choose a causal",
    "inspect layers": "Can't read the layers of",
    "inspect logit": "Can't read the attention and MLPs of",
    "inspect trace": "Can't read the attention and MLPs of",
    "tracing": "Can't read the attention and MLPs of",
}
# Those that people ask most: each goes all the ways to be fast, and has nothing to say of it.
USUAL = (
    "albert", "bert", "deberta", "distilbert", "electra", "gemma", "gemma2", "gemma3_text",
    "gpt2", "gpt_neo", "gpt_neox", "gptj", "llama", "mistral", "mixtral", "modernbert", "mpnet",
    "olmo2", "opt", "phi", "phi3", "qwen2", "qwen3", "roberta", "smollm3", "xlm-roberta",
)  # fmt: skip
# Those whose layers can't be read, and words of the sentence that says why.
NO_STATE, MORE = "don't pass one hidden state per token", "depend on more than the last"
UNREAD: dict[str, str] = {
    "deepseek_v4": NO_STATE,  # several streams
    "funnel": NO_STATE,  # fewer places from layer to layer
    "gemma3n_text": NO_STATE,  # several streams
    "hrm_text": NO_STATE,  # its layers run in turns
    "hy_v4": NO_STATE,
    "inkling2_text": MORE,
    "longcat_flash": NO_STATE,  # two parts a layer, which it counts as layers
    "squeezebert": NO_STATE,  # its places stand last
}
# Those that can't be made small or at all, with the error of their own code.
NOT_MADE: dict[tuple[Kind, str], tuple[type[Exception], str]] = {
    ("causal", "gemma3n"): (ImportError, "timm"),  # its eye is another library's
    # They guess ahead for another model, from what that one thinks.
    ("causal", "gemma4_assistant"): (StrictDataclassError, "per_layer_input must be 0"),
    ("causal", "gemma4_unified_assistant"): (ValueError, "types producing a cache"),
    # Music: they have no words.
    ("causal", "musicgen"): (AttributeError, "dropout"),
    ("causal", "musicgen_melody"): (AttributeError, "dropout"),
}


class Apart(Plain):
    """Of a causal model, each token by a pass over what stands left of it and no more."""

    def chain(self, ids: Sequence[int], first: int) -> list[float]:
        return [
            float(self.log_probs(ids[:at])[-1, ids[at]]) if at else np.nan
            for at in range(first, len(ids))
        ]


def check_blanks(model: Any, plain: Plain) -> None:
    """Alone, and with shorter and longer texts."""
    columns = FULL.columns(model.vocabulary)
    ids = columns.table(AFTER_SPACE).ids[:, 0]
    expected = torch.cat([plain.at_blanks(query) for query in QUERIES]).numpy()[:, ids]
    encoded = model.encode_all(QUERIES, "left")
    alone = [model.blank_log_probs([one], columns).log_probs for one in encoded]
    close(np.concatenate(alone), expected, "alone")
    close(model.blank_log_probs(encoded, columns).log_probs, expected, "in a padded batch")
    backwards = model.blank_log_probs(encoded[::-1], columns).log_probs
    close(backwards, expected[::-1], "in another order")


def check_statements(model: Any, plain: Plain) -> None:
    """Each token of texts of which two begin alike, and of one on its own."""
    texts = STATEMENTS + (SHORT if plain.kind == "causal" else ())
    expected = [plain.of_tokens(text, None, "original") for text in texts]
    for number, text in enumerate(texts):
        close(model.token_log_probs([text])[0].log_probs, expected[number], "a statement alone")
    for number, found in enumerate(model.token_log_probs(texts)):
        close(found.log_probs, expected[number], "statements that share a beginning")


def check_layers(model: Any, plain: Plain) -> None:
    """At the last layer the answer is the model's own; of others it is said that there is none."""
    query = QUERIES[0]
    columns = FULL.columns(model.vocabulary)
    encoded = model.encode(query, "left")
    family = plain.model.config.model_type
    try:
        found = model.layer_log_probs(encoded, columns, []).log_probs
    except UserError as error:
        assert UNREAD.get(family, "nothing") in str(error)
        return
    assert family not in UNREAD
    ids = columns.table(AFTER_SPACE).ids[:, 0]
    close(found[-1], plain.at_blanks(query).numpy()[0, ids], "the last layer")


def check_generated(model: Any, plain: Plain) -> None:
    """Greedy continuations, alone and together: of several lengths, with shared beginnings."""
    for prompts in (PROMPTS[1:2], PROMPTS):
        for prompt, found in zip(prompts, generate(model, prompts, N_GENERATED), strict=True):
            check_greedy(plain, prompt, found.tokens, found.log_probs)


def check_greedy(plain: Plain, prompt: str, tokens: Sequence[str], log_probs: Any) -> None:
    """The tokens of an answer are among the likeliest after a prompt, one after the other."""
    ids = plain.ids(prompt)
    shown: list[str] = []
    values: list[float] = []
    said: list[int] = []
    for _ in range(N_GENERATED):
        row = plain.after(ids, said)
        (first, second), (best, _) = (part.tolist() for part in row.topk(2))
        if first - second < TIE:
            tokens, log_probs = tokens[: len(shown)], log_probs[: len(shown)]
            break
        said.append(best)
        text = plain.tokenizer.decode([best])
        if text and not plain.tokenizer.decode([best], skip_special_tokens=True):
            continue  # a special token isn't part of a text
        shown.append(text)
        values.append(first)
    starts = [at for at in range(len(shown) + 1) if shown[at : at + len(tokens)] == [*tokens]]
    assert starts, f"{prompt}: {tokens} is not in {shown}"
    at = starts[0]  # behind what isn't part of the answer
    close(log_probs, values[at : at + len(tokens)], f"generated after {prompt!r}", IN_STEPS)


def check_every_kind(model: Any, plain: Plain, folder: Path) -> None:
    """Each kind of query and of run gives an answer, or one sentence that says why it can't."""
    found = ask_every_kind(model, folder)
    for name, answer in found.items():
        if isinstance(answer, str):
            assert CANNOT.get(name, "nothing") in answer and "\n" not in answer, f"{name}: {answer}"
    assert isinstance(found["ask"], str) == (plain.kind == "masked")
    if plain.kind == "causal":
        (asked,) = found["ask"].models
        check_greedy(plain, QUESTION, asked.generated.tokens, asked.generated.log_probs)
    scored = [sum(plain.of_tokens(one, slice(0, len(one)), "within-word")) for one in SENTENCES]
    close(found["sentences"].frame()["sum"], scored, "sentences")
    (run,) = found["cloze"]
    for row in run.facts.dropna(subset="log_prob").itertuples():
        log_probs = plain.at_blanks(parse_query(row.query))[0]
        (token,) = model.vocabulary.pieces(dict(PAIRS)[row.subject], AFTER_SPACE)
        close(row.log_prob, log_probs[token], "a fact of a run")


def close(found: Any, expected: Any, what: str, tolerance: float = TOLERANCE) -> None:
    np.testing.assert_allclose(found, expected, rtol=RELATIVE, atol=tolerance, err_msg=what)


def check_window(model: Any, plain: Plain) -> None:
    """A text as long as fits; beyond the standard configuration's size where nothing bounds it."""
    length = min(model.max_tokens, WINDOW + 9)
    ids = [number % 100 + 50 for number in range(length)]
    wanted = plain.log_probs(ids)[-1]
    found = model.logits([ids], [[length - 1]])[0].log_softmax(-1)
    # Differences in the last digit grow with the length.
    np.testing.assert_allclose(found, wanted, rtol=0, atol=10 * TOLERANCE, err_msg="a long text")


def seen_as(family: str, folder: Path) -> str:
    """What an encoder-decoder family without sentinels is read as, or why it is refused."""
    config = CONFIG_MAPPING[family]()
    config.architectures = [LISTED["seq2seq"][family]]
    config.save_pretrained(folder)
    try:
        return f"read as a {find_kind(folder)} model"
    except UserError as error:
        return str(error)


def outcome(kind: Kind, family: str, folder: Path) -> str:
    """`equal`, with what the model says of how it runs, or the sentence by which it is refused.

    Raises AssertionError if an answer is wrong.
    """
    if kind == "seq2seq" and family not in SPAN_FILLERS:
        return seen_as(family, folder)
    plain = Apart(make_family(kind, family), tokenizer_of(kind), kind)
    plain.model.save_pretrained(folder)
    plain.tokenizer.save_pretrained(folder)
    try:
        found = find_kind(folder)
        assert found == ("masked" if family in BOTH_KINDS else kind)
        model = open_model(family, LocatedModel(folder, f"tiny-{family}"), kind, "fp32")
    except UserError as error:
        return str(error)
    check_blanks(model, plain)
    check_statements(model, plain)
    check_layers(model, plain)
    check_every_kind(model, plain, folder)
    if kind != "seq2seq":
        check_window(model, plain)
    if kind != "masked":
        check_generated(model, plain)
    return " ".join(["equal", *model.notes])


def named_in(listed: dict[str, str], family: str) -> bool:
    """Whether a table names the class of an encoder-decoder family."""
    return LISTED["seq2seq"][family] in listed.values()


@pytest.mark.parametrize(("kind", "family"), tuple(families()))
def test_a_family_answers_as_a_plain_forward_pass_does_or_is_refused(
    kind: Kind, family: str, tmp_path: Path
) -> None:
    """`-rP` prints the table, a line a family."""
    if (kind, family) in NOT_MADE:
        error, why = NOT_MADE[kind, family]
        with pytest.raises(error, match=why):
            make_family(kind, family)
        print(f"TABLE {kind} {family}: not made: {why}")
        return
    found = outcome(kind, family, tmp_path)
    print(f"TABLE {kind} {family}: {found}")
    expected = "^equal$" if family in USUAL else "^equal"
    if kind == "seq2seq" and family not in SPAN_FILLERS:
        one_class, *others = [name for name, listed in LISTED.items() if named_in(listed, family)]
        expected = f"as a {one_class} model" if others else "are not supported. Of"
    assert re.search(REFUSED.get((kind, family), expected), found)
