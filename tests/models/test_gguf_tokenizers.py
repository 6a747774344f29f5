"""Tokenizers of GGUF files write texts as llama.cpp does."""

import json
from pathlib import Path

import pytest
from gguf_files import FILES, STORED, TEXTS, write_gguf

from lama_core.models.conversion.gguf_tokenizer import read_tokenizer

EXPECTED = {
    name: one
    for one in json.loads(STORED.read_text(encoding="utf-8"))["tokens"]
    for name in one["files"]
}


@pytest.mark.parametrize("name", FILES)
def test_tokens_are_those_of_llama_cpp(name: str, tmp_path: Path) -> None:
    tokenizer, _ = read_tokenizer(write_gguf(tmp_path / "tiny.gguf", FILES[name]))
    for kind in ("plain", "whole"):
        tokenizer.encode_special_tokens = kind == "plain"
        for text, ids in zip(TEXTS, EXPECTED[name][kind], strict=True):
            assert tokenizer.encode(text, add_special_tokens=kind == "whole").ids == ids, text
