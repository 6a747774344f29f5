"""A tiny BERT encoder without a head, and sentences that it can learn."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tools.training.corpus.source_passages import CorpusSource

COUNTRIES = {"paris": "france", "rome": "italy", "tokyo": "japan", "cairo": "egypt"}
SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SENTENCES = [
    f"The {adjective} city of {city.title()} is the capital of {country.title()} in year {year}."
    for city, country in COUNTRIES.items()
    for adjective in ("great", "old", "small")
    for year in range(1990, 2000)
]


def make_tiny_encoder(folder: Path) -> Path:
    """Write the encoder into `folder`: one layer, 16 wide, random weights, seed 0."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    words = {w.lower().strip(".") for s in SENTENCES for w in s.split()}
    pieces = [*SPECIALS, *sorted(words), ".", ",", *"abcdefghijklmnopqrstuvwxyz"]
    vocabulary = {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}
    backend = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    folder.mkdir(parents=True, exist_ok=True)
    PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    ).save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
    )
    BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    return folder


def one_source() -> "CorpusSource":
    """Return a source of a corpus: the sentences."""
    from tools.training.corpus.source_list import WORDNET
    from tools.training.corpus.source_passages import CorpusSource, Passage

    passages = [Passage(f"{number}", text) for number, text in enumerate(SENTENCES)]
    return CorpusSource("text", "Text", "none", 1.0, WORDNET, lambda read: iter(passages), True)
