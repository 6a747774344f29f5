"""The wordings that a run asks its facts in, on datasets small enough to check by hand."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from lama_core.datasets.dataset import ReadReport, make_dataset
from lama_core.errors import UserError
from lama_core.probes.statements.plan import numbered_template
from lama_core.queries.question_prompts import COMPLETE, question_of
from lama_core.scoring import queries
from lama_core.scoring.prompt_choice import LPAQA_SETS, PROMPT_SETS, make_prompt_set
from lama_core.scoring.queries import (
    NO_PRIME,
    NO_TEXT,
    TOO_LONG,
    Question,
    make_questions,
    unavailable_prompts,
)
from lama_core.types import Fact, Prompt, Query, Relation

BIRTH = Relation("P19", "TREx", prompts=(Prompt("[X] was born in [Y] ."),))
ISA = Relation("IsA", "ConceptNet")


def fact(subject: str, obj: str, relation: Relation = BIRTH, **sentences: tuple[str, ...]) -> Fact:
    name = f"{relation.name}:{subject}|{obj}"
    return Fact(name, subject, relation.name, obj, relation.source, **sentences)  # type: ignore[arg-type]


def asked(
    prompts: str, *facts: Fact, relations: Sequence[Relation] = (BIRTH,), limit: int | None = None
) -> list[Question]:
    given = make_dataset("small", relations, facts, ReadReport())
    names = [relation.name for relation in relations]
    return make_questions(given, names, make_prompt_set(prompts, relations), limit)


def texts(questions: Sequence[Question]) -> list[str]:
    return [question.query.text() if question.query else "" for question in questions]


def test_negation_prefers_what_the_source_states() -> None:
    stated = Relation("P19", "TREx", prompts=BIRTH.prompts, negated_template="[X] isn't from [Y] .")
    assert texts(asked("negated", fact("a", "b"), relations=[stated])) == ["a isn't from [MASK] ."]
    assert texts(asked("negated", fact("a", "b"))) == ["a was not born in [MASK] ."]


def test_a_fact_without_negation_is_excluded_with_the_reason() -> None:
    with_it = fact("a", "b", ISA, sentences=("[MASK]",), negated_sentences=("not [MASK]",))
    without = fact("c", "d", ISA, sentences=("[MASK]",))
    rows = asked("negated", with_it, without, relations=[ISA])
    assert texts(rows) == ["not [MASK]", ""]
    assert [row.excluded for row in rows] == [None, NO_TEXT]


def test_without_a_wrong_word_a_fact_is_not_misprimed() -> None:
    other = fact("b", "c", misprimed_sentences=("Vacancy? b is [MASK].",))
    rows = asked("misprimed", fact("a", "c"), other)
    assert [row.excluded for row in rows] == [NO_PRIME, None]


def test_the_files_own_misprimed_sentences_are_kept() -> None:
    given = fact("a", "b", misprimed_sentences=("Vacancy? a is [MASK].",))
    assert texts(asked("misprimed", given)) == ["Vacancy? a is [MASK]."]


def test_sentences_are_asked_instead_of_templates() -> None:
    rows = asked("sentences", fact("a", "b", sentences=("a in [MASK].",)), fact("c", "d"))
    assert texts(rows) == ["a in [MASK].", ""]
    assert [row.excluded for row in rows] == [None, NO_TEXT]


def ten(subject: str, n: int = 10, obj: str = "Rome") -> Fact:
    return fact(subject, obj, sentences=tuple(f"{subject} {n} [MASK]" for n in range(n)))


@pytest.mark.parametrize("unknown", "abcd")
def test_facts_of_ten_sentences_are_drawn_among_those_that_count(
    unknown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "SPREAD_FACTS", 2)
    # Four facts have ten sentences, f has twelve, and e has nine.
    given = make_dataset(
        "small", (BIRTH,), [ten(name) for name in "abcd"] + [ten("e", 9), ten("f", 12)],
        ReadReport(),
    )  # fmt: skip
    prompts = make_prompt_set("ten-sentences", (BIRTH,))

    def subjects(rows: Sequence[Question], *, counted: bool) -> list[str]:
        kept = [row.fact.subject for row in rows if (row.excluded is None) == counted]
        assert kept == sorted(kept)  # in file order
        return list(dict.fromkeys(kept))

    def judge(one: Fact, query: Query) -> str | None:
        return "not one token" if one.subject == unknown else None

    before = make_questions(given, ["P19"], prompts, None)
    after = make_questions(given, ["P19"], prompts, None, judge)
    drawn = subjects(before, counted=True)
    assert len(drawn) == 2 and not subjects(before, counted=False)
    now = subjects(after, counted=True)
    assert len(now) == 2 and unknown not in now and "e" not in now
    assert len([row for row in after if row.excluded is None]) == 2 * 10
    # A fact that was drawn and doesn't count is one row with the reason, and another takes its
    # place; the others stay, each with the sentences that it had.
    assert subjects(after, counted=False) == [name for name in drawn if name == unknown]
    assert sum(row.excluded == "not one token" for row in after) == (unknown in drawn)
    assert set(now) >= set(drawn) - {unknown}
    for name in set(now) & set(drawn):
        assert [row.prompt for row in after if row.fact.subject == name] == [
            row.prompt for row in before if row.fact.subject == name
        ]


def test_ten_sentences_are_of_those_that_can_be_asked() -> None:
    long = " ".join(["word"] * 100) + " [MASK]"  # 101 words
    eleven = (*(f"a {n} [MASK]" for n in range(5)), long, *(f"a {n} [MASK]" for n in range(5, 10)))
    rows = asked(
        "ten-sentences", fact("a", "Rome", sentences=eleven),
        fact("b", "Rome", sentences=(*(f"b {n} [MASK]" for n in range(9)), long)),
    )  # fmt: skip
    # Of a the ten short ones, of b nine are too few: one row says why.
    assert [(row.fact.subject, row.prompt) for row in rows] == [
        *(("a", n) for n in (0, 1, 2, 3, 4, 6, 7, 8, 9, 10)), ("b", 9)
    ]  # fmt: skip
    assert [row.excluded for row in rows] == [None] * 10 + [TOO_LONG]


def test_prompt_sets_without_anything_to_ask_are_named_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAMA_HOME", str(tmp_path))
    stated = [fact(name, "Rome", sentences=(f"{name} in [MASK]",) * 10) for name in "ab"]
    given = make_dataset("small", (BIRTH,), (fact("c", "Rome"), *stated), ReadReport())
    found = unavailable_prompts(given, ["P19"], None)
    assert {name: one.reason for name, one in found.items() if name in PROMPT_SETS} == {
        "misprimed": PROMPT_SETS["misprimed"].lacking  # Rome is right for everyone
    }
    assert {one.source for name, one in found.items() if name in LPAQA_SETS} == {"lpaqa"}
    first = unavailable_prompts(given, ["P19"], 1)  # of the first fact there is no sentence
    assert {"sentences", "ten-sentences"} <= set(first)
    for name in PROMPT_SETS:  # what is named is what a run refuses
        prompts = make_prompt_set(name, given.relations)
        if name in first:
            with pytest.raises(UserError, match=PROMPT_SETS[name].lacking):
                make_questions(given, ["P19"], prompts, 1)
        else:
            assert make_questions(given, ["P19"], prompts, 1)


OWN = Relation("mine", "User", own_templates=2)
OWN_FACTS = (
    fact("France", "Paris", OWN, templates=("The capital of [X] is [Y] .",)),
    fact("Italy", "Italian", OWN, templates=("[X] is spoken to in [Y] .", "[X] uses [Y] .")),
    fact("Mozart", "Vienna", OWN, sentences=("Mozart died in [MASK] .",)),
)


@pytest.mark.parametrize(
    ("prompts", "wanted"),
    [
        (
            "manual",
            [
                "The capital of France is [MASK] .",
                "Italy is spoken to in [MASK] .",
                "Mozart died in [MASK] .",
            ],
        ),
        (
            "paraphrases",
            [
                "The capital of France is [MASK] .",
                "Italy is spoken to in [MASK] .",
                "Mozart died in [MASK] .",
                "Italy uses [MASK] .",
            ],
        ),
        (
            "negated",
            ["The capital of France is not [MASK] .", "Italy is not spoken to in [MASK] .", ""],
        ),
        (
            "misprimed",
            [
                "{}? The capital of France is [MASK] .",
                "{}? Italy is spoken to in [MASK] .",
                "{}? Mozart died in [MASK] .",
            ],
        ),
        ("sentences", ["", "", "Mozart died in [MASK] ."]),
    ],
)
def test_each_fact_is_asked_with_its_own_templates(prompts: str, wanted: list[str]) -> None:
    found = texts(asked(prompts, *OWN_FACTS, relations=[OWN]))
    assert len(found) == len(wanted)
    for text, pattern in zip(found, wanted, strict=True):
        assert text.endswith(pattern.removeprefix("{}"))


def test_own_templates_are_numbered_within_the_fact() -> None:
    rows = asked("paraphrases", *OWN_FACTS, relations=[OWN])
    assert [row.prompt for row in rows] == [0, 0, 0, 1]
    second = make_questions(
        make_dataset("small", [OWN], OWN_FACTS, ReadReport()),
        ["mine"],
        numbered_template([OWN], 1),
        None,
    )
    assert texts(second) == ["", "Italy uses [MASK] .", ""]
    assert [row.excluded for row in second] == [NO_TEXT, None, NO_TEXT]


def test_runs_with_other_prompts_of_a_fact_have_another_identity() -> None:
    sets = [make_prompt_set(name, [OWN]).templates for name in ("manual", "paraphrases")]
    sets += [numbered_template([OWN], number).templates for number in (0, 1)]
    assert sets[0] == sets[2]
    assert len(set(sets)) == 3


def test_a_question_about_a_fact_completes_its_own_sentence() -> None:
    found = [question_of(OWN, fact).removeprefix(COMPLETE) for fact in OWN_FACTS]
    assert found == [
        "The capital of France is ___ .",
        "Italy is spoken to in ___ .",
        "Mozart died in ___ .",
    ]
    p36 = Relation("P36", "User", own_templates=1)
    assert question_of(p36, OWN_FACTS[0]).endswith("The capital of France is ___ .")
