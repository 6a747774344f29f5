"""Texts of the user's own, cut into passages, and the ones that can't be read."""

from pathlib import Path

import pytest

from lama_core.datasets.passages import MAX_WORDS, Corpus, load_corpus
from lama_core.errors import UserError


def test_a_passage_is_whole_sentences_of_one_paragraph_up_to_sixty_words(tmp_path: Path) -> None:
    one, two, three = ("Word " + "word " * 28 + f"{name}." for name in ("one", "two", "three"))
    file = tmp_path / "text.txt"
    file.write_text(f"{one} {two} {three}\nAnother paragraph.\n", encoding="utf-8")
    # 30 words a sentence: two of them are sixty words, the third begins the next passage.
    assert list(load_corpus(str(file)).passages()) == [f"{one} {two}", three, "Another paragraph."]


def test_a_longer_sentence_is_cut(tmp_path: Path) -> None:
    file = tmp_path / "text.txt"
    words = [f"w{number}" for number in range(2 * MAX_WORDS + 3)]
    file.write_text(" ".join(words), encoding="utf-8")
    passages = list(load_corpus(str(file)).passages())
    assert [len(passage.split()) for passage in passages] == [MAX_WORDS, MAX_WORDS, 3]
    assert " ".join(passages).split() == words


def test_a_passage_brings_no_blank_and_no_token_of_a_model(tmp_path: Path) -> None:
    file = tmp_path / "text.txt"
    file.write_text("A [MASK] and <mask>, ____ and [SEP].", encoding="utf-8")
    assert list(load_corpus(str(file)).passages()) == ["A (MASK) and (mask), … and (SEP)."]


def test_a_folder_is_read_in_the_order_of_its_names_text_and_jsonl(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("Second.", encoding="utf-8")
    (tmp_path / "a.jsonl").write_text('{"text": "First.", "id": 7}\n\n', encoding="utf-8")
    (tmp_path / "c.pdf").write_bytes(b"%PDF")
    found = load_corpus(str(tmp_path))
    assert list(found.passages()) == ["First.", "Second."]
    assert list(found.sentences()) == ["First.", "Second."]


def test_the_digest_is_of_the_content_and_not_of_the_names(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a.txt", "b.txt", "c.txt")]
    for file, text in zip(files, ("Same.", "Same.", "Other."), strict=True):
        file.write_text(text, encoding="utf-8")
    first, second, other = (Corpus(file.name, (file,)).digest for file in files)
    assert first == second != other


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.jsonl", b'{"text": "x"}\n{"body": "y"}\n', 'line 2: write the paragraph as {"text"'),
        ("a.jsonl", b"text\n", "line 1: not valid JSON"),
        ("a.txt", b"\xff\xfe", "not UTF-8 text"),
        ("a.txt", b"a\0b", "null bytes"),
        ("a.txt", b" \n \n", "has no text"),
    ],
)
def test_what_is_no_text_is_refused_in_one_sentence(
    tmp_path: Path, name: str, content: bytes, said: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=said) as caught:
        list(load_corpus(str(tmp_path / name)).passages())
    assert "\n" not in str(caught.value)
