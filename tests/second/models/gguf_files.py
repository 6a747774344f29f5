"""Tiny GGUF files with only a tokenizer, and llama.cpp's tokens of texts in them.

`python tests/second/models/gguf_files.py` writes `gguf_tokens.json` again. It needs
llama-cpp-python and gguf, but not this project: see CONTRIBUTING.md.
"""

import json
import sys
import tempfile
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

STORED = Path(__file__).with_name("gguf_tokens.json")
TEXTS = (
    "",
    "Hello world, Hello  world!",
    "   leading and trailing   ",
    "I'm, you're, it'S, WE'LL, HE'D, don't, 'Tis, 'ſ, rock 'n' roll",
    "In 1998, 12345678 people; 3.14, 1,000,000 and 2/3",
    "x  12   345 \n 6\n\n7",
    "a\nb\n\nc\r\nd\r\n\r\ne\n\n1. x\n\n\n  2\n",
    "\ttab\t\ttabs   \t mix\t",
    " \n \n a \r\n\n\r",
    "emoji 😀👩‍👩‍👧 ok🎉!!",
    "中文句子，测试。12三四 北京abc",
    "日本語テキスト　全角 ｆｕｌｌ、カタカナ",
    "한국어 문장 ㅋㅋ",
    "مرحبا بالعالم ١٢٣٤٥",
    "हिन्दी में दो शब्द",
    "café cafe\u0301 Ångström A\u030angström naïve",
    "CamelCaseÉCole aÉbC DÉjà xÝz HTTPServer's HTTPServer'S",
    "don’t “quotes” — dash… 1/2",
    "$100 + 50% = ~(a|b) <c> ^d `e` _f_ #g",
    "<s> a</s><|im_end|> b <unk> New York [PAD7] <|end|>",
    "https://example.com/a_b?c=1&d=2#e.html\n",
    "nbsp\u00a0em\u2003nel\u0085zw\u200b.",
    "A1B22C333D4444 x1y",
    "!!!???...,,,;;; --- ''' \"\"\"",
    "if (x==1) {\n    return  y;\n}\n",
    "ǅ ǆ ʰ ª º ⅷ ² ½ ① Ა ա",
    "IMGIMGABZ <sentinel:12> x",
    "▁a ▁▁ b",
    "x.\ny.\n\nz'llama, z'then.\n zqx zqx",
)
# These are also compared with what is added to a text, and with control tokens in it.
WHOLE = (*TEXTS[:2], *(text for text in TEXTS if "</s>" in text))
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
SPECIAL = {"<s>": CONTROL, "</s>": CONTROL, "<|im_end|>": CONTROL, "<unk>": UNKNOWN}
ADDED = SPECIAL | {"New York": USER_DEFINED, "[PAD7]": UNUSED, "[PAD8]": UNUSED}


def spelled_bytes() -> list[str]:
    """Return GPT-2's character for each byte."""
    seen = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(byte if byte in seen else next(others)) for byte in range(256)]


def make_merges(texts: list[str], n_merges: int) -> list[tuple[str, str]]:
    """Return merges of the most frequent neighbours, over spaces and lines, too."""
    words, merges = [list(text) for text in texts], []
    for _ in range(n_merges):
        pairs = Counter(pair for word in words for pair in pairwise(word))
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        for number, word in enumerate(words):
            joined: list[str] = []
            for character in word:
                if joined and (joined[-1], character) == best:
                    joined[-1] += character
                else:
                    joined.append(character)
            words[number] = joined
    return merges


def bytes_of(text: str) -> str:
    """Return a text in GPT-2's characters."""
    alphabet = spelled_bytes()
    return "".join(alphabet[byte] for byte in text.encode())


# In bytes: merges of two bytes or more; in characters: with ▁ for a space.
BYTE_MERGES = make_merges([bytes_of(text) for text in TEXTS], 450)
SPACED_MERGES = make_merges([text.replace(" ", "▁") for text in TEXTS], 300)


def bpe(pre: str, **fields: Any) -> dict[str, Any]:
    """Return the fields of a byte-level tokenizer. without: characters that have no token."""
    without = fields.pop("without", "")
    types = ADDED | {"Ġzqx": NORMAL} | fields.pop("types", {})  # a word that no merge makes
    merges = [pair for pair in BYTE_MERGES if not set(without) & set("".join(pair))]
    tokens = [one for one in spelled_bytes() if one not in without]
    tokens += dict.fromkeys(left + right for left, right in merges)
    return {
        "model": "gpt2",
        "pre": pre,
        "tokens": [*types, *tokens],
        "token_type": [*types.values(), *[NORMAL] * len(tokens)],
        "merges": [" ".join(pair) for pair in merges],
        "bos_token_id": 0,
        "eos_token_id": 1,
        **fields,
    }


def spaced(kind: str, **fields: Any) -> dict[str, Any]:
    """Return the fields of a tokenizer over characters, with bytes for unknown ones."""
    types = {"<unk>": UNKNOWN, "<s>": CONTROL, "</s>": CONTROL} | fields.pop("types", {})
    merged = list(dict.fromkeys(left + right for left, right in SPACED_MERGES))
    runs = ["▁" * n for n in range(2, 8)]
    characters = sorted(set("".join(merged)) | {"▁"} | set("abcdefghijklmnopqrstuvwxyz"))
    hexes = [f"<0x{byte:02X}>" for byte in range(256)]
    pieces = [one for one in merged if one not in (*types, *runs) and len(one) > 1]
    tokens = [*types, *hexes, *pieces, *runs, *characters]
    if kind == "gemma4":
        numbers = {"merges": [" ".join(pair) for pair in SPACED_MERGES]}
        numbers["merges"] += [f"{one} ▁" for one in ["▁", *runs[:-1]]]
    else:
        ranks = [-float(n) for n in range(len(pieces))]
        numbers = {"scores": [0.0] * len([*types, *hexes])}
        numbers["scores"] += [
            *ranks,
            *[-1e9] * len(runs),
            *[-1e6 - n for n in range(len(characters))],
        ]
    kinds = [*types.values(), *[BYTE] * 256, *[NORMAL] * len([*pieces, *runs, *characters])]
    return {
        "model": kind,
        "tokens": tokens,
        "token_type": kinds,
        **numbers,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "unknown_token_id": 0,
        **fields,
    }


NAMES = (
    "gpt-2", "phi-2", "jina-es", "jina-de", "gigachat", "a.x-4.0", "mellum", "exaone4", "mpt",
    "olmo", "jais", "trillion", "granite-docling", "jina-v1-en", "roberta-bpe", "starcoder",
    "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b", "mellum2", "falcon",
    "default", "llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0",
    "lfm2", "jina-v5-nano", "dbrx", "smaug-bpe", "chatglm-bpe", "glm4", "glm5", "jais-2",
    "minicpm5", "qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "stablelm2", "megrez", "hunyuan",
    "solar-open", "grok-2", "qwen35", "ufakzeka", "laguna", "seed-coder", "bailingmoe",
    "bailingmoe2", "llada-moe", "exaone-moe", "tekken", "gpt-4o", "llama4", "kanana2", "talkie",
    "minimax-m2", "granite-embed-multi-97m", "tiny_aya", "cohere2moe", "youtu", "kimi-k2",
    "deepseek-llm", "deepseek-coder", "deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4",
    "spark2_5", "afmoe", "bloom", "poro-chat", "gpt3-finnish", "viking", "superbpe", "chameleon",
)  # fmt: skip
SPACES = {"  ": USER_DEFINED, "   ": USER_DEFINED, "\n\n": USER_DEFINED}
HARMONY = dict.fromkeys(("<|end|>", "<|return|>", "<|call|>"), CONTROL)
FILES: dict[str, dict[str, Any]] = {
    **{f"pre {name}": bpe(name) for name in NAMES},
    "adds both": bpe("gpt-2", add_bos_token=True, add_eos_token=True),
    "adds none": bpe("llama-bpe", add_bos_token=False),
    "without bytes": bpe("falcon", without=bytes_of("\tx{é")),
    "spaces": bpe("olmo", types=SPACES),
    "harmony": bpe("gpt-4o", types=HARMONY),
    "end by name": bpe("gpt-2", types={"<|end|>": NORMAL}),
    "scores": spaced("llama"),
    "no prefix": spaced("llama", add_space_prefix=False),
    "words": spaced("llama", types=ADDED | SPACES),
    "phi-3": spaced(
        "llama", name="Phi-3 mini", types=SPECIAL | {"<|end|>": CONTROL, "<|endoftext|>": CONTROL}
    ),
    "gemma4": spaced("gemma4"),
    "sarvam": spaced("gemma4", model="gpt2", pre="sarvam-moe", types=ADDED),
    "granite": spaced("gemma4", model="gpt2", pre="granite-embed-multi-311m"),
}


def write_gguf(path: Path, fields: dict[str, Any]) -> Path:
    """Write a file with only a tokenizer."""
    from gguf import GGUFWriter

    writer = GGUFWriter(path, "llama")
    writer.add_name(fields.get("name", "tiny"))
    for name, value in fields.items():
        key = f"tokenizer.ggml.{name}"
        if isinstance(value, list):
            writer.add_array(key, value)
        elif isinstance(value, bool):
            writer.add_bool(key, value)
        elif isinstance(value, int):
            writer.add_uint32(key, value)
        elif name != "name":
            writer.add_string(key, value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path


def tokens_by_llama_cpp(path: Path) -> dict[str, list[list[int]]]:
    """Return llama.cpp's tokens of each text, as text and with what it adds and finds."""
    from llama_cpp import Llama

    model = Llama(str(path), vocab_only=True, verbose=False)
    return {
        "plain": [model.tokenize(text.encode(), add_bos=False, special=False) for text in TEXTS],
        "whole": [model.tokenize(text.encode(), add_bos=True, special=True) for text in WHOLE],
    }


def main() -> None:
    """Store the tokens of every file; files with the same tokens are stored once."""
    import llama_cpp

    found: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, fields in FILES.items():
            path = write_gguf(Path(folder, "tiny.gguf"), fields)
            found.setdefault(json.dumps(tokens_by_llama_cpp(path)), []).append(name)
    stored = {
        "source": f"llama.cpp in llama-cpp-python {llama_cpp.__version__}",
        "tokens": [{"files": names, **json.loads(tokens)} for tokens, names in found.items()],
    }
    STORED.write_text(json.dumps(stored, separators=(",", ":")) + "\n", encoding="utf-8")
    print(f"{len(found)} different tokenizers", file=sys.stderr)


if __name__ == "__main__":
    main()
