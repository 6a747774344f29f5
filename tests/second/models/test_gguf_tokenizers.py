"""Tokenizers of GGUF files: a text has llama.cpp's tokens, or the file is refused.

The tokens that llama.cpp made are stored. If llama-cpp-python is installed, one test makes them
again.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from gguf_files import (
    FILES,
    NAMES,
    NORMAL,
    STORED,
    TEXTS,
    UNUSED,
    USER_DEFINED,
    WHOLE,
    bpe,
    spaced,
    tokens_by_llama_cpp,
    write_gguf,
)

from lama_core.errors import UserError
from lama_core.models.conversion.gguf_tokenizer import SPLITTINGS, read_tokenizer

EXPECTED: dict[str, dict[str, list[list[int]]]] = {
    name: one
    for one in json.loads(STORED.read_text(encoding="utf-8"))["tokens"]
    for name in one["files"]
}


@pytest.mark.parametrize("name", FILES)
def test_tokens_are_those_of_llama_cpp(name: str, tmp_path: Path) -> None:
    tokenizer, _ = read_tokenizer(write_gguf(tmp_path / "tiny.gguf", FILES[name]))
    for kind, texts in (("plain", TEXTS), ("whole", WHOLE)):
        tokenizer.encode_special_tokens = kind == "plain"
        for text, ids in zip(texts, EXPECTED[name][kind], strict=True):
            assert tokenizer.encode(text, add_special_tokens=kind == "whole").ids == ids, text


def test_every_splitting_that_is_read_is_compared() -> None:
    assert set(NAMES) == set(SPLITTINGS)


@pytest.mark.parametrize("name", FILES)
def test_the_stored_tokens_are_those_of_the_installed_llama_cpp(name: str, tmp_path: Path) -> None:
    pytest.importorskip("llama_cpp")
    found = tokens_by_llama_cpp(write_gguf(tmp_path / "tiny.gguf", FILES[name]))
    assert found == {kind: EXPECTED[name][kind] for kind in found}


def without(fields: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in names}


@pytest.mark.parametrize(
    ("fields", "said"),
    (
        (bpe("new-pre"), "the splitting 'new-pre' in tokenizer.ggml.pre is unknown"),
        (without(bpe("gpt-2"), "pre"), "doesn't say how a text is split"),
        (bpe("gpt-2", model="bert"), "unsupported kind 'bert'"),
        (bpe("gpt-2", merges=["Q Z"]), "merge of 'Q' and 'Z' isn't in its vocabulary"),
        (without(bpe("llama-bpe"), "bos_token_id"), "adds a BOS token to texts, but doesn't name"),
        (bpe("gpt-2", tokens=["a", "a"], token_type=[1, 1]), "two rows .* have the same text"),
        (
            bpe("gpt-2", types={"~ab": USER_DEFINED, "b~~~": USER_DEFINED}),
            "'~ab' and 'b~~~' overlap",
        ),
        (spaced("llama", scores=[-1000.0] * 2000), "have the same score"),
        (spaced("gemma4", merges=[]), "its merges don't make its token for 2 line breaks"),
    ),
)
def test_a_tokenizer_that_cant_be_read_in_the_same_way_is_refused(
    fields: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError) as caught:
        read_tokenizer(write_gguf(tmp_path / "tiny.gguf", fields))
    assert re.search(said, str(caught.value))
    assert len(str(caught.value)) < 200  # `locations` shows no more


def test_unused_rows_are_no_tokens_unless_a_merge_makes_them(tmp_path: Path) -> None:
    fields = bpe("gpt-2", types={"the": UNUSED, "[PAD300]": UNUSED, "New York": USER_DEFINED})
    fields["merges"] += ["t h", "th e"]
    fields["tokens"] += [] if "th" in fields["tokens"] else ["th"]
    fields["token_type"] += [NORMAL] * (len(fields["tokens"]) - len(fields["token_type"]))
    tokenizer, _ = read_tokenizer(write_gguf(tmp_path / "tiny.gguf", fields))
    assert tokenizer.token_to_id("[PAD300]") is None
    assert tokenizer.encode("the").tokens == ["the"]
    assert tokenizer.encode("aNew York").tokens == ["a", "New York"]
    assert tokenizer.decode(tokenizer.encode("aNew York ü").ids) == "aNew York ü"


def test_a_text_is_decoded_without_the_space_that_was_put_in_front(tmp_path: Path) -> None:
    for name in ("scores", "no prefix", "gemma4"):
        tokenizer, _ = read_tokenizer(write_gguf(tmp_path / f"{name}.gguf", FILES[name]))
        for text in ("a b", " a 9 ü"):
            assert tokenizer.decode(tokenizer.encode(text).ids) == text
