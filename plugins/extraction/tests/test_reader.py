"""Question-answering models: the spans of single words, against the model asked word by word."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_models import save_reader_folder

from lama_core.errors import UserError
from lama_extraction.reader import SpanReader, load_reader

pytestmark = pytest.mark.usefixtures("home")
PASSAGES = ("Paris is in France.", "Zürich, said Ann, is near Paris and Oslo.")
QUESTION = "The capital of France is what?"
WORDS = ("Oslo", "Paris", "Zürich", "Rome")


def column(word: str) -> int | None:
    return WORDS.index(word) if word in WORDS else None


def by_hand(reader: SpanReader) -> dict[int, float]:
    """Each passage read by itself; a word's tokens are found by decoding, and not by offsets."""
    scores: dict[int, list[float]] = {}
    for passage, (number, word) in product(PASSAGES, enumerate(WORDS)):
        if word not in passage:
            continue
        ids = reader.tokenizer(QUESTION, passage)["input_ids"]
        with torch.inference_mode():
            output = reader.model(**reader.tokenizer(QUESTION, passage, return_tensors="pt"))
        found = [
            (first, last)
            for first in range(len(ids))
            for last in range(first, len(ids))
            if reader.tokenizer.decode(ids[first : last + 1]).strip() == word
        ]
        first, last = min(found, key=lambda span: span[1] - span[0])
        assert len({start for start, _ in found}) == 1  # a space behind it may be a token too
        score = output.start_logits[0, first] + output.end_logits[0, last]
        scores.setdefault(number, []).append(float(score))
    total = np.log(sum(np.exp(one) for own in scores.values() for one in own))
    return {number: np.log(np.exp(own).sum()) - total for number, own in scores.items()}


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_words_are_scored_by_their_first_and_last_token_over_all_passages(
    tmp_path: Path, family: str
) -> None:
    reader = load_reader(str(save_reader_folder(tmp_path / family, family)))
    found = reader.find(QUESTION, PASSAGES, column)
    expected = by_hand(reader)
    assert set(found) == set(expected) == {0, 1, 2}, "Rome stands in no passage"
    for number, value in expected.items():
        assert found[number] == pytest.approx(value, abs=1e-4)
    assert sum(np.exp(list(found.values()))) == pytest.approx(1)


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_an_answer_is_never_a_word_of_the_question(tmp_path: Path, family: str) -> None:
    reader = load_reader(str(save_reader_folder(tmp_path / family, family)))
    assert reader.find("Is Oslo in Rome or what?", ["Nothing of Paris."], column) == {1: 0.0}


@pytest.mark.parametrize(("family", "signs"), [("bert", 3), ("roberta", 4)])
def test_a_question_that_leaves_no_room_for_a_passage_is_refused_in_a_sentence(
    tmp_path: Path, family: str, signs: int
) -> None:
    reader = load_reader(str(save_reader_folder(tmp_path / family, family)))
    most = reader.model.config.max_position_embeddings - 2 - signs - 1
    fits = " ".join(["Oslo"] * most)
    assert reader.find(fits, ["Paris"], column) == {1: 0.0}
    with pytest.raises(UserError, match=f"has {most + 1} tokens"):
        reader.find(f"{fits} Oslo", ["Paris"], column)
