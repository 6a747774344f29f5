"""Many sentences at once: reading them, and first answers that are those of one question each."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from lama_core.candidates.columns import Candidates
from lama_core.candidates.lists import common_vocabulary
from lama_core.errors import TimeOverError, UserError
from lama_core.queries.batch_lines import (
    BATCH_SIZE,
    MAX_BYTES,
    MAX_LINES,
    BatchLine,
    differ,
    fill_lines,
    read_file,
    read_lines,
    write_lines,
)
from lama_core.queries.blank_answers import MAX_PIECES, query_in_batches, query_model
from lama_core.scoring.blanks import parse_query
from lama_core.scoring.limits import Limits

Models = Callable[..., Any]
TEXTS = (
    "The capital of France is ___.",
    "Ann was born in ___ and lives in London.",
    "___ is a city.",
    "Berlin is the capital of ___",
)


@pytest.mark.parametrize("family", ("bert-cased", "gpt2", "t5"))
def test_first_answers_and_golds_are_those_of_each_sentence_by_itself(
    family: str, tiny_model: Models
) -> None:
    model = tiny_model(family)
    candidates = common_vocabulary([model.vocabulary])
    golds = ("Paris", "Ouagadougou in Paris", None, "London")
    lines = [
        BatchLine(number, text, gold)
        for number, (text, gold) in enumerate(zip(TEXTS * 10, golds * 10, strict=True), start=1)
    ]
    assert len(lines) > BATCH_SIZE
    found = fill_lines(model, lines, candidates)
    for line, answer in list(zip(lines, found.answers, strict=True))[-4:]:
        alone = query_model(model, parse_query(line.text), candidates, top_k=1, gold=line.gold)
        assert answer.blank is not None
        assert answer.context == alone.context
        (first,), (wanted,) = answer.blank.predictions, alone.blanks[0].predictions
        assert (first.token, first.begins) == (wanted.token, wanted.begins)
        assert first.log_prob == pytest.approx(wanted.log_prob, abs=1e-5)
        gold, right = answer.blank.gold, alone.blanks[0].gold
        assert (gold and (gold.rank, gold.in_candidates)) == (
            right and (right.rank, right.in_candidates)
        )
    # One of the three golds is a candidate of none of these models: 10 lines of 30 don't count.
    assert (found.n_counted, found.n_outside) == (20, 10)


def test_precision_counts_the_golds_that_are_candidates(tiny_model: Models) -> None:
    model = tiny_model("bert-cased")
    candidates = Candidates("x", ("Paris", "London", "Berlin"))
    best = query_model(model, parse_query(TEXTS[0]), candidates).blanks[0].predictions
    words = [one.token for one in best]
    golds = (words[0], words[0], words[1], None, "Ouagadougou in Paris")
    lines = [BatchLine(number, TEXTS[0], gold) for number, gold in enumerate(golds, start=1)]
    lines.append(BatchLine(6, "nothing to fill", words[0], fault="no blank"))
    found = fill_lines(model, lines, candidates)
    assert found.precision_at_1 == 2 / 3
    assert [one.is_right for one in found.answers] == [True, True, False, None, None, None]
    assert all(one.outside for one in found.answers[:5]), "the tiny model prefers another token"
    assert found.summary() == (
        "P@1 66.7 %: 2 of 3 right answers first; 5 of 6 sentences answered; 1 right answer not "
        "among the candidates, not counted; in 5 a token that isn't a candidate is likelier than "
        "the first"
    )
    assert fill_lines(model, lines[3:4], candidates).precision_at_1 is None


def test_a_line_that_a_model_cant_take_has_its_reason_and_the_others_are_answered(
    tiny_model: Models,
) -> None:
    model = tiny_model("bert-cased")
    candidates = common_vocabulary([model.vocabulary])
    lines = [
        BatchLine(1, TEXTS[0]),
        BatchLine(2, "Paris " * 9 + "is ___."),
        BatchLine(3, TEXTS[0], "Paris " * (MAX_PIECES + 1)),
        BatchLine(4, "London " * 5000 + "is ___."),
    ]
    found = fill_lines(model, lines, candidates, limits=Limits(tokens=10))
    assert [bool(one.word) for one in found.answers] == [True, False, False, False]
    assert "the maximum here is 10. Shorten it" in found.answers[1].fault
    assert f"the maximum is {MAX_PIECES}" in found.answers[2].fault
    assert found.answers[3].fault


def test_the_time_of_a_question_ends_before_a_sentence_that_is_rescored(
    tiny_model: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny_model("gpt2")
    candidates = common_vocabulary([model.vocabulary])
    texts = (TEXTS[3], TEXTS[1], TEXTS[0], TEXTS[2], TEXTS[3])  # the second and fourth are rescored
    lines = [BatchLine(number, text) for number, text in enumerate(texts, start=1)]
    lines.insert(0, BatchLine(0, "no blank", fault="It has none."))
    whole = fill_lines(model, lines, candidates)
    assert len(whole.answers) == 6
    with pytest.raises(TimeOverError, match="gpt2 rescored 0 of"):
        fill_lines(model, lines, candidates, limits=Limits(seconds=0))
    # The time of the batch is over at once, but not that of each sentence; then the reverse.
    for times in ([0.0] + [math.inf] * 9, [math.inf, math.inf, 0.0] + [math.inf] * 9):
        deadlines = iter(times)
        monkeypatch.setattr(Limits, "until", lambda *_, ends=deadlines, **__: next(ends))
        cut = fill_lines(model, lines, candidates)
        assert [bool(one.word) for one in cut.answers] == [False, True, True, True]
        assert cut.answers[3].word == whole.answers[3].word


def test_models_differ_whatever_the_case(tiny_model: Models) -> None:
    model = tiny_model("bert-cased")
    lines = (BatchLine(1, TEXTS[0]),)
    upper = fill_lines(model, lines, Candidates("x", ("Paris",)))
    lower = fill_lines(model, lines, Candidates("x", ("Paris",)).folded())
    other = fill_lines(model, lines, Candidates("x", ("London",)))
    assert not differ((upper.answers[0], lower.answers[0]))
    assert differ((upper.answers[0], other.answers[0]))


def test_a_tables_cells_may_hold_quotes_commas_and_line_breaks() -> None:
    table = (
        'id;Gold;Text\r\n1;he;"He said ""well"";\r\nthen ___ left."\r\n\r\n2;;___ is x.\r\n'
        "3;x\r\n4;x;two ___ and ___.\r\n"
    )
    first, second, short, two = read_file(b"\xef\xbb\xbf" + table.encode(), "my.csv")
    assert first == BatchLine(2, 'He said "well"; then ___ left.', "he")
    assert second == BatchLine(5, "___ is x.")
    assert (short.number, short.fault) == (6, "2 cells, but the header has 3.")
    assert two.number == 7 and two.fault.startswith("The sentence has 2 blanks")


def test_lines_have_their_gold_behind_a_tab_or_a_bar_and_objects_in_a_field() -> None:
    typed = "A ___. | b\n\nA | ___.\tc\nno blank\nA ___."
    read = read_lines(typed)
    assert [(one.number, one.text, one.gold) for one in read] == [
        (1, "A ___.", "b"), (3, "A | ___.", "c"), (4, "no blank", None), (5, "A ___.", None),
    ]  # fmt: skip
    assert [bool(one.fault) for one in read] == [False, False, True, False]
    again = [BatchLine(0, one.text, one.gold, one.fault) for one in read_lines(write_lines(read))]
    assert again == [BatchLine(0, one.text, one.gold, one.fault) for one in read]
    text = '{"text": "A ___.", "gold": "b"}\n\n[1]\n{"sentence": "___", "answer": [3]}\nx\n'
    first, *others = read_file(text.encode(), "x.jsonl")
    assert (first.text, first.gold, first.fault) == ("A ___.", "b", "")
    assert [(one.number, bool(one.fault)) for one in others] == [(3, True), (4, True), (5, True)]


@pytest.mark.parametrize(
    ("data", "name", "said"),
    [
        ("Köln is ___.\n".encode("cp1252") * 2, "a.txt", "a.txt isn't UTF-8. Save it"),
        (b"subject,gold\na,b\n", "a.csv", "a.csv has no column 'text' in its first line"),
        (b'text\n"A ___.\nB\n', "a.csv", "No sentence is valid. Line 2: Its quotes are wrong"),
        (b"", "a.txt", "Sentences are missing"),
        (b"nothing\n", "a.txt", "No sentence is valid. Line 1: The text has no blank"),
        (b"A ___.\n" * (MAX_LINES + 1), "a.txt", "There are 501 sentences; the maximum is 500"),
        (b"x" * (MAX_BYTES + 1), "a.txt", "a.txt is too large"),
    ],
)
def test_what_cant_be_read_is_refused_in_a_sentence(data: bytes, name: str, said: str) -> None:
    with pytest.raises(UserError) as refused:
        read_file(data, name)
    assert str(refused.value).startswith(said)


def test_sentences_may_have_another_encoding() -> None:
    for name, encoding in (("utf-16", ""), ("cp1252", "cp1252")):
        (line,) = read_file("text\nKöln is ___.\n".encode(name), "a.csv", encoding=encoding)
        assert line.text == "Köln is ___."


def test_a_right_answer_that_is_not_proposed_is_never_counted_as_first(tiny_model: Models) -> None:
    model = tiny_model("smollm2")
    candidates = common_vocabulary([model.vocabulary])
    text = "Ann was born in ___ and lives in London."
    for word in candidates.columns(model.vocabulary).words[:40]:
        (found,) = fill_lines(model, [BatchLine(1, text, word)], candidates, n_rescored=2).answers
        assert found.blank is not None and found.blank.gold is not None
        if not found.blank.gold.proposed:
            assert found.is_right is False


@pytest.mark.parametrize(
    ("family", "context"), [("bert-cased", None), ("gpt2", "left"), ("gpt2", "both"), ("t5", None)]
)
def test_of_several_right_answers_the_best_ranked_one_counts(
    family: str, context: Any, tiny_model: Models
) -> None:
    model = tiny_model(family)
    candidates, query = common_vocabulary([model.vocabulary]), parse_query(TEXTS[1])
    options: Any = {"n_rescored": 2, "context": context}  # with both, only two words are ranked

    def answer(gold: Any) -> Any:
        return query_in_batches(model, [query], candidates, gold=gold, **options)[0].blanks[0]

    words = candidates.columns(model.vocabulary).words[:30]
    golds = {word: answer(word).gold for word in (answer(None).predictions[0].token, *words)}
    best, *worse = sorted(golds, key=lambda word: (not golds[word].proposed, golds[word].rank))
    assert golds[best].rank == 1
    for several in ((*worse[-3:], best), (worse[-1], best), ("Ouagadougou", best)):
        gold = answer([several]).gold
        assert gold.proposed and (gold.word, gold.rank) == (best, 1)
    if context == "both":
        assert not golds[worse[-1]].proposed
