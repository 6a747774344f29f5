"""Readings of pairs before each step, counted again from the batches that training reads."""

from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
from test_training import SETTINGS, run
from tiny_encoder import COUNTRIES

from tools.training.history import count_readings
from tools.training.recipe import prepare

PAIRS = [(city.title(), gold.title()) for city, gold in COUNTRIES.items()]


@pytest.mark.parametrize(("max_length", "some"), [(24, True), (8, False)])
def test_readings_are_those_of_the_batches(
    tiny_encoder: Path, text_file: Path, tmp_path: Path, max_length: int, some: bool
) -> None:
    settings = replace(SETTINGS, steps=20, max_length=max_length)
    folder = tmp_path / "run"
    run(settings, tiny_encoder, text_file, folder)
    found = count_readings([folder], tiny_encoder, [*PAIRS, ("Paris", "Italy")], [0, 1, 16, 20])
    ready = prepare(settings, encoder=tiny_encoder, corpus_files=[text_file], folder=folder)
    for step in (0, 1, 16, 20):
        texts = [
            set(ready.tokenizer.convert_ids_to_tokens(row))
            for batch in islice(ready.sampler.batches(0), step)
            for row in batch.ids
        ]
        for city, gold in PAIRS:
            n = sum({city.lower(), gold.lower()} <= text for text in texts)
            assert found.before(step, [(city, gold)]).tolist() == [n]
    assert found.counts["Paris", "Italy"] == (0, 0, 0, 0)
    assert any(found.counts[pair][-1] for pair in PAIRS) is some  # 8 tokens end before the country


def test_readings_of_a_continued_model_are_added(
    tiny_encoder: Path, text_file: Path, tmp_path: Path
) -> None:
    folders = [tmp_path / "first", tmp_path / "second"]
    for seed, folder in enumerate(folders):
        run(replace(SETTINGS, steps=4, seed=seed), tiny_encoder, text_file, folder)
    first, second = (count_readings([one], tiny_encoder, PAIRS, [2, 4]) for one in folders)
    both = count_readings(folders, tiny_encoder, PAIRS, [4, 6, 8])
    assert any(second.counts[pair][-1] for pair in PAIRS)
    for pair in PAIRS:
        before = first.counts[pair][-1]
        assert both.counts[pair] == (before, *(before + n for n in second.counts[pair]))
