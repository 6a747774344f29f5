"""Every family that transformers lists answers as a plain forward pass of it does, or is refused.

The reference is transformers' own model, asked one text at a time: nothing cut, padded or cached;
of a causal model, each token by a pass over what stands left of it and no more.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from families import WINDOW, families, make_family, tokenizer_of
from huggingface_hub.errors import StrictDataclassError
from plain_model import Plain

from lama_core.candidates.columns import Candidates
from lama_core.candidates.spelling import AFTER_SPACE
from lama_core.errors import UserError
from lama_core.models.protocols import Kind
from lama_core.models.registry import open_model
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
LONG_WORD = "physicistry"  # of several pieces
N_RESCORED = 4
TOLERANCE = 1e-4
# Of a value itself: the last digits of fp32 logits differ between CPUs. -53.7426 is off by 1.1e-4
# on an EPYC with bf16, whose libraries add in another order.
RELATIVE = 1e-5
# Of all families, those that are refused, and words of the sentence that says why.
FUTURE, SILENT = "depend on the right context", "fails on a plain text"
REFUSED: dict[tuple[Kind, str], str] = {
    ("masked", "perceiver"): "have no token embeddings",
    ("masked", "reformer"): "at random",
    ("causal", "blt"): SILENT,  # its own code asks for a setting that it doesn't have
    ("causal", "cpmant"): FUTURE,
    ("causal", "emu3"): "Can't load a model from",  # what is saved names no language model
    ("causal", "mllama"): "Can't load a model from",
    ("causal", "prophetnet"): FUTURE,
    ("causal", "reformer"): "at random",
    ("causal", "xlnet"): FUTURE,
    ("causal", "xlstm"): SILENT,  # its own code makes a memory of the wrong shape
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


def check_both_sides(model: Any, plain: Plain) -> None:
    """Of a causal model: the whole sentence of each rescored word, normalised over them."""
    columns = FULL.columns(model.vocabulary)
    for query in QUERIES[:2]:
        encoded = replace(model.encode(query, "both"), n_rescored=N_RESCORED)
        scores = model.blank_log_probs([encoded], columns)
        words = np.flatnonzero(np.isfinite(scores.log_probs[0]))
        assert len(words) == N_RESCORED
        left = plain.ids(query.parts[0].rstrip())
        right = plain.ids(query.text("Paris"))[len(left) + 1 :]
        tokens = columns.table(AFTER_SPACE).ids[words, 0]
        joint = [sum(plain.chain([*left, int(token), *right], len(left))) for token in tokens]
        expected = np.array(joint) - np.logaddexp.reduce(joint)
        close(scores.log_probs[0, words], expected, "with context both")
        assert scores.normaliser is not None
        close(scores.normaliser[0], np.logaddexp.reduce(joint), "the normaliser of context both")
        found = model.word_log_prob(query, 0, LONG_WORD, "both", float(scores.normaliser[0]))
        whole = sum(plain.chain(plain.ids(query.text(LONG_WORD)), len(left)))
        normaliser = np.logaddexp(np.logaddexp.reduce(joint), whole)
        close(found.log_prob, whole - normaliser, "a word of several pieces with context both")


def check_long_word(model: Any, plain: Plain) -> None:
    """A word of several pieces, by the chain rule or mask by mask."""
    pieces = plain.tokenizer(f"a {LONG_WORD}", add_special_tokens=False)["input_ids"][1:]
    assert len(pieces) > 1
    found = model.word_log_prob(QUERIES[0], 0, LONG_WORD, "left")
    expected = plain.of_word(QUERIES[0], LONG_WORD, pieces)
    close(found.log_prob, expected, "a word of several pieces")


def check_statements(model: Any, plain: Plain) -> None:
    """Each token of texts of which two begin alike, and of one on its own."""
    expected = [plain.of_tokens(text, None, "original") for text in STATEMENTS]
    for number, text in enumerate(STATEMENTS):
        close(model.token_log_probs([text])[0].log_probs, expected[number], "a statement alone")
    for number, found in enumerate(model.token_log_probs(STATEMENTS)):
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


def close(found: Any, expected: Any, what: str) -> None:
    np.testing.assert_allclose(found, expected, rtol=RELATIVE, atol=TOLERANCE, err_msg=what)


def check_window(model: Any, plain: Plain) -> None:
    """A text as long as fits; beyond the standard configuration's size where nothing bounds it."""
    length = min(model.max_tokens, WINDOW + 9)
    ids = [number % 100 + 50 for number in range(length)]
    wanted = plain.log_probs(ids)[-1]
    found = model.logits([ids], [[length - 1]])[0].log_softmax(-1)
    # Differences in the last digit grow with the length.
    np.testing.assert_allclose(found, wanted, rtol=0, atol=10 * TOLERANCE, err_msg="a long text")


def outcome(kind: Kind, family: str, folder: Path) -> str:
    """`equal`, with what the model says of how it runs, or the sentence by which it is refused.

    Raises AssertionError if an answer is wrong.
    """
    plain = Apart(make_family(kind, family), tokenizer_of(kind), kind)
    plain.model.save_pretrained(folder)
    plain.tokenizer.save_pretrained(folder)
    try:
        model = open_model(family, LocatedModel(folder, f"tiny-{family}"), kind, "fp32")
    except UserError as error:
        return str(error)
    check_blanks(model, plain)
    check_long_word(model, plain)
    check_statements(model, plain)
    check_layers(model, plain)
    check_window(model, plain)
    if kind == "causal":
        check_both_sides(model, plain)
    return " ".join(["equal", *model.notes])


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
    equal = "^equal$" if family in USUAL else "^equal"
    assert re.search(REFUSED.get((kind, family), equal), found)
