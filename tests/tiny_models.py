"""Tiny randomly initialised models of every family, with real tokenizers, made without a network.

Each tokenizer is trained on the sentences below by the algorithm of its family and set up by the
family's own class, so that its spaces, marks and special tokens are those of the real models. The
weights are random but wide, so that no two log-probabilities are alike by chance. Vocabularies and
weights are the same in every process.
"""

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers import models as token_models
from tokenizers.processors import TemplateProcessing
from tokenizers.trainers import BpeTrainer, UnigramTrainer

from lama_core.models.hf.causal import CausalModel
from lama_core.models.hf.masked import MaskedModel
from lama_core.models.hf.seq2seq import Seq2SeqModel
from lama_core.models.protocols import Kind
from lama_core.models.registry import open_model
from lama_core.models.sources.locations import LocatedModel

WINDOW = 80
CITIES = [
    "Paris", "London", "Berlin", "Rome", "Madrid", "Vienna", "Oslo", "Cairo", "Lima", "Tokyo",
    "Zürich", "Kraków",
]  # fmt: skip
COUNTRIES = [
    "France", "England", "Germany", "Italy", "Spain", "Austria", "Norway", "Egypt", "Peru", "Japan",
    "Poland",
]  # fmt: skip
JOBS = [
    "painter", "singer", "physicist", "actor", "teacher", "lawyer", "poet", "may", "May", "marked",
]  # fmt: skip


# SentencePiece never joins letters with digits or punctuation in one piece.
SCRIPTS = pre_tokenizers.Split(Regex(r"▁?\p{L}+|▁?\p{N}+|▁?[^\p{L}\p{N}▁]+"), behavior="isolated")


def sentences() -> list[str]:
    """What the tokenizers are trained on: short facts with capitals, accents and digits."""
    texts = [f"The capital of {country} is {city}." for country, city in product(COUNTRIES, CITIES)]
    for number, (city, country, job) in enumerate(product(CITIES, COUNTRIES, JOBS)):
        texts.append(f"{city} is in {country}, said Ann (the {job}) in 19{number % 3 + 11}.")
    texts += [f"Anna was a {job} who didn't live in \"{city}\" - she's born." for job, city in
              product(JOBS, CITIES)]  # fmt: skip
    texts += [
        "a Poet a poet a Singer a singer IT it It Us us US",
        "tokenization of words is hard",
    ] * 9
    return texts


def word_pieces(special: Iterable[str], *, lower: bool) -> dict[str, int]:
    """A WordPiece vocabulary, special tokens first.

    Its pieces are those of a BPE, at the beginning of a word and inside: WordPiece's own training
    breaks ties by the order of a hash table, so that every process would have another model.
    """
    tokenizer = Tokenizer(token_models.BPE())
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lower)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    texts = sentences()
    tokenizer.train_from_iterator(texts, BpeTrainer(vocab_size=500, show_progress=False))
    words = {
        word
        for text in texts
        for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(
            tokenizer.normalizer.normalize_str(text)
        )
    }
    learned = tokenizer.get_vocab()
    letters = [piece for piece in learned if len(piece) == 1]
    pieces = {piece for piece in learned if any(word.startswith(piece) for word in words)}
    inside = {piece for piece in learned if any(piece in word[1:] for word in words)}
    pieces |= {f"##{piece}" for piece in inside} | {*letters, *(f"##{one}" for one in letters)}
    return {piece: number for number, piece in enumerate([*special, *sorted(pieces)])}


def byte_pairs(special: Iterable[str], *, size: int = 700) -> tuple[dict[str, int], Any]:
    """A byte-level BPE vocabulary and its merges, special tokens first."""
    tokenizer = Tokenizer(token_models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = BpeTrainer(
        vocab_size=size,
        special_tokens=list(special),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(sentences(), trainer)
    return _vocabulary_and_merges(tokenizer)


def metaspace_pairs(special: Iterable[str]) -> tuple[dict[str, int], Any]:
    """A BPE vocabulary over `▁` with single bytes to fall back on, as Llama 2 has."""
    single_bytes = [f"<0x{byte:02X}>" for byte in range(256)]
    tokenizer = Tokenizer(token_models.BPE(byte_fallback=True, fuse_unk=True, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Metaspace(prepend_scheme="first"), SCRIPTS]
    )
    trainer = BpeTrainer(
        vocab_size=800, special_tokens=[*special, *single_bytes], show_progress=False
    )
    tokenizer.train_from_iterator(sentences(), trainer)
    return _vocabulary_and_merges(tokenizer)


def _vocabulary_and_merges(tokenizer: Tokenizer) -> tuple[dict[str, int], Any]:
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    return tokenizer.get_vocab(), [(left, right) for left, right in merges]


def unigrams(special: Iterable[str], unknown: str, *, lower: bool) -> list[tuple[str, float]]:
    """A SentencePiece-Unigram vocabulary with its scores, special tokens first."""
    special = list(special)
    tokenizer = Tokenizer(token_models.Unigram())
    tokenizer.normalizer = normalizers.Lowercase() if lower else None
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
    )
    trainer = UnigramTrainer(
        vocab_size=400, special_tokens=special, unk_token=unknown, show_progress=False
    )
    tokenizer.train_from_iterator(sentences(), trainer)
    # The trainer's scores differ in their last digits between processes, and its order with them.
    found = [piece for piece, _ in json.loads(tokenizer.to_str())["model"]["vocab"][len(special) :]]
    text = "".join(f"▁{word}" for sentence in sentences() for word in sentence.split())
    counts = {piece: max(1, text.count(piece)) for piece in sorted(found)}
    whole = sum(counts.values())
    learned = [(piece, math.log(counts[piece] / whole)) for piece in counts]
    return [*((token, 0.0) for token in special), *learned]


BERT_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
ROBERTA_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")


def eager_mask(text: str) -> Any:
    """A mask token that swallows the space on its left, as RoBERTa's does."""
    return AddedToken(text, lstrip=True, special=True, normalized=False)


def bert_tokenizer(*, lower: bool) -> Any:
    return transformers.BertTokenizer(
        vocab=word_pieces(BERT_SPECIAL, lower=lower), do_lower_case=lower
    )


def distilbert_tokenizer() -> Any:
    return transformers.DistilBertTokenizer(
        vocab=word_pieces(BERT_SPECIAL, lower=True), do_lower_case=True
    )


def mpnet_tokenizer() -> Any:
    special = ("<s>", "<pad>", "</s>", "<unk>", "[UNK]")
    vocabulary = word_pieces(special, lower=True)
    vocabulary["<mask>"] = len(vocabulary)
    return transformers.MPNetTokenizer(vocab=vocabulary, mask_token=eager_mask("<mask>"))


def roberta_tokenizer() -> Any:
    vocabulary, merges = byte_pairs(ROBERTA_SPECIAL)
    return transformers.RobertaTokenizer(
        vocab=vocabulary, merges=merges, mask_token=eager_mask("<mask>")
    )


def xlm_roberta_tokenizer() -> Any:
    vocabulary = unigrams(("<s>", "<pad>", "</s>", "<unk>"), "<unk>", lower=False)
    vocabulary.append(("<mask>", 0.0))
    return transformers.XLMRobertaTokenizer(vocab=vocabulary, mask_token=eager_mask("<mask>"))


def albert_tokenizer() -> Any:
    special = ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")
    return transformers.AlbertTokenizer(
        vocab=unigrams(special, "<unk>", lower=True), mask_token=eager_mask("[MASK]")
    )


def deberta_tokenizer() -> Any:
    vocabulary, merges = byte_pairs(("[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]"))
    return transformers.DebertaTokenizer(
        vocab=vocabulary, merges=merges, mask_token=eager_mask("[MASK]")
    )


def deberta_v2_tokenizer() -> Any:
    vocabulary = unigrams(("[PAD]", "[CLS]", "[SEP]", "[UNK]"), "[UNK]", lower=False)
    vocabulary.append(("[MASK]", 0.0))
    return transformers.DebertaV2Tokenizer(vocab=vocabulary, unk_id=3)


def modernbert_tokenizer() -> Any:
    """As the released file is: GPT-NeoX's byte-level BPE, the special tokens added behind it."""
    vocabulary, merges = byte_pairs(())
    tokenizer = Tokenizer(token_models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["[UNK]", "[CLS]", "[SEP]", "[PAD]"])
    tokenizer.add_special_tokens([eager_mask("[MASK]")])
    ids = {text: tokenizer.token_to_id(text) for text in ("[CLS]", "[SEP]")}
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=list(ids.items())
    )
    names = {f"{name}_token": f"[{name.upper()}]" for name in ("unk", "cls", "sep", "pad")}
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, mask_token=eager_mask("[MASK]"), **names
    )


def gpt2_tokenizer() -> Any:
    vocabulary, merges = byte_pairs(("<|endoftext|>",))
    return transformers.GPT2Tokenizer(vocab=vocabulary, merges=merges)


def neox_tokenizer() -> Any:
    """Pythia's: a padding token that the vocabulary file doesn't count, no start token added."""
    vocabulary, merges = byte_pairs(("<|endoftext|>", "<|padding|>"))
    return transformers.GPTNeoXTokenizer(vocab=vocabulary, merges=merges)


def opt_tokenizer() -> Any:
    """GPT-2's with `</s>` before every text."""
    vocabulary, merges = byte_pairs(("<s>", "<pad>", "</s>", "<unk>"))
    tokenizer = transformers.GPT2Tokenizer(
        vocab=vocabulary,
        merges=merges,
        bos_token="</s>",
        eos_token="</s>",
        unk_token="</s>",
        pad_token="<pad>",
        add_bos_token=True,
    )
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="</s> $A", special_tokens=[("</s>", vocabulary["</s>"])]
    )
    return tokenizer


def llama_tokenizer() -> Any:
    """Llama 2's: `▁`, single bytes to fall back on, `<s>` before every text, no padding token."""
    vocabulary, merges = metaspace_pairs(("<unk>", "<s>", "</s>"))
    tokenizer = transformers.LlamaTokenizer(vocab=vocabulary, merges=merges, add_bos_token=True)
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", vocabulary["<s>"])]
    )
    return tokenizer


def smollm_tokenizer() -> Any:
    """SmolLM2's: byte-level BPE with single digits, chat control tokens, no start token added."""
    special = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
    vocabulary, merges = byte_pairs(special)
    tokenizer = Tokenizer(token_models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(special))
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<|im_start|>",
        eos_token="<|im_end|>",
        unk_token="<|endoftext|>",
        pad_token="<|im_end|>",
    )


def qwen_tokenizer() -> Any:
    """Qwen2's: composes accents, splits digits, has neither a start nor an unknown token."""
    vocabulary, merges = byte_pairs(())
    tokenizer = Tokenizer(token_models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.normalizer = normalizers.NFC()
    split = Regex(
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+"
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(split, behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )


SENTINELS = [f"<extra_id_{number}>" for number in range(9, -1, -1)]  # the first has the last id


def sentinel_of(tokenizer: Any, number: int = 0) -> int:
    """The id of `<extra_id_0>` or another, whichever way the vocabulary writes it."""
    vocabulary = tokenizer.get_vocab()
    plain = f"<extra_id_{number}>"
    return int(vocabulary.get(plain, vocabulary.get(f"▁{plain}")))


def t5_tokenizer() -> Any:
    """T5's: `▁`, `</s>` behind every text, and the sentinels behind the vocabulary."""
    vocabulary = unigrams(("<pad>", "</s>", "<unk>"), "<unk>", lower=False)
    vocabulary += [(sentinel, 0.0) for sentinel in SENTINELS]
    return transformers.T5Tokenizer(vocab=vocabulary, extra_ids=len(SENTINELS))


def mt5_tokenizer() -> Any:
    """mT5's: the sentinels are pieces of the vocabulary, each with a `▁`, and no special tokens."""
    vocabulary = unigrams(("<pad>", "</s>", "<unk>"), "<unk>", lower=False)
    vocabulary += [(f"▁{sentinel}", 0.0) for sentinel in SENTINELS]
    return transformers.T5Tokenizer(vocab=vocabulary, extra_ids=0)


def umt5_tokenizer() -> Any:
    """UMT5's: no class of its own."""
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=t5_tokenizer().backend_tokenizer,
        additional_special_tokens=SENTINELS,
        **{f"{name}_token": token for name, token in
           (("pad", "<pad>"), ("eos", "</s>"), ("unk", "<unk>"))},
    )  # fmt: skip


def gemma_tokenizer() -> Any:
    """Gemma's, with `<bos>` before every text, and sentinels, which the released one hasn't."""
    vocabulary, merges = metaspace_pairs(("<pad>", "<eos>", "<bos>", "<unk>", "<mask>"))
    tokenizer = transformers.GemmaTokenizer(vocab=vocabulary, merges=merges)
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="<bos> $A", special_tokens=[("<bos>", vocabulary["<bos>"])]
    )
    tokenizer.add_special_tokens({"additional_special_tokens": SENTINELS})
    return tokenizer


def tiny(**options: Any) -> dict[str, Any]:
    """Sizes that most families name alike."""
    return {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 48,
        "max_position_embeddings": WINDOW,
        "initializer_range": 0.35,
    } | options


@dataclass(frozen=True)
class Family:
    """How a tiny model of one family is made.

    extra_rows: how much wider the output is than the tokenizer's vocabulary, as Pythia's is.
    own_head: the head is not the embedding, as of the later T5s. known: it stands for a model whose
    digest the catalogue has, so that this project's own network reads it.
    """

    kind: Kind
    tokenizer: Callable[[], Any]
    config: str
    model: str
    sizes: dict[str, Any]
    cased: bool = True
    extra_rows: int = 0
    own_head: bool = False
    known: bool = False


DISTIL = {
    "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48, "max_position_embeddings": WINDOW,
    "initializer_range": 0.35,
}  # fmt: skip
DISENTANGLED = {
    "relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_biased_input": False,
    "max_relative_positions": WINDOW, "type_vocab_size": 0,
}  # fmt: skip
GPT2_SIZES = {
    "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": WINDOW, "initializer_range": 0.35,
}  # fmt: skip
OPT_SIZES = {
    "hidden_size": 32, "word_embed_proj_dim": 24, "num_hidden_layers": 2, "ffn_dim": 48,
    "num_attention_heads": 4, "max_position_embeddings": WINDOW, "init_std": 0.35,
    "do_layer_norm_before": True,
}  # fmt: skip

T5_SIZES = {
    "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4, "n_positions": WINDOW,
    "initializer_factor": 1.5, "decoder_start_token_id": 0,
}  # fmt: skip
LATER_T5 = T5_SIZES | {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}
GEMMA_SIZES = tiny(num_key_value_heads=2, head_dim=8, sliding_window=8, query_pre_attn_scalar=8)
GEMMA2_SIZES = GEMMA_SIZES | {"layer_types": ["sliding_attention", "full_attention"]}
TINY_EYES = {
    "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
    "image_size": 28, "patch_size": 14,
}  # fmt: skip

FAMILIES: dict[str, Family] = {
    "bert-cased": Family(
        "masked", lambda: bert_tokenizer(lower=False), "BertConfig", "BertForMaskedLM", tiny()
    ),
    "bert-uncased": Family(
        "masked", lambda: bert_tokenizer(lower=True), "BertConfig", "BertForMaskedLM", tiny(),
        cased=False, known=True,
    ),
    "distilbert": Family(
        "masked", distilbert_tokenizer, "DistilBertConfig", "DistilBertForMaskedLM", DISTIL,
        cased=False,
    ),
    "roberta": Family(
        "masked", roberta_tokenizer, "RobertaConfig", "RobertaForMaskedLM",
        tiny(max_position_embeddings=WINDOW + 2),
    ),
    "xlm-roberta": Family(
        "masked", xlm_roberta_tokenizer, "XLMRobertaConfig", "XLMRobertaForMaskedLM",
        tiny(max_position_embeddings=WINDOW + 2),
    ),
    "albert": Family(
        "masked", albert_tokenizer, "AlbertConfig", "AlbertForMaskedLM",
        tiny(embedding_size=16), cased=False,
    ),
    "electra": Family(
        "masked", lambda: bert_tokenizer(lower=True), "ElectraConfig", "ElectraForMaskedLM",
        tiny(embedding_size=24), cased=False,
    ),
    "mpnet": Family(
        "masked", mpnet_tokenizer, "MPNetConfig", "MPNetForMaskedLM",
        tiny(max_position_embeddings=WINDOW + 2), cased=False,
    ),
    "deberta": Family(
        "masked", deberta_tokenizer, "DebertaConfig", "DebertaForMaskedLM", tiny(**DISENTANGLED)
    ),
    "deberta-v3": Family(
        "masked", deberta_v2_tokenizer, "DebertaV2Config", "DebertaV2ForMaskedLM",
        tiny(**DISENTANGLED, position_buckets=16, norm_rel_ebd="layer_norm", share_att_key=True),
    ),
    "modernbert": Family(
        "masked", modernbert_tokenizer, "ModernBertConfig", "ModernBertForMaskedLM",
        tiny(local_attention=8), extra_rows=7,
    ),
    "gpt2": Family("causal", gpt2_tokenizer, "GPT2Config", "GPT2LMHeadModel", GPT2_SIZES),
    "pythia": Family(
        "causal", neox_tokenizer, "GPTNeoXConfig", "GPTNeoXForCausalLM", tiny(), extra_rows=9
    ),
    "opt": Family("causal", opt_tokenizer, "OPTConfig", "OPTForCausalLM", OPT_SIZES),
    "llama": Family(
        "causal", llama_tokenizer, "LlamaConfig", "LlamaForCausalLM", tiny(num_key_value_heads=2)
    ),
    "smollm2": Family(
        "causal", smollm_tokenizer, "LlamaConfig", "LlamaForCausalLM",
        tiny(num_key_value_heads=1, tie_word_embeddings=True), known=True,
    ),
    "qwen2": Family(
        "causal", qwen_tokenizer, "Qwen2Config", "Qwen2ForCausalLM",
        tiny(num_key_value_heads=2, tie_word_embeddings=True), extra_rows=5,
    ),
    "t5": Family(
        "seq2seq", t5_tokenizer, "T5Config", "T5ForConditionalGeneration", T5_SIZES, extra_rows=28
    ),
    "t5-v1.1": Family(
        "seq2seq", t5_tokenizer, "T5Config", "T5ForConditionalGeneration", LATER_T5,
        extra_rows=28, own_head=True,
    ),
    "mt5": Family(
        "seq2seq", mt5_tokenizer, "MT5Config", "MT5ForConditionalGeneration", LATER_T5,
        extra_rows=12, own_head=True,
    ),
    "umt5": Family(
        "seq2seq", umt5_tokenizer, "UMT5Config", "UMT5ForConditionalGeneration", LATER_T5,
        extra_rows=84, own_head=True,
    ),
    "t5gemma": Family(
        "seq2seq", gemma_tokenizer, "T5GemmaConfig", "T5GemmaForConditionalGeneration",
        {"encoder": GEMMA_SIZES, "decoder": GEMMA_SIZES},
    ),
    "t5gemma2": Family(
        "seq2seq", gemma_tokenizer, "T5Gemma2Config", "T5Gemma2ForConditionalGeneration",
        {"encoder": {"text_config": GEMMA2_SIZES, "vision_config": TINY_EYES},
         "decoder": GEMMA2_SIZES},
    ),
}  # fmt: skip
MASKED = tuple(name for name, family in FAMILIES.items() if family.kind == "masked")
CAUSAL = tuple(name for name, family in FAMILIES.items() if family.kind == "causal")
SEQ2SEQ = tuple(name for name, family in FAMILIES.items() if family.kind == "seq2seq")


@cache
def tiny_tokenizer(name: str) -> Any:
    return FAMILIES[name].tokenizer()


def make_model(name: str, *, seed: int = 0) -> tuple[Any, Any]:
    family = FAMILIES[name]
    tokenizer = tiny_tokenizer(name)
    special = {
        f"{which}_token_id": getattr(tokenizer, f"{which}_token_id")
        for which in ("pad", "bos", "eos", "cls", "sep")
    }
    common = {"vocab_size": len(tokenizer) + family.extra_rows} | special
    config = getattr(transformers, family.config)(**_with(common, family.sizes))
    torch.manual_seed(seed)
    model = getattr(transformers, family.model)(config).eval()
    with torch.no_grad():  # biases begin at 0, where a forgotten one would not show
        for label, weight in model.named_parameters():
            if label.endswith("bias"):
                weight.normal_(std=0.3)
        if family.own_head:
            width = model.config.d_model
            model.lm_head.weight = torch.nn.Parameter(
                0.3 * torch.randn(common["vocab_size"], width)
            )
            model.config.tie_word_embeddings = False  # as their folders say
    return model, tokenizer


def _with(common: dict[str, Any], sizes: dict[str, Any]) -> dict[str, Any]:
    """Sizes with what all configurations say; T5Gemma has one for either side."""
    return common | {
        name: _with(common, value) if name in ("encoder", "decoder", "text_config") else value
        for name, value in sizes.items()
    }


def save_model_folder(name: str, folder: Path, *, seed: int = 0) -> Path:
    """A family's random model as a folder of safetensors with its tokenizer."""
    model, tokenizer = make_model(name, seed=seed)
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_reader_folder(folder: Path, family: str) -> Path:
    """A random question-answering model, BERT or RoBERTa, as a folder of safetensors."""
    torch.manual_seed(7)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
             "intermediate_size": 32, "max_position_embeddings": WINDOW}  # fmt: skip
    model: Any
    if family == "bert":
        tokenizer = bert_tokenizer(lower=False)
        config = transformers.BertConfig(vocab_size=len(tokenizer), **sizes)
        model = transformers.BertForQuestionAnswering(config)
    else:
        tokenizer = roberta_tokenizer()
        padding = tokenizer.pad_token_id
        config = transformers.RobertaConfig(
            vocab_size=len(tokenizer), pad_token_id=padding, **sizes
        )
        model = transformers.RobertaForQuestionAnswering(config)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def open_family(
    name: str, folder: Path, *, precision: str = "fp32"
) -> MaskedModel | CausalModel | Seq2SeqModel:
    save_model_folder(name, folder)
    family, located = FAMILIES[name], LocatedModel(folder, f"tiny-{name}")
    known = {located.identity} if family.known else ()
    return open_model(name, located, family.kind, precision, known=known)
