"""A grid compares the words of similar sentences."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from asking import ask_loaded

from lama_core.errors import UserError
from lama_core.queries.blank_answers import query_model
from lama_core.queries.grid import BATCH_SIZE, MAX_SENTENCES, N_KNOWN, expand, grid, group_words
from lama_core.scoring.blanks import parse_query
from lama_core.scoring.limits import UNLIMITED, Limits

Models = Callable[..., Any]
TEXT = "The {old|young} {man|woman} was a [MASK]."


def test_alternatives_make_every_combination_in_order() -> None:
    assert expand(TEXT) == [
        "The old man was a [MASK].",
        "The old woman was a [MASK].",
        "The young man was a [MASK].",
        "The young woman was a [MASK].",
    ]
    assert expand("A ___.") == ["A ___."]
    assert expand("A {very |} good ___.") == ["A very good ___.", "A good ___."]


def test_bad_sentences_are_refused_in_one_sentence() -> None:
    for texts, message in (
        (("The {nurse|man said ___.",), "aren't balanced"),
        (("The {nurse} said ___.",), "hold only one alternative"),
        (("{a|b|c|d|e} {a|b|c|d|e} {a|b|c} ___",), "make 75 sentences; the maximum is 64"),
        (tuple(f"{n} ___" for n in range(MAX_SENTENCES + 1)), "There are 65 sentences"),
        (("A ___.", "A ___."), "occurs twice"),
        (("A ___ ___.",), "has 2 blanks"),
        (("",), "has no blank|empty"),
    ):
        with pytest.raises(UserError, match=message):
            grid.kind.prepare(grid.request(texts), UNLIMITED)


@pytest.mark.parametrize("family", ("bert-cased", "gpt2", "t5"))
def test_a_cell_is_the_words_rank_and_probability_in_its_sentence(
    family: str, tiny_model: Models
) -> None:
    model = tiny_model(family)
    context: Any = "left" if family == "gpt2" else None
    found = ask_loaded(grid, [model], (TEXT,), top_k=3, context=context)
    (one,) = found.models
    firsts: list[list[str]] = []
    for number, text in enumerate(expand(TEXT)):
        query, words = parse_query(text), found.asked.candidates
        alone = query_model(model, query, words, top_k=N_KNOWN, context=context)
        known = {item.token: item for item in alone.blanks[0].predictions}
        firsts.append([item.token for item in alone.blanks[0].predictions[:3]])
        for word, row in one.cells.items():
            cell, item = row[number], known.get(word)
            assert cell.text == parse_query(text).text()
            if item is None:
                assert cell.rank is None and cell.prob is None
            else:
                assert cell.log_prob == pytest.approx(item.log_prob, abs=1e-4)
    assert set(one.cells) == {word for words in firsts for word in words}
    for word, row in one.cells.items():
        n = sum(word in words for words in firsts)
        assert {cell.n_sentences for cell in row} == {n}
    assert set(one.shared) == set.intersection(*map(set, firsts))
    for number, words in enumerate(firsts):
        others = {word for at, each in enumerate(firsts) if at != number for word in each}
        assert set(one.only_in(number, 3)) == set(words) - others


class Vectors:
    def word_vectors(self, words: list[str]) -> Any:
        places = {"a": (1, 0.01), "b": (1, -0.01), "c": (-1, 0.01), "d": (-1, -0.01)}
        return np.array([places[word] for word in words], np.float32)


def test_near_words_are_one_group_in_the_order_of_the_words() -> None:
    groups = group_words(Vectors(), ("c", "a", "d", "b"), 2)  # type: ignore[arg-type]
    assert groups == {"c": 1, "d": 1, "a": 2, "b": 2}
    assert group_words(Vectors(), ("c", "a"), 5) == {"c": 1, "a": 2}  # type: ignore[arg-type]


def test_the_time_limit_leaves_out_the_last_sentences(tiny_model: Models) -> None:
    texts = tuple(f"The {n}th man was a [MASK]." for n in range(20))
    found = ask_loaded(grid, [tiny_model("bert-cased")], texts, limits=Limits(seconds=0.0))
    (one,) = found.models
    assert len(one.answers) == BATCH_SIZE < 20
    assert "the last 12 sentences were not scored" in one.note
    assert {len(row) for row in one.cells.values()} == {BATCH_SIZE}
    assert len(found.rows()) == BATCH_SIZE * len(one.cells)
