"""`bench releases` measures models of the sizes that were released, with weights of chance."""

from dataclasses import replace
from pathlib import Path

import pytest

from lama_core.bench import releases
from lama_core.bench.workload import first_answers, trex_like_queries
from lama_core.candidates.columns import Candidates
from lama_core.models.cache import load_model
from lama_core.models.protocols import KINDS

SMALL = {
    "elmo": {"dim": 12, "projection_dim": 8, "filters": [[1, 4], [3, 5]]},
    "transformer-xl": {
        "n_layer": 2, "d_model": 64, "d_inner": 20, "n_head": 2, "d_head": 8, "mem_len": 9,
        "cutoffs": [40, 60, 90, 120],
    },
    "fconv": {"embed_dim": 6, "convolutions": [[64, 3, 1], [70, 2, 1]],
              "cutoffs": [40, 60, 120]},
}  # fmt: skip


@pytest.mark.parametrize("size", releases.SIZES, ids=lambda size: size.title)
def test_a_release_of_any_size_is_made_and_answers(size: releases.Size, tmp_path: Path) -> None:
    config = {**size.config, **SMALL[size.family]}
    queries = trex_like_queries(3)
    small = replace(size, n_words=120, config=config)
    n = releases.make_release(small, tmp_path, queries)
    model = load_model(str(tmp_path))
    assert model.kind == size.kind in KINDS and model.vocabulary.size == 120
    assert model.n_parameters == n
    full = Candidates("full", None)
    assert all(0 <= one < 120 for one in first_answers(model, queries, full))
    assert "word3" in model.vocabulary.forms("after space")


def test_the_sizes_are_those_of_the_releases() -> None:
    elmo, xl, fconv = releases.SIZES
    assert (elmo.n_words, elmo.config["dim"], elmo.config["projection_dim"]) == (793_471, 4096, 512)
    assert (xl.n_words, xl.config["n_layer"], xl.config["mem_len"]) == (267_735, 18, 1600)
    assert fconv.config["cutoffs"][-1] == fconv.n_words
    assert len(fconv.config["convolutions"]) == 3 + 1 + 4 + 1 + 3 + 1 + 1
