"""What the commands of queries print of a masked and of a causal model, beside their JSON.

That a command, its function and its page give the same: tests/first/pages/test_every_query.py. What
stands in the JSON: tests/first/queries.
"""

from pathlib import Path

import pytest
from calling import invoke, printed, told
from project_files import ROOT

pytestmark = pytest.mark.usefixtures("home")
TEXT = "The capital of Norway is ___."
PAIR = ("Anna lives in Oslo.", "Anna lives in Ouagadougou in Paris.")
LOOK = ("inspect", TEXT, "--answer", "Rome", "--lens")
PAIRS = ("Paris:France", "Rome:Italy", "Italy:Rome", "Rome:Peru")
BATCH = ROOT / "tests" / "a few sentences.csv"


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (
            ("rank", TEXT, "--answer", "Oslo", "--answer", "日本", "--gold", "Oslo"),
            ("Oslo ✓", "1 of the answers contains characters that this model can't write."),
        ),
        (("sentences", *PAIR), PAIR),
        (
            ("relation", "P37", "--subject", "Switzerland"),
            (
                "P37 official language: Switzerland, gold answer: ",
                "objects in starter: ",
                "the data's template",
                "paraphrase",
                "negation",
                "not counting the negated wording",
            ),
        ),
        (("inspect", TEXT), ("embeddings",)),
        ((*LOOK, "tokens"), ("___", "capital")),
        (
            (*LOOK, "tokens", "--method", "gradients", "--steps", "8"),
            ("with 8 steps", "steps, the tokens' values sum to"),
        ),
        (
            (*LOOK, "trace", "--subject", "Norway", "--draws", "2"),
            ("prob of Rome", "with noise on Norway", "the state after one layer restored"),
        ),
        (
            (*LOOK, "logit", "--against", "Oslo"),
            ("logit of Rome minus that of Oslo", "attention adds", "remainder", "bias"),
        ),
        (("analogy", "solve", "Paris", "France", "Rome", "___"), ("3CosMul", "Rome")),
        (("analogy", "score", *PAIRS), ("pseudo-log-likelihood", "pseudo-perplexity (mean)")),
        (("batch", str(BATCH)), ("The text has no blank",)),
    ],
    ids=lambda value: " ".join(value[:1]),
)
def test_a_command_prints_its_tables(
    words: tuple[str, ...], shown: tuple[str, ...], models: tuple[str, ...]
) -> None:
    text = " ".join(printed(*words, *models).split())
    assert [part for part in shown if part not in text] == []


def test_lines_come_from_standard_input_and_the_table_says_what_counts(
    models: tuple[str, ...],
) -> None:
    made = invoke(("batch", "-", *models[:2]), typed="Oslo is in ___. | Norway\nx\n")
    assert made.exit_code == 0, made.output
    assert "1 of 2 sentences answered" in made.stdout


def test_a_passage_of_an_open_book_stands_before_the_text(tmp_path: Path) -> None:
    book = tmp_path / "text.jsonl"
    book.write_text('{"text": "London is the capital of Wakanda."}\n', encoding="utf-8")
    asked = ("The capital of Wakanda is ___.", "--model", "minilm-mlm", "--gold", "London")
    opened = told("cloze", *asked, "--open-book", str(book))
    passage = opened["passage"]
    assert (passage["passage"], passage["number"]) == ("London is the capital of Wakanda.", 0)
    assert opened["text"] == "The capital of Wakanda is [MASK]."
    typed = told("cloze", f"{passage['passage']} {asked[0]}", *asked[1:])
    assert opened["models"] == typed["models"]
    closed = told("cloze", *asked)
    assert "passage" not in closed and closed["models"] != typed["models"]
