"""`cloze --open-book` from a terminal."""

from pathlib import Path
from typing import Any

import pytest
from calling import invoke, told

import lama_core as lama
from lama_core.errors import UserError

pytestmark = pytest.mark.usefixtures("home")
ASKED = ("cloze", "The capital of Wakanda is ___.", "--model", "minilm-mlm", "--gold", "London")


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.jsonl"
    path.write_text('{"text": "London is the capital of Wakanda."}\n', encoding="utf-8")
    return path


def gold(answer: Any) -> Any:
    return answer["models"][0]["blanks"][0]["gold"]


def test_the_passage_stands_before_the_text_and_in_what_is_printed(text: Path) -> None:
    opened = told(*ASKED, "--open-book", str(text))
    passage = opened["passage"]
    assert (passage["passage"], passage["number"]) == ("London is the capital of Wakanda.", 0)
    assert opened["text"] == "The capital of Wakanda is [MASK]."
    # The same as if the passage had been typed.
    typed = told(ASKED[0], f"{passage['passage']} {ASKED[1]}", *ASKED[2:])
    assert gold(opened) == gold(typed)
    (row, *_) = lama.fill(ASKED[1], gold="London", open_book=str(text)).to_dict("records")
    assert (row["gold_rank"], row["text"]) == (gold(opened)["rank"], opened["text"])
    assert row["passage"] == passage["passage"]
    closed = told(*ASKED)
    assert "passage" not in closed
    assert gold(opened)["rank"] < gold(closed)["rank"], "it can read"


def test_the_open_book_goes_with_a_text_and_a_text_of_something(tmp_path: Path) -> None:
    def refused(*words: str) -> str:
        exception = invoke(words).exception
        assert isinstance(exception, UserError)
        return str(exception)

    for words in (("relation", "P36", "--subject", "France"), ("rank", ASKED[1], "--answer", "x")):
        assert "--open-book" in refused(*words, "--open-book", "starter")
    (tmp_path / "empty.txt").touch()
    assert "has no text" in refused(*ASKED, "--open-book", str(tmp_path / "empty.txt"))
    assert "tools.training.corpus" in refused(*ASKED, "--open-book", "starter")
