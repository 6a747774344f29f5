"""`bench releases`: ELMo, Transformer-XL and fconv in their real sizes, compared with BERT base.

The weights are random, so that no release is needed; speed and memory don't depend on their values.
Each model answers the same queries over 16,000 candidates in its own process. Peak memory includes
imports and the vocabulary.
"""

import math
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from lama_core.bench import TARGET, BenchRow, called_in_a_fresh_process, rates
from lama_core.bench.workload import first_answers, plain_base_sized_model, trex_like_queries
from lama_core.candidates.columns import Candidates
from lama_core.models.classic.converted import (
    ELMO,
    FCONV,
    TRANSFORMER_XL,
    WEIGHTS,
    write_description,
)
from lama_core.models.conversion import elmo, fconv, transformer_xl
from lama_core.models.conversion.tensors import write_tensors
from lama_core.models.protocols import KINDS, Kind
from lama_core.models.registry import open_model
from lama_core.models.sources.locations import LocatedModel
from lama_core.types import Query

N_CANDIDATES = 16_000
SCALE = 0.02  # standard deviation of the random weights
ELMO_MEBIBYTES = 4096  # this project's target: maximum memory of ELMo
BERT = "BERT of base size"
FCONV_LAYERS = (
    "[(850, 6)] * 3 + [(850, 1)] * 1 + [(850, 5)] * 4 + [(850, 1)] * 1 + [(850, 4)] * 3 "
    "+ [(1024, 4)] * 1 + [(2048, 4)] * 1"
)


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a released model.

    Attributes:
        title: Its name in the results.
        family: Its `model_type`.
        kind: The kind of model.
        n_words: Size of the vocabulary.
        config: The configuration as `models convert` writes it, without the special tokens.
        signs: The special tokens.
    """

    title: str
    family: str
    kind: Kind
    n_words: int
    config: dict[str, Any]
    signs: dict[str, Any]


SIZES = (
    Size(
        "ELMo original",
        ELMO,
        "bidirectional",
        793_471,
        {
            "char_dim": 16,
            "max_characters": 50,
            "n_highway": 2,
            "dim": 4096,
            "projection_dim": 512,
            "n_layers": 2,
            "cell_clip": 3,
            "proj_clip": 3,
            "skips": True,
            "filters": [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]],
        },
        {"unknown": elmo.UNKNOWN, "begin": elmo.BEGIN, "end": elmo.END, "apart": elmo.APART},
    ),
    Size(
        "Transformer-XL",
        TRANSFORMER_XL,
        "causal",
        267_735,
        {
            "n_layer": 18,
            "n_head": 16,
            "d_model": 1024,
            "d_head": 64,
            "d_inner": 4096,
            "mem_len": 1600,
            "clamp_len": 1000,
            "div_val": 4,
            "same_length": True,
            "cutoffs": [20_000, 40_000, 200_000, 267_735],
        },
        {"unknown": transformer_xl.UNKNOWN, "begin": transformer_xl.BEGIN},
    ),
    Size(
        "fconv",
        FCONV,
        "causal",
        267_744,
        {
            "embed_dim": 280,
            "cutoffs": [10_000, 20_000, 200_000, 267_744],
            "convolutions": fconv.parse_layers(FCONV_LAYERS, Path("fconv_lm_dauphin_wikitext103")),
        },
        {"unknown": fconv.UNKNOWN, "begin": fconv.BEGIN, "apart": fconv.APART},
    ),
)


class Drawn:
    """A random array whose rows are drawn when they are read, to save memory."""

    def __init__(self, shape: Sequence[int]) -> None:
        self.shape = tuple(shape)
        self._draw = np.random.default_rng(0)

    def __getitem__(self, rows: slice) -> np.ndarray:
        """Return a slice of rows, float32."""
        n_rows = len(range(*rows.indices(self.shape[0])))
        return SCALE * self._draw.standard_normal((n_rows, *self.shape[1:]), dtype=np.float32)


def make_release(size: Size, folder: Path, queries: Sequence[Query]) -> int:
    """Write a converted release with random weights; return the number of weights."""
    import torch

    from lama_core.models.classic.elmo import Elmo
    from lama_core.models.classic.fconv import FConv
    from lama_core.models.classic.transformer_xl import TransformerXL

    query_words = (word for query in queries for word in query.text().split())
    special = (value for value in size.signs.values() if isinstance(value, str))
    used = [word for word in dict.fromkeys([*special, *query_words]) if word][: size.n_words]
    words = [*used, *(f"word{number}" for number in range(size.n_words - len(used)))]
    config = {"model_type": size.family, "n_words": size.n_words, "signs": size.signs}
    write_description(folder, config | size.config, words)
    settings = SimpleNamespace(**size.config, vocab_size=size.n_words)
    makers: dict[str, Callable[[], torch.nn.Module]] = {
        ELMO: lambda: Elmo(settings, n_words=size.n_words),
        TRANSFORMER_XL: lambda: TransformerXL(settings, zero_memory=True),
        FCONV: lambda: FConv(settings),
    }
    with torch.device("meta"):
        network = makers[size.family]()
    shapes = {name: tuple(value.shape) for name, value in network.named_parameters()}
    write_tensors(folder / WEIGHTS, {name: Drawn(shape) for name, shape in shapes.items()})
    return sum(map(math.prod, shapes.values()))


def queries_a_second(folder: str, kind: Kind, n_queries: int, repetitions: int) -> float:
    """Return the cloze queries per second of the model in a folder."""
    queries = trex_like_queries(n_queries)
    model = open_model("random", LocatedModel(Path(folder), "random"), kind, "fp32")
    words = tuple(islice(model.vocabulary.forms("after space"), N_CANDIDATES))
    candidates = Candidates("some", words)
    if not KINDS[model.kind].sees_both:  # as in runs
        queries = [Query((query.parts[0], "")) for query in queries]
    return rates(n_queries, [partial(first_answers, model, queries, candidates)], repetitions)[0]


def measured(folder: str, kind: Kind, n_queries: int, repetitions: int) -> tuple[float, float]:
    """Return queries per second and peak memory in MiB, measured in a new process."""
    args = (folder, kind, n_queries, repetitions)
    speed, peak = called_in_a_fresh_process(queries_a_second, *args)
    return speed, peak / (1 << 20)


def run(*, n_queries: int = 32, repetitions: int = 1) -> list[BenchRow]:
    """Measure the speed and memory of each model."""
    rows = []
    with tempfile.TemporaryDirectory() as name:
        for part in plain_base_sized_model():
            part.save_pretrained(name)
        bert_speed, bert_memory = measured(name, "masked", n_queries, repetitions)
    for size in SIZES:
        with tempfile.TemporaryDirectory() as name:
            n = make_release(size, Path(name), trex_like_queries(n_queries))
            speed, memory = measured(name, size.kind, n_queries, repetitions)
        what = f"{n_queries} cloze queries, {size.title} ({n / 1e6:,.0f}M weights)"
        target = (ELMO_MEBIBYTES, TARGET) if size.family == ELMO else (None, "")
        rows += [
            BenchRow(what, "queries/s", speed, bert_speed, BERT),
            BenchRow(f"peak memory, {size.title}", "MiB", memory, bert_memory, BERT, *target),
        ]
    return rows
