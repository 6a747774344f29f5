"""`bench releases`: ELMo, Transformer-XL and fconv of their real sizes, beside a BERT of base size.

The weights are random: no release is needed, and speed and memory don't depend on them. Each model
answers the same queries in a process of its own, ranking 16,000 words, and says how fast it was and
the most memory that the process held, imports and vocabulary included.
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

from lama_core.bench import BenchRow, called_in_a_fresh_process, rates
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
from lama_core.models.sources.locations import Located
from lama_core.types import Query

N_CANDIDATES = 16_000
SCALE = 0.02  # of the random weights
BOUND = 4096  # MiB that an ELMo of the released size may take
BERT = "BERT of base size"
FCONV_LAYERS = (
    "[(850, 6)] * 3 + [(850, 1)] * 1 + [(850, 5)] * 4 + [(850, 1)] * 1 + [(850, 4)] * 3 "
    "+ [(1024, 4)] * 1 + [(2048, 4)] * 1"
)


@dataclass(frozen=True, slots=True)
class Size:
    """A released model's size. config: as `models convert` writes it, but for the signs."""

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
    """Random rows that are drawn when they are written: no table is held whole."""

    def __init__(self, shape: Sequence[int]) -> None:
        self.shape = tuple(shape)
        self._draw = np.random.default_rng(0)

    def __getitem__(self, rows: slice) -> np.ndarray:
        """Some of the rows, float32."""
        n_rows = len(range(*rows.indices(self.shape[0])))
        return SCALE * self._draw.standard_normal((n_rows, *self.shape[1:]), dtype=np.float32)


def make_release(size: Size, folder: Path, queries: Sequence[Query]) -> int:
    """Write a converted release of that size with random weights; how many it has."""
    import torch

    from lama_core.models.classic.elmo import Elmo
    from lama_core.models.classic.fconv import FConv
    from lama_core.models.classic.transformer_xl import TransformerXL

    known = dict.fromkeys(word for query in queries for word in query.text().split())
    said = (value for value in size.signs.values() if isinstance(value, str))
    named = [word for word in dict.fromkeys([*said, *known]) if word][: size.n_words]
    words = [*named, *(f"word{number}" for number in range(size.n_words - len(named)))]
    config = {"model_type": size.family, "n_words": size.n_words, "signs": size.signs}
    write_description(folder, config | size.config, words)
    given = SimpleNamespace(**size.config, vocab_size=size.n_words)
    makers: dict[str, Callable[[], torch.nn.Module]] = {
        ELMO: lambda: Elmo(given, n_words=size.n_words),
        TRANSFORMER_XL: lambda: TransformerXL(given, zero_memory=True),
        FCONV: lambda: FConv(given),
    }
    with torch.device("meta"):
        made = makers[size.family]()
    shapes = {name: tuple(value.shape) for name, value in made.named_parameters()}
    write_tensors(folder / WEIGHTS, {name: Drawn(shape) for name, shape in shapes.items()})
    return sum(map(math.prod, shapes.values()))


def queries_a_second(folder: str, kind: Kind, n_queries: int, repetitions: int) -> float:
    """How fast a model folder's model answers."""
    queries = trex_like_queries(n_queries)
    model = open_model("random", Located(Path(folder), "random"), kind, "fp32")
    words = tuple(islice(model.vocabulary.forms("after space"), N_CANDIDATES))
    candidates = Candidates("some", words)
    left = [Query((query.parts[0], "")) for query in queries]  # what each kind is shown in runs
    asked = queries if KINDS[model.kind].sees_both else left
    return rates(n_queries, [partial(first_answers, model, asked, candidates)], repetitions)[0]


def measured(folder: str, kind: Kind, n_queries: int, repetitions: int) -> tuple[float, float]:
    """Queries a second, and MiB, of a process of its own."""
    given = (folder, kind, n_queries, repetitions)
    speed, peak = called_in_a_fresh_process(queries_a_second, *given)
    return speed, peak / (1 << 20)


def run(*, n_queries: int = 32, repetitions: int = 1) -> list[BenchRow]:
    """All rows: speed and memory of each size."""
    rows = []
    with tempfile.TemporaryDirectory() as name:
        for part in plain_base_sized_model():
            part.save_pretrained(name)
        fast, small = measured(name, "masked", n_queries, repetitions)
    for size in SIZES:
        with tempfile.TemporaryDirectory() as name:
            n = make_release(size, Path(name), trex_like_queries(n_queries))
            speed, memory = measured(name, size.kind, n_queries, repetitions)
        what = f"{n_queries} cloze queries, {size.title} ({n / 1e6:,.0f}M weights)"
        bound = (BOUND, "bound") if size.family == ELMO else (None, "")
        rows += [
            BenchRow(what, "queries/s", speed, fast, BERT),
            BenchRow(f"peak memory, {size.title}", "MiB", memory, small, BERT, *bound),
        ]
    return rows
