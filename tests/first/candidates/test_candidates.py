"""Candidates: words, whatever the tokens that write them."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from probe_fakes import WordList as Words

from lama_core.candidates.columns import Candidates
from lama_core.candidates.lists import (
    STOP_WORDS,
    common_vocabulary,
    is_content_word,
    is_word,
    named_candidates,
    read_candidate_file,
    why_not_ranked,
)
from lama_core.candidates.spelling import AFTER_SPACE
from lama_core.errors import UserError

CASED = Words(["Paris", "paris", "the", "PARIS", "London", "a", "!", "x1"])
UNCASED = Words(["paris", "london", "of", "rome"], cased=False)
word_lists = st.lists(st.text(st.characters(categories=("L",)), min_size=1, max_size=4), max_size=9)


def test_words_that_a_model_lacks_are_dropped_and_the_order_is_kept() -> None:
    columns = Candidates("file:x", ("London", "Oslo", "Paris")).columns(CASED)
    assert columns.words == ("London", "Paris")
    assert columns.table(AFTER_SPACE).ids.tolist() == [[4], [0]]
    assert columns.index == {"London": 0, "Paris": 1}


def test_case_variants_of_a_folded_word_share_its_column() -> None:
    columns = Candidates("x", ("Paris", "PARIS", "London")).folded().columns(CASED)
    assert columns.words == ("paris", "london")
    assert columns.table(AFTER_SPACE).ids.tolist() == [[0, 1, 3], [4, -1, -1]]


def test_an_uncased_model_is_asked_for_lower_cased_words() -> None:
    columns = Candidates("x", ("Paris", "PARIS", "Rome")).columns(UNCASED)
    assert columns.words == ("paris", "rome")


def test_a_list_that_has_no_word_of_the_model_is_refused() -> None:
    with pytest.raises(UserError, match="None of the 1 words"):
        Candidates("x", ("Oslo",)).columns(CASED)


def test_common_words_of_cased_models_keep_their_case() -> None:
    common = common_vocabulary([CASED, Words(["London", "Paris", "the"])])
    assert common.words == ("London", "Paris")
    assert not common.fold_case


def test_common_words_are_lower_cased_as_soon_as_one_model_is_uncased() -> None:
    common = common_vocabulary([CASED, UNCASED])
    assert common.words == ("london", "paris")
    assert common.fold_case


def test_models_without_a_common_word_are_refused() -> None:
    with pytest.raises(UserError, match="no word in common"):
        common_vocabulary([CASED, Words(["Oslo"])])


def test_the_digest_knows_words_order_and_case_but_not_the_name() -> None:
    digests = [
        Candidates("x", ("a", "b")).digest,
        Candidates("x", ("b", "a")).digest,
        Candidates("x", ("ab",)).digest,
        Candidates("x", ("a", "b"), fold_case=True).digest,
        Candidates("x", None).digest,
    ]
    assert len(set(digests)) == len(digests)
    assert Candidates("y", ("a", "b")).digest == digests[0]


@pytest.mark.parametrize("word", ("the", "The", "a", "!", "don't", "x", "", "e-mail"))
def test_stop_words_letters_and_symbols_are_no_content_words(word: str) -> None:
    assert not is_content_word(word)


def test_names_and_numbers_are_content_words() -> None:
    assert all(is_content_word(word) for word in ("Paris", "1912", "Zürich", "may2"))
    assert all(word == word.lower() for word in STOP_WORDS)


def test_a_candidate_file_is_read_in_its_order_without_doubles(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_bytes("\ufeffRome\r\n\n Paris \nRome\nZürich".encode())
    assert read_candidate_file(path) == ("Rome", "Paris", "Zürich")


@pytest.mark.parametrize(
    ("data", "message"),
    ((b"", "is empty"), (b" \n\n", "is empty"), (b"a\0b", "not text"), (b"\xff\xfe", "not UTF-8")),
)
def test_a_candidate_file_that_is_no_list_of_words_is_refused(
    tmp_path: Path, data: bytes, message: str
) -> None:
    path = tmp_path / "words.txt"
    path.write_bytes(data)
    with pytest.raises(UserError, match=message):
        read_candidate_file(path)


def test_candidates_are_resolved_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "words.txt"
    path.write_text("Paris\nLondon\n", encoding="utf-8")
    both = [CASED, UNCASED]
    assert named_candidates("full", both).words is None
    assert named_candidates("common", both).words == ("london", "paris")
    assert named_candidates(f"file:{path}", [CASED]).words == ("Paris", "London")
    assert named_candidates(f"file:{path}", both).words == ("paris", "london")
    monkeypatch.setattr("lama_core.candidates.lists.lama_vocabulary_path", lambda: path)
    assert named_candidates("lama", [CASED]).words == ("Paris", "London")
    relation = named_candidates("relation", [CASED], of_relations=True)
    assert relation.of_relation(["b", "a", "b"]).words == ("b", "a")


@pytest.mark.parametrize(
    ("name", "message"),
    (
        ("comon", "did you mean 'common'"),
        ("lama", "not installed"),
        ("relation", "are a relation's objects"),
    ),
)
def test_candidates_that_cannot_be_had_say_why(name: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        named_candidates(name, [CASED])


def test_own_words_of_a_model_do_not_depend_on_the_compared_models() -> None:
    own = named_candidates("own", [CASED, UNCASED])
    assert own.columns(CASED).words == ("London", "PARIS", "Paris", "paris", "x1")
    assert own.columns(UNCASED).words == ("london", "paris", "rome")
    for words in (CASED, UNCASED):
        alone = common_vocabulary([words])
        assert own.columns(words).words == alone.words == alone.columns(words).words
    with_others = named_candidates("own-words", [CASED, UNCASED])
    assert set(with_others.columns(UNCASED).words) == {"london", "of", "paris", "rome"}
    assert own.digest != with_others.digest != named_candidates("full", [CASED]).digest


def test_own_words_are_refused_in_runs() -> None:
    with pytest.raises(UserError, match=r"differ between models.*choose 'common'"):
        named_candidates("own", [CASED], of_relations=True)


@given(word_lists, word_lists, st.sampled_from(("common", "words", "own", "own-words", "file:x")))
def test_the_reason_names_a_list_that_really_ranks_the_token(
    one: list[str], other: list[str], name: str
) -> None:
    shared = ["Paris", "the", "!", "##s"]
    models = [Words([*dict.fromkeys([*shared, *words])]) for words in (one, other)]
    made = (
        Candidates(name, ("Paris",))
        if name == "file:x"
        else named_candidates(name, models, models=("A", "B"))
    )
    for model, words in zip("AB", models, strict=True):
        ranked = set(made.columns(words).table(AFTER_SPACE).ids.flat)
        for token in set(range(words.size)) - ranked:
            (text,) = words.show_text([token])
            found = why_not_ranked(made, words, token)
            wider = named_candidates(found.ranked_with, models).columns(words)
            assert token in wider.table(AFTER_SPACE).ids, (text, found)
            if found.reason.startswith("several tokens in"):
                assert text not in models["BA".index(model)].single_words()
            if found.reason == "function word":
                assert is_word(text) and not is_content_word(text)
