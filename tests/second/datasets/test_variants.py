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


def test_the_substring_filter_ignores_case_and_leaves_other_sources_alone() -> None:
    apple = fact("apple tree", "tree", ISA, sentences=("An apple tree is a [MASK].",))
    given = (fact("Paris Hilton", "paris"), fact("Dante", "Florence"), apple)
    kept = variants.uhn_substring(dataset(*given, relations=[BIRTH, ISA]))
    assert kept.facts == given[1:]


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
