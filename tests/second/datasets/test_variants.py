"""LAMA's variants on datasets small enough to check by hand."""

from collections.abc import Sequence

import pytest

from lama_core.datasets import variants
from lama_core.datasets.dataset import Dataset, ReadReport, make_dataset
from lama_core.types import Fact, Prompt, Relation

BIRTH = Relation("P19", "TREx", prompts=(Prompt("[X] was born in [Y] ."),))
ISA = Relation("IsA", "ConceptNet")


def fact(subject: str, obj: str, relation: Relation = BIRTH, **fields: tuple[str, ...]) -> Fact:
    return Fact(
        f"{relation.name}:{subject}|{obj}",
        subject,
        relation.name,
        obj,
        relation.source,
        sentences=fields.get("sentences", ()),
        negated_sentences=fields.get("negated_sentences", ()),
        misprimed_sentences=fields.get("misprimed_sentences", ()),
    )


def dataset(*facts: Fact, relations: Sequence[Relation] = (BIRTH,)) -> Dataset:
    return make_dataset("small", relations, facts, ReadReport())


def test_the_substring_filter_ignores_case_and_keeps_the_reason() -> None:
    given = dataset(fact("Paris Hilton", "paris"), fact("Dante", "Florence"))
    kept, excluded = variants.uhn(given)
    assert [item.subject for item in kept.facts] == ["Dante"]
    assert [item.fact.subject for item in excluded] == ["Paris Hilton"]
    assert excluded[0].reason == "the object 'paris' is part of the subject 'Paris Hilton'"


def test_the_substring_filter_leaves_other_sources_alone() -> None:
    apple = fact("apple tree", "tree", ISA, sentences=("An apple tree is a [MASK].",))
    kept, excluded = variants.uhn_substring(dataset(apple, relations=[ISA]))
    assert (kept.facts, excluded) == ((apple,), ())


def test_the_name_filter_asks_once_for_each_part_of_the_name() -> None:
    asked: list[tuple[str, int]] = []

    def guess(text: str, k: int) -> list[str]:
        asked.append((text, k))
        return ["Rome", "Milan"] if text.startswith("Luigi ") else ["Oslo"]

    given = dataset(fact("Luigi Bianchi", "milan"), fact("Luigi Rossi", "Turin"))
    kept, excluded = variants.uhn_names(given, guess)
    assert [item.subject for item in kept.facts] == ["Luigi Rossi"]
    assert excluded[0].reason == "the object 'milan' is guessed from the name 'Luigi'"
    # "Bianchi" isn't asked for: the first part settles the matter.
    assert asked == [
        ("Luigi is a common name in the following city : [MASK] .", 3),
        ("Rossi is a common name in the following city : [MASK] .", 3),
    ]


def test_the_name_filter_asks_only_of_the_seven_relations() -> None:
    capital = Relation("P36", "TREx", prompts=(Prompt("[X]: [Y]"),))

    def guess(text: str, k: int) -> list[str]:
        raise AssertionError("nothing should be asked")

    kept, _ = variants.uhn_names(dataset(fact("Peru", "Lima", capital), relations=[capital]), guess)
    assert len(kept.facts) == 1
    assert sorted(variants.NAME_NOUNS.values()) == ["city"] * 4 + ["country"] + ["language"] * 2


@pytest.mark.parametrize(
    ("template", "negation"),
    [
        ("[X] was born in [Y] .", "[X] was not born in [Y] ."),
        ("The capital of [X] is [Y] .", "The capital of [X] is not [Y] ."),
        ("[X] and [Y] are twin cities .", "[X] and [Y] are not twin cities ."),
        ("[X] works for [Y] .", "[X] does not work for [Y] ."),
        ("[X] has the position of [Y] .", "[X] does not have the position of [Y] ."),
        ("[X] died in [Y] .", "[X] did not die in [Y] ."),
        ("[X] used to work in [Y] .", "[X] did not use to work in [Y] ."),
        ("[X] can [Y] .", "[X] can not [Y] ."),
        ("[X] is not [Y] .", None),
        ("[X] (born [Y]).", None),
    ],
)
def test_templates_are_negated_at_their_verb(template: str, negation: str | None) -> None:
    assert variants.negate_template(template) == negation


def test_a_wrong_word_is_drawn_by_the_fact_and_never_right() -> None:
    pool, right = ["Lima", "Oslo", "Rome"], {"Rome", "Oslo"}
    assert {variants.wrong_word(pool, right, f"P19:{n}") for n in range(20)} == {"Lima"}
    drawn = [variants.wrong_word(pool, {"Lima"}, f"P19:{n}") for n in range(20)]
    assert set(drawn) == {"Oslo", "Rome"}
    assert drawn == [variants.wrong_word(pool, {"Lima"}, f"P19:{n}") for n in range(20)]
    assert variants.wrong_word(["Rome"], {"Rome"}, "P19:a") is None
