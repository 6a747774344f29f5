"""Word vectors are read from every common text format; RelBERT embeds pairs as released."""

import bz2
import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest
import torch
from analogy_fakes import CAPITALS, write_vectors
from tiny_models import roberta_tokenizer

from lama_core.errors import UserError
from lama_core.models.auxiliary.relbert import RelBert
from lama_core.probes.analogy.frequency import compare_frequency, pair_frequency, word_frequency
from lama_core.probes.analogy.vectors import load_vectors

WORDS = ("Paris", "France", "Lima", "Peru")


@pytest.mark.parametrize("header", [True, False])
def test_vectors_are_read_with_and_without_a_header(tmp_path: Path, header: bool) -> None:
    path = write_vectors(tmp_path / "v.txt", WORDS, header=header)
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if "Lima" in line]
    found = load_vectors(str(path), ["Lima", "Rome"])
    expected = np.array(lines[0].split(" ")[1:], np.float32)
    np.testing.assert_array_equal(found.vector("Lima"), expected)
    assert found.missing(["Lima", "Rome", "Rome"]) == ("Rome",)


@pytest.mark.parametrize("how", ["gz", "bz2", "whl", "whl of bz2"])
def test_compressed_and_packed_files_give_the_same_vectors(tmp_path: Path, how: str) -> None:
    plain = write_vectors(tmp_path / "v.txt", WORDS)
    data = plain.read_bytes()
    source = str(tmp_path / f"v.txt.{how}")
    if how == "gz":
        Path(source).write_bytes(gzip.compress(data))
    elif how == "bz2":
        Path(source).write_bytes(bz2.compress(data))
    else:
        inner = "inner/v.txt.bz2" if "bz2" in how else "inner/v.txt"
        with ZipFile(tmp_path / "p.whl", "w") as archive:
            archive.writestr(inner, bz2.compress(data) if "bz2" in how else data)
        source = f"{tmp_path / 'p.whl'}!{inner}"
    found = load_vectors(source, WORDS)
    assert found.identity == load_vectors(str(plain), WORDS).identity


def test_a_word_is_looked_up_as_written_and_then_lower_cased(tmp_path: Path) -> None:
    path = tmp_path / "v.txt"
    path.write_text("paris 1 2\nFrance 3 4\nfrance 5 6\n", encoding="utf-8")
    found = load_vectors(str(path), ["Paris", "France"])
    np.testing.assert_array_equal(found.vector("Paris"), [1, 2])
    np.testing.assert_array_equal(found.vector("France"), [3, 4])
    np.testing.assert_array_equal(found.pair_vectors([("Paris", "France")]), [[2, 2]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Paris 1 x\n", "line 1: not a vector of numbers"),
        ("Paris 1 nan\n", "contains NaN or infinity"),
        ("Oslo 1 2\n", "none of the 2 words has a vector"),
    ],
)
def test_bad_vector_files_are_refused_in_one_sentence(
    tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "v.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=message):
        load_vectors(str(path), ["Paris"])


@pytest.fixture
def relbert() -> Callable[..., RelBert]:
    """A tiny RoBERTa encoder with a RelBERT configuration."""
    from transformers import RobertaConfig, RobertaModel

    tokenizer = roberta_tokenizer()

    def make(mode: str = "average_no_mask", template: str | None = None) -> RelBert:
        config = RobertaConfig(
            vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
            intermediate_size=24, max_position_embeddings=80, pad_token_id=tokenizer.pad_token_id,
        )  # fmt: skip
        if template is None:
            template = "the relation between <subj> and <obj> : <subj> is the <mask> of <obj>"
        if mode:
            config.relbert_config = {"mode": mode, "template": template}
        torch.manual_seed(0)
        return RelBert("tiny", RobertaModel(config), tokenizer, identity="tiny")

    return make


@pytest.mark.parametrize("mode", ["average", "average_no_mask", "mask"])
def test_relbert_is_the_mean_over_its_own_prompt(relbert: Any, mode: str) -> None:
    model = relbert(mode)
    found = model.pair_vectors([("Paris", "France"), ("tokenization", "Peru")])
    for (head, tail), row in zip(
        (("Paris", "France"), ("tokenization", "Peru")), found, strict=True
    ):
        text = f"the relation between {head} and {tail} : {head} is the <mask> of {tail}"
        ids = torch.tensor([model.tokenizer(text)["input_ids"]])
        with torch.no_grad():
            states = model.model(ids).last_hidden_state[0]
        is_mask = ids[0] == model.tokenizer.mask_token_id
        assert is_mask.sum() == 1
        chosen = {"average": is_mask | True, "average_no_mask": ~is_mask, "mask": is_mask}[mode]
        np.testing.assert_allclose(row, states[chosen].mean(0), atol=1e-5)


def test_the_frequency_of_a_pair_is_the_harmonic_mean() -> None:
    a, b = word_frequency("the"), word_frequency("cat")
    assert pair_frequency(("the", "cat")) == pytest.approx(2 / (1 / a + 1 / b))
    assert pair_frequency(("the", "zzqxv")) == 0


def test_too_few_right_or_wrong_answers_are_not_tested() -> None:
    found = compare_frequency(list(CAPITALS), [True] * 7 + [False])
    assert found.p_value is None
