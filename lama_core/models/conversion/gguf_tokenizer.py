r"""The tokenizer of a GGUF file, made from the file's fields as llama.cpp reads them.

`tokenizer.ggml.model` names one of three kinds:

- `gpt2`: byte-level BPE. The regular expressions of `tokenizer.ggml.pre` split the text, one after
  the other; the file's merges join the bytes of each part.
- `gemma4`: BPE over characters, with `▁` for a space, and bytes for unknown characters.
- `llama`: SentencePiece's BPE without merges: of two neighbours that form a token, those of the
  token with the highest score are joined first; of equal scores, the leftmost.

`tokenizer.ggml.token_type` says which tokens are matched as a whole in a text: control tokens and
words that the user defined. Unused rows, which no text has, are excluded. What can't be read as
llama.cpp reads it is refused.

Source: llama.cpp, `src/llama-vocab.cpp` and `src/unicode.cpp` as of llama-cpp-python 0.3.36.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lama_core.errors import UserError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# Values of token_type.
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED = 1, 2, 3, 4, 5
SPACE = "▁"

# Parts of the regular expressions. llama.cpp doesn't tell \p{Lu}, \p{Ll} etc. from \p{L}.
_SHORT = "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
_WORD = r"[^\r\n\p{L}\p{N}]?\p{L}+"
_SIGNS = r" ?[^\s\p{L}\p{N}]+"
_SPACES = r"\s+(?!\S)|\s+"
_LINES = rf"\s*[\r\n]+|{_SPACES}"
_GPT2 = rf"'s|'t|'re|'ve|'m|'ll|'d| ?\p{{L}}+| ?\p{{N}}+|{_SIGNS}|\s+(?!\S)"
_AFTER_WORD = rf"\p{{N}}|{_SIGNS}[\r\n]*|{_LINES}"
_QWEN = rf"{_SHORT}|{_WORD}|{_AFTER_WORD}"
_LLAMA = rf"{_SHORT}|{_WORD}|\p{{N}}{{1,3}}|{_SIGNS}[\r\n]*|"
_SPACES_IN_STEPS = "".join(
    rf"\s{{{n}}}(?!\S)|" for n in ("512", "256", "128", "64", "32", "16", "8", "4", "1,2")
)
_SLASHED = rf"{_SIGNS}[\r\n/]*|{_LINES}"
_NOT_DEEPSEEK = (  # later letters, and those of rare alphabets
    r"\x{560}-\x{588}\x{10c7}-\x{10ff}\x{1c80}-\x{1c8f}\x{2d00}-\x{2d2f}\x{a790}-\x{a7ff}"
    r"\x{ab30}-\x{ab6f}\x{10570}-\x{105bc}\x{10d50}-\x{10d8f}\x{16e40}-\x{16e7f}\x{1d400}-\x{1d7ff}"
    r"\x{1df00}-\x{1dfff}"
)
_LETTERS_AND_SIGNS = (
    r"[!-/:-@\[-`{-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+"
)
_DEEPSEEK3 = rf"{_LETTERS_AND_SIGNS}[\r\n]*|{_LINES}"
_CJK = r"[\x{4e00}-\x{9fa5}\x{3040}-\x{309f}\x{30a0}-\x{30ff}]+"
_CJK_OLD = r"[\x{4e00}-\x{9fa5}\x{800}-\x{4e00}\x{ac00}-\x{d7ff}]+"
_CJK_AFMOE = (
    r"[\x{4e00}-\x{9fff}\x{3400}-\x{4dbf}\x{8c48}-\x{faff}\x{3040}-\x{30ff}\x{ff65}-\x{ff9f}"
    r"\x{2f00}-\x{2fdf}\x{e40}-\x{eff}\x{1780}-\x{17ff}\x{1000}-\x{109f}\x{aa60}-\x{aa7f}"
    r"\x{a9e0}-\x{a9ff}\x{ac00}-\x{d7af}\x{1100}-\x{11ff}]+"
)
_ASIAN_YOUTU = (
    r"[\x{ac00}-\x{d7a3}\x{3131}-\x{318e}]+|[\x{ff01}\x{2026}\x{201c}\x{201d}\x{2018}\x{2019}\x{2014}"
    r"\x{ff1a}\x{ff1b}\x{ff0c}\x{3001}-\x{303f}\x{fe30}-\x{fe4f}]+|[\x{3105}-\x{312f}]+|" + _CJK
)
_HAN = (
    r"\x{4e00}-\x{9fff}\x{3400}-\x{4dbf}\x{20000}-\x{2a6df}\x{2a700}-\x{2ebef}\x{f900}-\x{faff}"
    r"\x{2f800}-\x{2fa1f}"
)
_BLOOM = r" ?[^(\s|.,!?\x{2026}\x{3002}\x{ff0c}\x{3001}\x{964}\x{6d4}\x{60c})]+"
# Digits in groups of three from the right; the first group includes the text on its left.
_THREES = r"\P{N}*\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))"
_NO_LINES = r"[^\n]+|\n+"


def _cased(letters: str, short: str = "") -> str:
    """Return an expression for a word: letters that aren't a-z, then letters that aren't A-Z."""
    upper, lower = rf"(?:(?=[{letters}])[^a-z])", rf"(?:(?=[{letters}])[^A-Z])"
    start = r"[^\r\n\p{L}\p{N}]?"
    return f"{start}{upper}*{lower}+{short}|{start}{upper}+{lower}*{short}"


_CASED = _cased(r"\p{L}")
_CASED_SHORT = _cased(r"\p{L}", f"{_SHORT}?")
_CASED_MARKED = _cased(r"\p{L}\p{M}", f"{_SHORT}?")


def _marked(digits: str) -> str:
    """Return an expression for words with accents, with this one for digits."""
    return rf"[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+{_SHORT}?|{digits}|{_SLASHED}"


@dataclass(frozen=True, slots=True)
class Splitting:
    """The rule of a name in `tokenizer.ggml.pre`.

    expressions: Applied one after the other; the text between matches is a part, too.
    whole: Whether a part that is a token isn't merged. bos: Whether a text begins with the BOS
    token if the file doesn't say.
    """

    expressions: tuple[str, ...]
    whole: bool = False
    bos: bool = False


# Names with the same meaning are separated by spaces.
_SPLITTINGS = {
    "gpt-2 phi-2 jina-es jina-de gigachat a.x-4.0 mellum exaone4 mpt olmo jais trillion "
    "granite-docling jina-v1-en roberta-bpe": Splitting((_GPT2,)),
    "starcoder refact command-r smollm codeshell exaone minerva-7b mellum2": Splitting(
        (r"\p{N}", _GPT2)
    ),
    "falcon": Splitting((r"[\p{P}$+<=>^~|`]+", _GPT2, "[0-9]{3}")),
    "default": Splitting((r"[\p{P}$+<=>^~|]+", _GPT2, r"\p{N}+", "[0-9]{3}")),
    "llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano": Splitting(
        (_LLAMA + _LINES,), whole=True, bos=True
    ),
    "dbrx smaug-bpe chatglm-bpe": Splitting((_LLAMA + _LINES,)),
    "glm4 glm5": Splitting((_LLAMA + _LINES,), whole=True),
    "jais-2": Splitting((rf"{_LLAMA}\s*[\r\n]+|{_SPACES_IN_STEPS}\s",)),
    "minicpm5": Splitting(
        (r"\p{N}{1,3}", rf"{_SHORT}|{_WORD}|\p{{N}}+|{_SIGNS}[\r\n]*|{_LINES}"), whole=True
    ),
    "qwen2 deepseek-r1-qwen kormo f2llmv2 stablelm2 megrez hunyuan solar-open grok-2 bailingmoe "
    "bailingmoe2 llada-moe": Splitting((_QWEN,)),
    "qwen35": Splitting(
        (
            rf"{_SHORT}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}"
            rf"| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{_LINES}",
        )
    ),
    "ufakzeka": Splitting((f"{_WORD}|{_AFTER_WORD}",)),
    "laguna": Splitting((_NO_LINES, _QWEN)),
    "seed-coder": Splitting((rf"{_SHORT}|{_WORD}|\p{{N}}| ?[^\s\p{{L}}\p{{N}}\r\n]+|{_LINES}",)),
    "exaone-moe": Splitting(
        (
            rf"{_SHORT}|[^\r\n\p{{L}}\p{{N}}]?(?:\p{{L}}\p{{M}}*(?: \p{{L}}\p{{M}}*)*)+|\p{{N}}"
            rf"|{_SIGNS}[\r\n/]?|{_LINES}",
        )
    ),
    "tekken": Splitting((rf"{_CASED}|\p{{N}}|{_SLASHED}",), whole=True, bos=True),
    "gpt-4o llama4 kanana2 talkie minimax-m2": Splitting(
        (rf"{_CASED_SHORT}|\p{{N}}{{1,3}}|{_SLASHED}",)
    ),
    "granite-embed-multi-97m": Splitting(
        (rf"{_CASED_MARKED}|\p{{N}}{{1,3}}|{_SLASHED}",), whole=True
    ),
    "tiny_aya cohere2moe": Splitting((_THREES, _marked(r"\p{N}{1,3}"))),
    "youtu": Splitting((_ASIAN_YOUTU, _marked(r"\p{N}")), whole=True),
    "kimi-k2": Splitting(
        (
            rf"[{_HAN}]+|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}&&[^{_HAN}]]+{_SHORT}?|\p{{N}}{{1,3}}"
            rf"|{_SIGNS}[\r\n]*|{_LINES}",
        )
    ),
    "deepseek-llm": Splitting(
        (
            r"[\r\n]",
            rf"\s?[\p{{Lu}}\p{{Ll}}\p{{Lt}}&&[^{_NOT_DEEPSEEK}]]+",
            r"\s?[!-/:-~\x{ff01}-\x{ff0f}\x{ff1a}-\x{ff5e}\x{2018}-\x{201f}\x{3001}-\x{3002}]+",
            r"\s+\z",
            _CJK_OLD,
            r"\p{N}+",
        )
    ),
    "deepseek-coder": Splitting((r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _CJK_OLD, r"\p{N}")),
    "deepseek-v3 hunyuan-dense joyai-llm hy_v4": Splitting((r"\p{N}{1,3}", _CJK, _DEEPSEEK3)),
    "spark2_5": Splitting(
        (r"\p{N}{1,3}", _CJK, rf"{_LETTERS_AND_SIGNS}|[\r\n]|{_SPACES}", r"\p{N}")
    ),
    "afmoe": Splitting((_THREES, _CJK_AFMOE, _DEEPSEEK3)),
    "bloom poro-chat gpt3-finnish": Splitting((_BLOOM,)),
    "viking": Splitting((_BLOOM, r"\p{N}")),
    "superbpe": Splitting((r"\p{N}+", "(?=(?:[0-9]{3})+(?![0-9]))")),
    "chameleon": Splitting(
        (
            "<sentinel:[0-9]+>",
            "IMGIMG[A-I]{1,4}Z",
            r"[\t\n]|    |  ",
            r"\p{N}",
            r"[\p{P}!-/:-@\[-`{-~]",
            _GPT2,
        ),
        bos=True,
    ),
}
SPLITTINGS = {name: one for names, one in _SPLITTINGS.items() for name in names.split()}

# Tokens that are control tokens whatever their type: llama.cpp ends a text at them.
ENDS = frozenset(
    (
        "<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>",
        "<end_of_turn>", "<|endoftext|>", "</s>", "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]",
        "<|end_of_text|>", "<end_of_utterance>", "<eos>", "<turn|>", "<|tool_response>",
        "<｜end▁of▁sentence｜>", "[e~[",
    )
)  # fmt: skip
# Control tokens for code with a gap, unless the file names the token of this role.
FILLING = {
    "fim_pre prefix": "<|fim_prefix|> <fim-prefix> <fim_prefix> <｜fim▁begin｜> <PRE> ▁<PRE> "
    "<|code_prefix|> <|prefix|>",
    "fim_suf suffix": "<|fim_suffix|> <fim-suffix> <fim_suffix> <｜fim▁hole｜> <SUF> ▁<SUF> "
    "<|code_suffix|> <|suffix|>",
    "fim_mid middle": "<|fim_middle|> <fim-middle> <fim_middle> <｜fim▁end｜> <MID> ▁<MID> "
    "<|code_middle|> <|middle|>",
    "fim_pad": "<|fim_pad|> <fim-pad> <fim_pad> <PAD> [PAD]",
    "fim_rep": "<|fim_repo|> <|repo_name|> <fim-repo> <REPO> <reponame>",
    "fim_sep": "<|file_sep|>",
}
# Phi-3's tokens whose following spaces aren't skipped.
PLAIN = frozenset(("<unk>", "<s>", "<|endoftext|>"))
GEMMA4 = ("gemma4", "granite-embed-multi-311m")


def read_tokenizer(path: Path) -> tuple["Tokenizer", dict[str, str]]:
    """Return a GGUF file's tokenizer, and its special tokens and chat template by name.

    Raises:
        UserError: If the kind of tokenizer or its splitting is unknown, or if the fields don't
            determine a text's tokens.
    """
    from gguf import GGUFReader
    from tokenizers import AddedToken
    from tokenizers.processors import TemplateProcessing

    fields = {
        name.removeprefix("tokenizer.ggml."): field.contents()
        for name, field in GGUFReader(path).fields.items()
        if name.startswith(("tokenizer.", "general.name"))
    }
    tokens = [token or f"[EMPTY_{row}]" for row, token in enumerate(fields["tokens"])]
    ids = {token: row for row, token in enumerate(tokens)}
    if len(ids) < len(tokens):
        raise UserError("two rows of its vocabulary have the same text: convert the model again.")
    types = _types(fields, tokens)
    roles = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}
    special = {"bos": 1, "eos": 2, "unk": 0} if fields.get("model") == "llama" else {}
    special |= {
        role: row
        for role, name in roles.items()
        if (row := fields.get(f"{name}_token_id")) is not None and row < len(tokens)
    }
    special = {role: row for role, row in special.items() if row < len(tokens)}
    kept = {tokens[row] for row in special.values()}
    make = {"gpt2": _from_merges, "gemma4": _from_merges, "llama": _from_scores}
    if (kind := fields.get("model")) not in make:
        raise UserError(f"its tokenizer is of the unsupported kind {str(kind)[:40]!r}.")
    tokenizer, adds_bos = make[kind](fields, ids, {t for t in ids if types[t] == UNUSED} - kept)

    whole = [one for one in tokens if types[one] in (UNKNOWN, CONTROL, USER_DEFINED)]
    # llama.cpp finds the longest words first, tokenizers the leftmost. (Control tokens may overlap:
    # those in a user's text aren't read as tokens.)
    for word, other, both in _overlaps([one for one in whole if types[one] == USER_DEFINED]):
        if len(other.encode()) >= len(word.encode()) and not both.startswith(other):
            raise UserError(
                f"its tokens {word[:20]!r} and {other[:20]!r} overlap, so that a text with both "
                "has no certain tokens."
            )
    # llama.cpp skips the spaces behind Phi-3's tokens; nothing but its name says so.
    name = str(fields.get("general.name")).lower()
    strips = set(whole) - PLAIN if "phi-3" in name or "phi3" in name else set()
    added = {
        one: AddedToken(
            one, normalized=False, special=types[one] != USER_DEFINED, rstrip=one in strips
        )
        for one in whole
    }
    tokenizer.add_special_tokens([one for one in added.values() if one.special])
    tokenizer.add_tokens([one for one in added.values() if not one.special])
    adds = {"bos": fields.get("add_bos_token", adds_bos), "eos": fields.get("add_eos_token", False)}
    adds["bos"] |= _is_gemma4(fields)  # llama.cpp does so even if the file says no
    for role in (role for role, is_added in adds.items() if is_added):
        if role not in special:
            raise UserError(f"it adds a {role.upper()} token to texts, but doesn't name the token.")
    tokenizer.post_processor = TemplateProcessing(
        single=[*["bos"] * adds["bos"], "$A", *["eos"] * adds["eos"]],
        special_tokens=[
            {"id": role, "ids": [special[role]], "tokens": [tokens[special[role]]]}
            for role, is_added in adds.items()
            if is_added
        ],
    )
    settings = {f"{role}_token": tokens[row] for role, row in special.items()}
    template = fields.get("tokenizer.chat_template")
    return tokenizer, settings | ({"chat_template": template} if template else {})


def _types(fields: Mapping[str, Any], tokens: Sequence[str]) -> dict[str, int]:
    """Return the type of each token; llama.cpp changes some by their texts."""
    types = dict(zip(tokens, fields.get("token_type") or [NORMAL] * len(tokens), strict=True))
    ends = ENDS.intersection(types)
    if {"</s>", "<|tool_response>"} <= ends:
        ends -= {"</s>"}
    types |= dict.fromkeys(ends, CONTROL)
    for role, names in FILLING.items():
        if not any(f"{one}_token_id" in fields for one in role.split()):
            types |= dict.fromkeys(types.keys() & names.split(), CONTROL)
    # Tokens that are words of the user whatever their type.
    visible = {"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"}
    types |= dict.fromkeys(types.keys() & visible, USER_DEFINED)
    if (
        "<|end|>" in ends
        and ends & {"<|call|>", "<|calls|>"}
        and ends & {"<|return|>", "<|flush|>"}
    ):
        types["<|end|>"] = USER_DEFINED
    return types


def _is_gemma4(fields: Mapping[str, Any]) -> bool:
    return fields.get("model") == "gemma4" or fields.get("pre") in GEMMA4


def _from_merges(
    fields: Mapping[str, Any], ids: dict[str, int], unused: set[str]
) -> tuple["Tokenizer", bool]:
    """Return a BPE tokenizer with a file's merges, and whether it adds a BOS token by default."""
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

    name: Any = fields.get("pre")
    in_bytes = not (_is_gemma4(fields) or name == "sarvam-moe")
    if in_bytes and name not in SPLITTINGS:
        raise UserError(
            "it doesn't say how a text is split (tokenizer.ggml.pre): convert the model again."
            if name is None
            else f"the splitting {str(name)[:40]!r} in tokenizer.ggml.pre is unknown."
        )
    # The first space after the first character divides the two sides of a merge.
    cuts = ((merge, merge.index(" ", 1)) for merge in fields.get("merges") or ())
    merges = list(dict.fromkeys((merge[:cut], merge[cut + 1 :]) for merge, cut in cuts))
    for left, right in merges:
        if not {left, right, left + right} <= ids.keys():
            raise UserError(
                f"its merge of {left[:20]!r} and {right[:20]!r} isn't in its vocabulary."
            )
    made = {left + right for left, right in merges}
    vocabulary = {one: row for one, row in ids.items() if one in made or one not in unused}
    splitting = SPLITTINGS[name] if in_bytes else Splitting((_NO_LINES,))
    model = models.BPE(
        vocabulary, merges, ignore_merges=splitting.whole, byte_fallback=not in_bytes
    )
    tokenizer = Tokenizer(model)
    parts: list[Any] = [
        pre_tokenizers.Split(Regex(one), "isolated") for one in splitting.expressions
    ]
    if in_bytes:
        parts.append(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False))
        # A byte without a token is omitted, and its neighbours aren't merged.
        lacking = [one for one in pre_tokenizers.ByteLevel.alphabet() if one not in ids]
        if lacking:
            signs = "".join(rf"\x{{{ord(one):x}}}" for one in sorted(lacking))
            parts.append(pre_tokenizers.Split(Regex(f"[{signs}]"), "removed"))
        tokenizer.decoder = decoders.ByteLevel()
    else:
        tokenizer.normalizer = normalizers.Replace(" ", SPACE)
        tokenizer.decoder = _spaced_decoder(strips=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(parts)
    for lines in (one for one in vocabulary if _is_gemma4(fields) and not one.strip("\n")):
        if tokenizer.encode(lines).ids != [vocabulary[lines]]:
            raise UserError(f"its merges don't make its token for {len(lines)} line breaks.")
    return tokenizer, splitting.bos


def _from_scores(
    fields: Mapping[str, Any], ids: dict[str, int], unused: set[str]
) -> tuple["Tokenizer", bool]:
    """Return a BPE tokenizer whose merges follow from the tokens' scores; it adds a BOS token."""
    from tokenizers import Tokenizer, models, normalizers

    scores = fields.get("scores") or [0.0] * len(ids)
    merges: list[tuple[float, int, str, str]] = []
    equal: defaultdict[float, set[str]] = defaultdict(set)
    for token, row in ids.items():
        for cut in range(1, len(token) * (" " not in token)):  # a text's spaces become `▁`
            left, right = token[:cut], token[cut:]
            if {left, right} <= ids.keys():
                merges.append((-scores[row], -cut, left, right))
                equal[scores[row]].add(token)
            elif all(side in ids or len(side) == 1 for side in (left, right)):
                raise UserError(f"its token {token[:20]!r} is made of one without a row.")
    for tokens in equal.values():
        # If a text can contain two tokens of equal score at the same place, the one that is made
        # first depends on where it is; but of the runs of a character, the leftmost grows first.
        parts = (
            (one, one[start:end])
            for one in tokens
            for start in range(len(one))
            for end in range(start + 1, len(one) + (start > 0))
            if one[start:end] in tokens
        )
        for one, other in chain(parts, ((one, other) for one, other, _ in _overlaps(tokens))):
            if len(set(one + other)) > 1:
                raise UserError(
                    f"its tokens {one[:20]!r} and {other[:20]!r} have the same score, so that "
                    "either can be made first: convert the model again."
                )
    pairs = [(left, right) for _, _, left, right in sorted(merges)]
    made = {left + right for left, right in pairs}
    kept = {one: row for one, row in ids.items() if one in made or one not in unused}
    unknown = next(
        (one for one, row in kept.items() if row == fields.get("unknown_token_id", 0)), None
    )
    tokenizer = Tokenizer(models.BPE(kept, pairs, byte_fallback=True, unk_token=unknown))
    prefix = fields.get("add_space_prefix", True)
    tokenizer.normalizer = normalizers.Sequence(
        [*[normalizers.Prepend(SPACE)] * prefix, normalizers.Replace(" ", SPACE)]
    )
    tokenizer.decoder = _spaced_decoder(strips=prefix)
    return tokenizer, True


def _overlaps(tokens: Collection[str]) -> Iterator[tuple[str, str, str]]:
    """Yield a token whose end is the beginning of another, the other, and both as a text."""
    begun: defaultdict[str, list[str]] = defaultdict(list)
    for token in tokens:
        for cut in range(1, len(token)):
            begun[token[:cut]].append(token)
    for token in tokens:
        for cut in range(1, len(token)):
            for other in begun.get(token[cut:], ()):
                if other != token:
                    yield token, other, token + other[len(token) - cut :]


def _spaced_decoder(*, strips: bool) -> Any:
    """Return a decoder of `▁` and bytes. strips: Whether the first space isn't part of a text."""
    from tokenizers import decoders

    return decoders.Sequence(
        [
            decoders.Replace(SPACE, " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            *[decoders.Strip(" ", 1, 0)] * strips,
        ]
    )
