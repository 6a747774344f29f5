"""The cache of loaded models: bounded in bytes, least recently used dropped first."""

import itertools
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_models import save_model_folder

from lama_core.models.cache import ModelCache, Precision, load_model

# Families whose output is tied to their input embeddings.
TIED = ("roberta", "distilbert", "albert", "electra", "gpt2", "smollm2", "qwen2", "opt")


@dataclass
class Weights:
    """Stands for a model: all that the cache asks of one."""

    n_bytes: int


def names(cache: ModelCache) -> list[str]:
    return [held.name for held in cache.held()]


def test_the_model_used_longest_ago_is_dropped_first() -> None:
    cache = ModelCache(max_bytes=30)
    for name in ("a", "b", "c"):
        cache.get(name, "fp32", lambda: Weights(10))
    cache.get("a", "fp32", lambda: pytest.fail("it is here already"))
    cache.get("d", "fp32", lambda: Weights(10))
    assert names(cache) == ["c", "a", "d"]
    assert cache.n_bytes == 30


def test_two_threads_that_ask_for_one_model_get_the_same_object_loaded_once() -> None:
    cache = ModelCache(max_bytes=30)
    loads: list[int] = []

    def load() -> Weights:
        loads.append(1)
        time.sleep(0.05)
        return Weights(10)

    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(cache.get, "a", "fp32", load) for _ in range(4)]
    assert len(loads) == 1
    assert all(one.result() is asked[0].result() for one in asked)


def test_what_a_load_will_take_is_made_free_before_it() -> None:
    cache = ModelCache(max_bytes=30)
    for name in ("a", "b", "c"):
        cache.get(name, "fp32", lambda: Weights(10))
    held_while_loading: list[int] = []

    def load() -> Weights:
        held_while_loading.append(cache.n_bytes)
        return Weights(20)

    cache.get("d", "fp32", load, 20)
    assert held_while_loading == [10]
    assert names(cache) == ["c", "d"]


def test_models_of_many_families_are_loaded_by_several_threads(tmp_path: Path) -> None:
    """transformers swaps its classes' methods while it loads: two at once broke both, for good."""
    folders = [save_model_folder(name, tmp_path / name) for name in TIED]
    asked = list(itertools.product(folders, ("fp32", "bf16")))
    ready = threading.Barrier(len(asked))

    def load(one: tuple[Path, Precision]) -> Any:
        ready.wait()
        return load_model(str(one[0]), precision=one[1])

    with ThreadPoolExecutor(len(asked)) as pool:
        loaded = list(pool.map(load, asked))
    for model in loaded:
        assert model.model.get_input_embeddings().weight.isfinite().all()
        assert torch.equal(
            model.model.get_input_embeddings().weight, model.model.get_output_embeddings().weight
        )
    fresh = load_model(str(save_model_folder("gpt2", tmp_path / "afterwards")))
    assert fresh.n_bytes > 0


def test_a_fork_of_a_process_that_used_a_model_is_refused_instead_of_hanging() -> None:
    code = """
import multiprocessing
import lama_core as lama
import torch

torch.set_num_threads(2)

def fill():
    lama.fill("Paris is the capital of ___.", models="minilm-mlm")

fill()
fork = multiprocessing.get_context("fork").Process(target=fill)
fork.start()
fork.join()
raise SystemExit(fork.exitcode)
"""
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=False
    )
    assert ended.returncode == 1
    assert "Start processes by 'spawn'" in ended.stderr
