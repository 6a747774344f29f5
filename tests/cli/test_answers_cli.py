"""`rank`, `sentences` and `batch` on the command line: their JSON, tables and mistakes."""

from pathlib import Path

import pytest
from calling import invoke, printed, told

from lama_core.errors import UserError

pytestmark = pytest.mark.usefixtures("home")
TEXT = "The capital of Norway is ___."
ANSWERS = ("--answer", "Oslo", "--answer", "Ouagadougou in Paris", "--answer", "日本")
FILE = Path(__file__).parents[1] / "a few sentences.csv"
PAIR = ("Anna lives in Oslo.", "Anna lives in Ouagadougou in Paris.")


def test_answers_of_any_length_are_ranked_by_each_model(models: tuple[str, ...]) -> None:
    found = told("rank", TEXT, *ANSWERS, "--gold", "Oslo", *models)
    assert found["answers"] == ["Oslo", "Ouagadougou in Paris", "日本"]
    assert found["gold"] == "Oslo"
    masked, causal = found["models"]
    assert [masked["kind"], causal["kind"]] == ["masked", "causal"]
    assert masked["answers"][-1] == masked["answers"][-1] | {"answer": "日本", "rank": None}
    for model in (masked, causal):
        known = [one for one in model["answers"] if one["rank"]]
        assert sum(one["prob"] for one in known) == pytest.approx(1, abs=1e-5)
        for one in known:
            values = [each["log_prob"] for each in one["tokens"] if each["log_prob"] is not None]
            assert one["score"] == pytest.approx(sum(values), abs=1e-4)
            assert one["n_tokens"] == len(values)


def test_part_aggregate_and_hiding_reach_the_scores(models: tuple[str, ...]) -> None:
    def scores(*options: str) -> dict[str, float]:
        found = told("rank", TEXT, *ANSWERS[:4], *models[:2], *options)
        return {one["answer"]: one["score"] for one in found["models"][0]["answers"]}

    several = "Ouagadougou in Paris"
    whole, answer = scores(), scores("--part", "answer")
    assert whole[several] < answer[several]
    found = told("rank", TEXT, *ANSWERS[:4], *models[:2], "--part", "answer")
    (one,) = (one for one in found["models"][0]["answers"] if one["answer"] == several)
    mean = scores("--part", "answer", "--aggregate", "mean")[several]
    assert mean == pytest.approx(answer[several] / one["n_tokens"])
    assert scores("--hiding", "original")[several] != whole[several]


def test_the_table_marks_the_gold_and_shows_the_answers_tokens(models: tuple[str, ...]) -> None:
    shown = printed("rank", TEXT, *ANSWERS, "--gold", "Oslo", *models)
    assert shown.count("Oslo ✓") == 2
    assert "1 of the answers contains characters that this model can't write." in shown
    assert "norway" not in shown.lower(), "the tokens of the answers alone"


@pytest.mark.parametrize(
    "words",
    (("--top-k", "3"), ("--candidates", "full"), ("--context", "left"), ("--relation", "P36")),
)
def test_options_of_other_commands_are_unknown(words: tuple[str, ...]) -> None:
    with pytest.raises(UserError, match=f"Unknown option: {words[0]}"):
        printed("rank", TEXT, "--answer", "Oslo", *words)
    with pytest.raises(UserError, match="--answer is missing"):
        printed("rank", TEXT, "--part", "answer")


def test_an_unknown_part_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(UserError, match='Choose from: "statement", "answer", "conditional"'):
        printed("rank", TEXT, "--answer", "Oslo", "--part", "whole")


def test_sentences_are_compared_token_by_token(models: tuple[str, ...]) -> None:
    for model in told("sentences", *PAIR, *models)["models"]:
        first, second = model["sentences"]
        assert [first["text"], second["text"]] == list(PAIR)
        assert second["difference"] == pytest.approx(second["sum"] - first["sum"])
        assert first["difference"] == 0
        values = [one["log_prob"] for one in first["tokens"] if one["log_prob"] is not None]
        assert first["sum"] == pytest.approx(sum(values), abs=1e-4)
        assert first["mean"] == pytest.approx(first["sum"] / len(values))
        differs = "".join(one["token"] for one in first["tokens"] if one["differs"])
        assert "oslo" in differs.lower() and "anna" not in differs.lower()
    shown = printed("sentences", *PAIR, *models)
    assert shown.count("Anna lives in Ouagadougou in Paris.") == 2


def test_one_sentence_is_refused(models: tuple[str, ...]) -> None:
    with pytest.raises(UserError, match="number of sentences is 1"):
        printed("sentences", PAIR[0], *models)


def test_a_file_of_sentences_is_answered_as_each_of_them_is(models: tuple[str, ...]) -> None:
    found = told("batch", str(FILE), *models)["models"]
    for model, name in zip(found, models[1::2], strict=True):
        first, second, third = model["answers"]
        alone = told("cloze", first["text"], "--gold", "Norway", *models)
        (same,) = (one for one in alone["models"] if one["name"] == name)
        (blank,) = same["blanks"]
        assert first["predictions"][0]["token"] == blank["predictions"][0]["token"]
        assert first["gold"]["rank"] == blank["gold"]["rank"]
        assert [one["line"] for one in (first, second, third)] == [2, 3, 5]
        assert second["text"] == "=2 ___ is four."
        assert third == {"line": 5, "text": "no blank here", "fault": third["fault"]}


def test_lines_come_from_standard_input_and_the_table_says_what_counts(
    models: tuple[str, ...],
) -> None:
    made = invoke(("batch", "-", *models[:2]), typed="Oslo is in ___. | Norway\nx\n")
    assert made.exit_code == 0, made.output
    assert "The text has no blank" in made.stdout
    assert "1 of 2 sentences answered" in made.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((TEXT, "x.csv"), "Unexpected argument 'x.csv'"),
        (("x.csv", "--gold", "Oslo"), "Unknown option: --gold"),
        (("nowhere.csv",), "nowhere.csv can't be read: No such file"),
        ((".",), "not a regular file"),
    ],
)
def test_a_file_goes_alone_and_must_be_there(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(UserError, match=said):
        printed("batch", *words)
