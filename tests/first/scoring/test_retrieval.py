"""The nearest passage, with its score worked out by hand."""

from math import log, sqrt
from pathlib import Path

import numpy as np
import pytest

from lama_core.datasets.passages import Corpus, load_corpus
from lama_core.errors import UserError
from lama_core.scoring.retrieval import OpenBook, is_indexed, open_index, terms, with_passage
from lama_core.types import Query

pytestmark = pytest.mark.usefixtures("home")


def corpus_of(folder: Path, *passages: str) -> Corpus:
    folder.mkdir(exist_ok=True)
    (folder / "text.txt").write_text("\n".join(passages), encoding="utf-8")
    return load_corpus(str(folder))


def query(text: str) -> Query:
    return Query(tuple(text.split("___")))


def test_terms_are_words_and_neighbours_without_stop_words() -> None:
    assert terms("The Nile River is in Egypt") == ["nile", "river", "egypt", "nile river"]


def test_the_score_is_the_cosine_of_tf_idf_weights(tmp_path: Path) -> None:
    index = open_index(corpus_of(tmp_path / "c", "Nile Nile.", "Nile Egypt.", "Oslo."))
    (first, second) = index.search(query("Nile ___."), 5)
    nile, rare = log(4 / 3) + 1, log(4 / 2) + 1  # of three passages two hold `nile`, one each pair
    # The query has the one word, so its weight is 1. "Nile Nile" has nile twice, and the pair.
    twice = (1 + log(2)) * nile
    assert (first.number, first.passage) == (0, "Nile Nile.")
    assert first.score == pytest.approx(twice / sqrt(twice**2 + rare**2))
    # "Nile Egypt" has nile, egypt and the pair.
    assert (second.number, second.score) == (1, pytest.approx(nile / sqrt(nile**2 + 2 * rare**2)))


def test_a_passage_with_the_answer_is_not_preferred(tmp_path: Path) -> None:
    book = OpenBook(corpus_of(tmp_path / "c", "France is old.", "Paris is old."))
    found = book.look_up(query("The capital of France is ___."))
    assert found is not None and found.passage == "France is old."


def test_equal_scores_stand_in_the_order_of_the_corpus(tmp_path: Path) -> None:
    index = open_index(corpus_of(tmp_path / "c", "Oslo.", "Nile Egypt.", "Nile Sudan."))
    assert [one.number for one in index.search(query("Nile ___"), 5)] == [1, 2]


def test_a_query_without_a_shared_word_is_asked_alone(tmp_path: Path) -> None:
    book = OpenBook(corpus_of(tmp_path / "c", "Oslo."))
    for text in ("Nile ___.", "The ___ of it."):
        assert book.look_up(query(text)) is None
        assert book.before(query(text)) == query(text)


def test_the_passage_stands_before_the_query_and_every_blank_stays(tmp_path: Path) -> None:
    book = OpenBook(corpus_of(tmp_path / "c", "Cairo is in Egypt."))
    assert book.before(query("Egypt is ___ and ___.")).parts == (
        "Cairo is in Egypt. Egypt is ", " and ", ".",
    )  # fmt: skip
    assert with_passage(query("___ is old."), book.look_up(query("Egypt ___"))).text("_") == (
        "Cairo is in Egypt. _ is old."
    )


def test_a_corpus_of_nothing_leaves_no_index(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path / "c", "")
    with pytest.raises(UserError, match="has no text"):
        open_index(corpus)
    assert not is_indexed(corpus)


def test_a_damaged_index_is_named(tmp_path: Path) -> None:
    index = open_index(corpus_of(tmp_path / "c", "Cairo is in Egypt."))
    np.save(index.folder / "idf.npy", np.array(["x"], dtype=object), allow_pickle=True)
    with pytest.raises(UserError, match="is damaged"):
        open_index(corpus_of(tmp_path / "c", "Cairo is in Egypt.")).search(query("Egypt ___"))
